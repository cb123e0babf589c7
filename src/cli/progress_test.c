/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/terminal.h"
#include "tests/tap.h"

static int64_t fake_now(void *ctx)
{
    return *(int64_t *)ctx;
}

/* Until its other end is closed: a terminal hands over what it was given bit by bit. */
static size_t read_all(int fd, char *out, size_t size)
{
    size_t len = 0;
    ssize_t n;

    while (len < size - 1 && (n = read(fd, out + len, size - 1 - len)) > 0)
        len += (size_t)n;
    out[len] = '\0';
    return len;
}

/* What the bar writes to a pseudo terminal, or to a pipe, at these times. */
static size_t draw(char *out, size_t size, bool terminal, const int64_t *times,
                   size_t count)
{
    int64_t now = 0;
    const struct clock clock = { fake_now, &now };
    struct progress p;
    int ends[2], saved = dup(STDERR_FILENO);
    size_t n;

    if (terminal) {
        ends[0] = posix_openpt(O_RDWR | O_NOCTTY);
        if (ends[0] < 0 || grantpt(ends[0]) < 0 || unlockpt(ends[0]) < 0)
            abort();
        ends[1] = open(ptsname(ends[0]), O_RDWR | O_NOCTTY);
    } else if (pipe(ends) < 0) {
        abort();
    }
    dup2(ends[1], STDERR_FILENO);
    progress_start(&p, "checking", &clock);
    for (size_t i = 0; i < count; i++) {
        now = times[i];
        progress_report(&p, i + 1, count);
    }
    progress_finish(&p);
    progress_finish(&p);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    n = read_all(ends[0], out, size);
    close(ends[0]);
    return n;
}

static void test_bar_only_on_a_terminal_and_after_a_second(void)
{
    static const int64_t quick[] = { 10, 500, 999 };
    static const int64_t slow[] = { 10, 1000, 1050, 1100, 2000 };
    char text[4096];
    size_t n;

    ok(draw(text, sizeof(text), true, quick, COUNT(quick)) == 0,
       "nothing within the first second");
    ok(draw(text, sizeof(text), false, slow, COUNT(slow)) == 0, "nothing into a pipe");
    n = draw(text, sizeof(text), true, slow, COUNT(slow));
    ok(n > 0 && strstr(text, "\rchecking [##########..............]  40%"),
       "a bar after one second");
    ok(!strstr(text, " 60%") && strstr(text, " 80%") && strstr(text, "100%"),
       "redrawn at most ten times a second");
    ok(n > 4 && strcmp(text + n - 4, "\r\033[K") == 0, "erased at the end, once");
    ok(n > 8 && !strstr(text, "\033[K\r\033[K\r\033[K"), "and not twice");
    ok(!strstr(text, "\n"), "never a new line");
}

static void test_dumb_terminal_gets_no_bar(void)
{
    static const int64_t slow[] = { 2000, 3000 };
    char text[4096];

    setenv("TERM", "dumb", 1);
    ok(draw(text, sizeof(text), true, slow, COUNT(slow)) == 0, "TERM=dumb");
    setenv("TERM", "xterm", 1);
}

static void test_colour_only_where_it_is_wanted(void)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    FILE *screen = fdopen(terminal, "w");
    FILE *file = tmpfile();

    unsetenv("NO_COLOR");
    ok(strcmp(paint(screen, PAINT_RED), "\033[31m") == 0, "red on a terminal");
    ok(strcmp(paint(file, PAINT_RED), "") == 0, "nothing into a file");
    setenv("NO_COLOR", "1", 1);
    ok(strcmp(paint(screen, PAINT_RED), "") == 0, "nothing with NO_COLOR");
    setenv("NO_COLOR", "", 1);
    ok(strcmp(paint(screen, PAINT_END), "\033[0m") == 0, "an empty NO_COLOR is none");
    fclose(screen);
    fclose(file);
}

int main(void)
{
    setenv("TERM", "xterm", 1);
    test_bar_only_on_a_terminal_and_after_a_second();
    test_dumb_terminal_gets_no_bar();
    test_colour_only_where_it_is_wanted();
    return tap_done();
}
