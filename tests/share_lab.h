/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share_lab - members of a share and a server on strings (puppet.py): every byte on both
 * sides is looked at.
 */
#ifndef TESTS_SHARE_LAB_H
#define TESTS_SHARE_LAB_H

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "pipeline/share.h"
#include "tests/tap.h"
#include "transport/loop.h"

#define MEMBERS  4
#define PATIENCE 30000 /* ms */

struct fake {
    struct endpoint *e;
    struct buf log; /* what it was told, a line each, with the number of the exchange */
    unsigned drained, ended;
    enum err_code why;
    unsigned losses;
    unsigned ends; /* of the server */
    struct share_end how;
};

static struct lab {
    char dir[64];
    struct loop *loop;
    struct loop_timer *look, *patience;
    struct share *share;
    struct fake m[MEMBERS];
    struct buf said, got;
    int strings;
    bool gone, late;
    bool (*is_done)(void);
} lab;

/* An exchange is a place in here. */
static char exchanges[MEMBERS];

static inline struct exchange *x_of(int number)
{
    return number ? (struct exchange *)(void *)&exchanges[number] : NULL;
}

static inline int number_of(struct exchange *x)
{
    return x ? (int)((char *)x - exchanges) : 0;
}

/* --- what a member is told --- */

static inline void on_span(void *ctx, struct exchange *x, str bytes, bool end)
{
    struct fake *f = ctx;

    buf_printf(&f->log, "%d:", number_of(x));
    buf_add(&f->log, bytes);
    if (!end || bytes.n == 0 || bytes.p[bytes.n - 1] != '\n')
        buf_add(&f->log, STR("<not a whole line>"));
}

static inline void on_ended(void *ctx, const struct err *why)
{
    struct fake *f = ctx;

    f->ended++;
    f->why = why ? why->code : ERR_NONE;
}

static inline void on_drained(void *ctx)
{
    struct fake *f = ctx;

    f->drained++;
}

static inline void on_gone(void *ctx, const struct err *why)
{
    struct fake *f = ctx;

    buf_printf(&f->log, "gone: %s\n", why->msg);
}

static inline void on_lost(void *ctx, struct exchange *x, str id, const struct err *why)
{
    struct fake *f = ctx;

    f->losses++;
    f->why = why->code;
    if (f->losses > 10)
        return;
    buf_printf(&f->log, "%d:lost ", number_of(x));
    buf_add(&f->log, id);
    buf_printf(&f->log, " (%d)\n", (int)why->code);
}

static inline void on_server_end(void *ctx, const struct share_end *how)
{
    struct fake *f = ctx;

    f->ends++;
    f->how = *how;
}

static const struct endpoint_events events = { on_span, on_ended, on_drained, on_gone,
                                               NULL };

static inline void on_say(void *ctx, const char *sentence)
{
    (void)ctx;
    buf_printf(&lab.said, "%s\n", sentence);
}

static inline void on_share_gone(void *ctx)
{
    (void)ctx;
    share_free(lab.share);
    lab.share = NULL;
    lab.gone = true;
}

/* --- the laboratory --- */

static inline void read_got(void)
{
    char path[128];
    struct err err;

    snprintf(path, sizeof(path), "%s/got", lab.dir);
    buf_reset(&lab.got);
    if (access(path, F_OK) == 0 && file_read(path, &lab.got, &err) < 0)
        ok(false, "%s", err.msg);
}

static inline void on_look(void *ctx)
{
    (void)ctx;
    read_got();
    if (lab.is_done())
        loop_stop(lab.loop);
}

static inline void on_patience(void *ctx)
{
    (void)ctx;
    lab.late = true;
    loop_stop(lab.loop);
}

static inline bool wait_until(bool (*is_done)(void))
{
    lab.is_done = is_done;
    lab.late = false;
    loop_timer_set(lab.look, 2, true);
    loop_timer_set(lab.patience, PATIENCE, false);
    loop_run(lab.loop);
    loop_timer_stop(lab.look);
    loop_timer_stop(lab.patience);
    return !lab.late;
}

static const char *wanted;
static struct buf *wanted_in;

static inline bool has_wanted(void)
{
    return str_is(buf_str(wanted_in), wanted);
}

/* All of it, byte for byte. */
static inline void expect(struct buf *in, const char *text, const char *what)
{
    wanted = text;
    wanted_in = in;
    if (!ok(wait_until(has_wanted), "%s", what))
        printf("# wanted: %s\n# found:  %s\n", text, buf_cstr(in));
    buf_reset(in);
}

static inline void expect_got(const char *text, const char *what)
{
    char path[128];

    expect(&lab.got, text, what);
    snprintf(path, sizeof(path), "%s/got", lab.dir);
    if (truncate(path, 0) < 0)
        ok(false, "cannot empty what the server got");
}

static inline void expect_told(int member, const char *text, const char *what)
{
    expect(&lab.m[member].log, text, what);
}

static inline bool has_part(void)
{
    return wanted_in->n && memmem(wanted_in->p, wanted_in->n, wanted, strlen(wanted));
}

static inline void expect_said(const char *part, const char *what)
{
    wanted = part;
    wanted_in = &lab.said;
    if (!ok(wait_until(has_part), "%s", what))
        printf("# wanted: %s\n# said:  %s\n", part, buf_cstr(&lab.said));
    buf_reset(&lab.said);
}

static inline void act(const char *commands)
{
    struct err err;

    if (file_write(lab.strings, str_from(commands), NULL, &err) < 0)
        ok(false, "%s", err.msg);
}

static inline int sendx(int member, int exchange, str text)
{
    struct endpoint *e = lab.m[member].e;
    struct err err = { 0 };

    if (e->type->send(e, x_of(exchange), text, true, &err) == 0)
        return 0;
    printf("# %s\n", err.msg);
    return -1;
}

/* What the server got tells whether it went. */
static inline void tell(int member, int exchange, const char *text)
{
    (void)sendx(member, exchange, str_from(text));
}

static inline void join(int member)
{
    const struct share_member_options options = { &events, on_lost, on_server_end,
                                                  &lab.m[member] };
    struct err err;

    lab.m[member] = (struct fake){ .log = { .max = (size_t)200 << 20 } };
    if (share_join(lab.share, &options, &lab.m[member].e, &err) < 0)
        ok(false, "%s", err.msg);
    lab.m[member].e->type->read(lab.m[member].e, true);
}

static inline void leave(int member)
{
    struct fake *f = &lab.m[member];

    if (f->e)
        f->e->type->close(f->e);
    buf_release(&f->log);
    *f = (struct fake){ 0 };
}

static inline void begin(int members)
{
    static char puppet[] = "tests/proxy/puppet.py";
    char *argv[] = { puppet, lab.dir, NULL };
    static char *kept[3];
    struct share_options options = { .say = on_say };
    char path[128];
    struct err err = { 0 };

    memcpy(kept, argv, sizeof(argv));
    snprintf(lab.dir, sizeof(lab.dir), "/tmp/assay-share-XXXXXX");
    if (!mkdtemp(lab.dir))
        exit(1);
    snprintf(path, sizeof(path), "%s/do", lab.dir);
    if (mkfifo(path, 0600) < 0)
        exit(1);
    lab.strings = open(path, O_RDWR | O_CLOEXEC);
    lab.got.max = lab.said.max = (size_t)64 << 20;
    lab.gone = false;
    if (loop_new(&lab.loop, &err) < 0 ||
        loop_timer_new(&lab.look, lab.loop, on_look, NULL, &err) < 0 ||
        loop_timer_new(&lab.patience, lab.loop, on_patience, NULL, &err) < 0)
        exit(1);
    options.loop = lab.loop;
    options.argv = kept;
    if (!ok(share_open(&lab.share, &options, &err) == 0, "a server: %s", err.msg))
        exit(1);
    for (int i = 0; i < members; i++)
        join(i);
}

static inline bool is_gone(void)
{
    return lab.gone;
}

static inline void end(void)
{
    struct err err;

    for (int i = 0; i < MEMBERS; i++)
        leave(i);
    share_finish(lab.share, on_share_gone, NULL);
    ok(wait_until(is_gone), "the server goes");
    loop_timer_free(lab.look);
    loop_timer_free(lab.patience);
    loop_free(lab.loop);
    file_close(&lab.strings);
    buf_release(&lab.said);
    buf_release(&lab.got);
    if (file_remove_tree(lab.dir, &err) < 0)
        ok(false, "%s", err.msg);
    lab = (struct lab){ 0 };
}

/* --- words --- */

#define CANCEL(id)                                                                       \
    "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":" id "}}\n"
#define OUR_CANCEL(id)                                                                          \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":" id \
    "}}\n"
#define RESOURCE(id, what, uri)                                                          \
    "{\"id\":" id ",\"method\":\"resources/" what "\",\"params\":{\"uri\":" uri "}}\n"
#define OUR_RESOURCE(id, what, uri)                                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"resources/" what                    \
    "\",\"params\":{\"uri\":" uri "}}\n"

#endif
