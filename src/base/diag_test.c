/* SPDX-License-Identifier: Apache-2.0 */
#include "base/diag.h"

#include <fcntl.h>
#include <unistd.h>

#include "tests/tap.h"

static void test_escaping(void)
{
    const struct {
        const char *what;
        str in;
        const char *out;
    } rows[] = {
        { "plain text", STR("hello ~"), "hello ~" },
        { "newline and tab", STR("a\nb\tc"), "a\\nb\\tc" },
        { "a backslash", STR("\\n"), "\\\\n" },
        { "escape", STR("\x1b[2J"), "\\x1b[2J" },
        { "NUL", STR("a\0b"), "a\\x00b" },
        { "DEL", STR("\x7f"), "\\x7f" },
        { "C1", STR("\xc2\x9b"), "\\xc2\\x9b" },
        { "above C1", STR("\xc2\xa0"), "\xc2\xa0" },
        { "not UTF-8", STR("\xff\x80z"), "\\xff\\x80z" },
        { "half a character", STR("\xe2\x82"), "\\xe2\\x82" },
        { "letters", STR("\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82"),
          "\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82" },
        { "right-to-left override", STR("\xe2\x80\xae"), "\\xe2\\x80\\xae" },
        { "isolate", STR("\xe2\x81\xa6"), "\\xe2\\x81\\xa6" },
        { "Arabic letter mark", STR("\xd8\x9c"), "\\xd8\\x9c" },
        { "line separator", STR("\xe2\x80\xa8"), "\\xe2\\x80\\xa8" },
        { "zero width space", STR("\xe2\x80\x8b"), "\\xe2\\x80\\x8b" },
        { "byte order mark", STR("\xef\xbb\xbf"), "\\xef\\xbb\\xbf" },
        { "nothing", STR(""), "" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(buf_release) struct buf b = { 0 };

        diag_escape(&b, rows[i].in);
        ok(str_is(buf_str(&b), rows[i].out), "%s", rows[i].what);
    }
}

/* What diag_say writes to stderr. */
static size_t said(char *out, size_t size, const char *text)
{
    int ends[2], saved = dup(STDERR_FILENO);
    ssize_t n = -1;

    if (saved >= 0 && pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
        dup2(ends[1], STDERR_FILENO);
        diag_say("%s", text);
        dup2(saved, STDERR_FILENO);
        n = read(ends[0], out, size);
        close(ends[0]);
        close(ends[1]);
    }
    close(saved);
    return n < 0 ? 0 : (size_t)n;
}

static void test_saying(void)
{
    static char out[65536], text[8192];
    size_t n = said(out, sizeof(out),
                    "a\x1b"
                    "b");

    ok(str_is(str_of(out, n), "assay: a\\x1bb\n"), "one line, escaped");
    memset(text, '\x1b', sizeof(text) - 1);
    n = said(out, sizeof(out), text);
    ok(n > 4096 && out[n - 1] == '\n' && !memchr(out, '\n', n - 1),
       "the longest line ends, and only once");
}

int main(void)
{
    test_escaping();
    test_saying();
    return tap_done();
}
