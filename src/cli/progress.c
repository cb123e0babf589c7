/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/terminal.h"

#define QUIET_MS  1000 /* before the first drawing */
#define REDRAW_MS 100
#define BAR_WIDTH 24

/* For the signal handler: whether there is a line to erase. */
static volatile sig_atomic_t line_drawn;

static void put(const char *text, size_t n)
{
    ssize_t ignored = write(STDERR_FILENO, text, n);

    (void)ignored; /* a bar that cannot be drawn is not an error */
}

static void erase(void)
{
    put("\r\033[K", 4);
    line_drawn = 0;
}

void progress_interrupt(void)
{
    if (line_drawn)
        erase();
}

void progress_start(struct progress *p, const char *what, const struct clock *clock)
{
    int64_t now = clock_now(clock);

    *p = (struct progress){
        .what = what,
        .clock = clock,
        .started = now,
        .drawn = now,
        .live = terminal_is_live(STDERR_FILENO),
    };
}

static void draw_bar(const struct progress *p, uint64_t done, uint64_t total)
{
    unsigned percent = (unsigned)((double)done * 100.0 / (double)total);
    char bar[BAR_WIDTH + 1];
    char line[160];
    int n;

    percent = percent > 100 ? 100 : percent;
    for (unsigned i = 0; i < BAR_WIDTH; i++)
        bar[i] = i * 100 < percent * BAR_WIDTH ? '#' : '.';
    bar[BAR_WIDTH] = '\0';
    n = snprintf(line, sizeof(line), "\r%.60s [%s] %3u%%\033[K", p->what, bar, percent);
    put(line, (size_t)n);
}

static void draw_count(const struct progress *p, uint64_t done)
{
    char line[160];
    int n = snprintf(line, sizeof(line), "\r%.60s %" PRIu64 "\033[K", p->what, done);

    put(line, (size_t)n);
}

void progress_report(void *ctx, uint64_t done, uint64_t total)
{
    struct progress *p = ctx;
    int64_t now;

    if (!p->live)
        return;
    now = clock_now(p->clock);
    if (now - p->started < QUIET_MS || (p->visible && now - p->drawn < REDRAW_MS))
        return;
    line_drawn = 1;
    if (total)
        draw_bar(p, done, total);
    else
        draw_count(p, done);
    p->visible = true;
    p->drawn = now;
}

void progress_finish(struct progress *p)
{
    if (p->visible)
        erase();
    p->visible = false;
}
