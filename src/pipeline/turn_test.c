/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/turn.h"

#include <sys/stat.h>

#include "pipeline/relay_internal.h"
#include "tests/recording.h"
#include "tests/tap.h"

/* As much of a session's relay as a turn sees of it. */
struct party {
    struct relay relay;
    struct desk desk;
};

static void sit_down(struct party *p, struct recording *r)
{
    const struct tap_options options = { .session = recording_another(r, "audit") };

    tap_init(&p->desk.tap, &options);
    p->relay.session = options.session;
    p->relay.desk = &p->desk;
}

static void get_up(struct party *p)
{
    tap_release(&p->desk.tap);
    session_free(p->relay.session);
}

/* What one message does: it joins, and is recorded. */
static bool say(struct turn *t, struct party *p)
{
    struct err err = { 0 };
    str text = STR("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n");

    turn_join(t, &p->relay);
    return tap_receive(&p->desk.tap, TO_SERVER, text, NULL, 0, &err) == 0;
}

static bool say_often(struct turn *t, struct party *p, size_t parties, unsigned times)
{
    bool good = true;

    for (unsigned i = 0; i < times; i++)
        good = say(t, &p[i % parties]) && good;
    return good;
}

static off_t log_bytes(const struct recording *r)
{
    char path[FILE_PATH_MAX];
    struct stat st = { 0 };

    snprintf(path, sizeof(path), "%s/log/segments/00000000000000000000.jsonl", r->dir);
    return stat(path, &st) == 0 ? st.st_size : -1;
}

static void test_one_write(struct recording *r, struct loop *loop, struct party *p)
{
    off_t before = log_bytes(r);
    struct turn t;

    turn_init(&t, loop, r->log);
    ok(say_often(&t, p, 3, 9) && log_bytes(r) == before,
       "what three say in a turn waits");
    loop_run(loop);
    ok(log_bytes(r) > before && !log_is_held(r->log), "and is written at its end");
    before = log_bytes(r);
    ok(say(&t, &p[0]), "one more");
    turn_leave(&t, &p[1].relay);
    ok(log_bytes(r) == before, "who takes no part may leave");
    turn_leave(&t, &p[0].relay);
    ok(log_bytes(r) > before && !p[0].relay.in_turn, "who does is written first");
    before = log_bytes(r);
    loop_run(loop);
    ok(log_bytes(r) == before, "once");
}

static void test_the_limit(struct recording *r, struct loop *loop, struct party *p)
{
    off_t before = log_bytes(r);
    struct turn t;

    turn_init(&t, loop, r->log);
    ok(say_often(&t, p, 3, TURN_MESSAGES) && log_bytes(r) == before,
       "%d messages share a write", TURN_MESSAGES);
    ok(say(&t, &p[0]) && log_bytes(r) > before, "one more begins the next");
    before = log_bytes(r);
    ok(log_is_held(r->log) && say(&t, &p[1]) && log_bytes(r) == before,
       "which others join");
    loop_run(loop);
    ok(log_bytes(r) > before && !log_is_held(r->log), "and which ends with the turn");
}

int main(void)
{
    struct recording r;
    struct loop *loop;
    struct party p[3] = { 0 };
    struct err err = { 0 };

    recording_open(&r);
    if (loop_new(&loop, &err) < 0) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    for (size_t i = 0; i < 3; i++)
        sit_down(&p[i], &r);
    test_one_write(&r, loop, p);
    test_the_limit(&r, loop, p);
    for (size_t i = 0; i < 3; i++)
        get_up(&p[i]);
    loop_free(loop);
    recording_close(&r);
    return tap_done();
}
