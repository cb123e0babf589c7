/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/live.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "tests/lab.h"
#include "tests/tap.h"

#define DEAD "w_00000000000000dd"

static struct lab make_place(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };

    if (file_make_dirs(lab_path(&l, "live"), 0700, &err) < 0)
        exit(99);
    return l;
}

/* A process that opens an entry with two sessions, ends one, and waits to be killed. */
static pid_t start_writer(const struct lab *l, const char *writer, int *ready)
{
    int fds[2];
    pid_t pid;

    if (pipe(fds) < 0)
        exit(99);
    pid = fork();
    if (pid == 0) {
        struct live live = { .fd = -1 };
        struct err err = { 0 };

        if (live_open(&live, l->audit, writer, 120, &err) < 0 ||
            live_begin_session(&live, "mcp_0000000000000001", 121, "session_a.jsonl",
                               &err) < 0 ||
            live_begin_session(&live, "mcp_0000000000000002", 130, "session_b.jsonl",
                               &err) < 0 ||
            live_end_session(&live, "mcp_0000000000000001", &err) < 0)
            _exit(1);
        if (write(fds[1], "r", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(fds[1]);
    *ready = fds[0];
    return pid;
}

static bool wait_ready(int ready)
{
    char c;
    bool is_ready = read(ready, &c, 1) == 1;

    close(ready);
    return is_ready;
}

static void kill_writer(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* 1 alive, 0 dead, -1 not listed. */
static int state_of(const struct lab *l, const char *writer)
{
    CLEANUP(live_list_release) struct live_list list = { 0 };
    struct err err = { 0 };

    if (live_list(&list, l->audit, &err) < 0)
        return -2;
    for (size_t i = 0; i < list.count; i++) {
        if (strcmp(list.entry[i].writer, writer) == 0)
            return list.entry[i].alive;
    }
    return -1;
}

static void test_life_and_death(void)
{
    struct lab l = make_place();
    struct live_dead d = { .fd = -1 };
    struct err err = { 0 };
    bool taken = true;
    int ready;
    pid_t pid;

    ok(state_of(&l, DEAD) == -1, "nobody is there");
    pid = start_writer(&l, DEAD, &ready);
    ok(wait_ready(ready), "a writer appears");
    ok(state_of(&l, DEAD) == 1, "it lives");
    ok(live_take(&d, &taken, l.audit, DEAD, &err) == 0 && !taken,
       "and is not taken over");
    kill(pid, SIGSTOP);
    ok(state_of(&l, DEAD) == 1, "stopped is not dead");
    kill_writer(pid);
    ok(state_of(&l, DEAD) == 0, "killed is dead");
    ok(live_take(&d, &taken, l.audit, DEAD, &err) == 0 && taken, "and can be taken: %s",
       err.msg);
    ok(d.from == 120 && d.count == 1 &&
           strcmp(d.session[0].id, "mcp_0000000000000002") == 0 &&
           d.session[0].first == 130 &&
           strcmp(d.session[0].receipts, "session_b.jsonl") == 0,
       "with the session that it had open");
    ok(state_of(&l, DEAD) == 1, "in our hands it does not look dead to others");
    ok(live_bury(&d, &err) == 0 && state_of(&l, DEAD) == -1, "buried it is gone");
    live_dead_release(&d);
    ok(live_take(&d, &taken, l.audit, DEAD, &err) == 0 && !taken,
       "and not taken a second time");
    lab_remove(&l);
}

static void test_clean_end(void)
{
    struct lab l = make_place();
    struct live live = { .fd = -1 };
    struct err err = { 0 };

    ok(live_open(&live, l.audit, DEAD, 0, &err) == 0 && state_of(&l, DEAD) == 1,
       "we live: %s", err.msg);
    live_close(&live);
    ok(state_of(&l, DEAD) == -1, "a clean end leaves nothing");
    live_close(&live);
    ok(live_open(&live, l.audit, DEAD, 0, &err) == 0, "again: %s", err.msg);
    live_abandon(&live);
    ok(state_of(&l, DEAD) == 0, "an abandoned entry is a dead one");
    lab_remove(&l);
}

/* Eight processes at once; each that takes it holds it until all have tried. */
static void race_one(const struct lab *l, int shot, int report, int hold)
{
    struct live_dead d = { .fd = -1 };
    struct err err = { 0 };
    bool taken = false;
    char c;

    if (read(shot, &c, 1) < 0 || live_take(&d, &taken, l->audit, DEAD, &err) < 0)
        _exit(1);
    c = taken ? 't' : 'n';
    if (write(report, &c, 1) != 1 || read(hold, &c, 1) < 0)
        _exit(1);
    _exit(0);
}

static void test_race(int round)
{
    struct lab l = make_place();
    int ready, shot[2], report[2], hold[2], taken = 0, refused = 0;
    pid_t pid = start_writer(&l, DEAD, &ready);
    char c;

    if (!wait_ready(ready) || pipe(shot) < 0 || pipe(report) < 0 || pipe(hold) < 0)
        exit(99);
    kill_writer(pid);
    for (int i = 0; i < 8; i++) {
        if (fork() == 0) {
            close(shot[1]);
            close(hold[1]);
            race_one(&l, shot[0], report[1], hold[0]);
        }
    }
    close(shot[1]);
    for (int i = 0; i < 8 && read(report[0], &c, 1) == 1; i++) {
        taken += c == 't';
        refused += c == 'n';
    }
    close(hold[1]);
    while (wait(NULL) > 0)
        continue;
    ok(taken == 1 && refused == 7, "race %d: one of eight takes it over", round);
    for (int i = 0; i < 2; i++)
        close(report[i]);
    close(shot[0]);
    close(hold[0]);
    lab_remove(&l);
}

static const char garbled[] =
    "{\"from\":7,\"writer\":\"" DEAD "\"}\n"
    "half a li\n"
    "{\"first\":8,\"receipts\":\"../../etc/passwd\",\"session\":\"mcp_0000000000000001\"}\n"
    "{\"first\":-1,\"receipts\":\"a.jsonl\",\"session\":\"mcp_0000000000000002\"}\n"
    "{\"first\":8,\"receipts\":\"a.jsonl\"}\n"
    "{\"first\":8,\"receipts\":7,\"session\":\"mcp_0000000000000003\"}\n"
    "{\"first\":9,\"receipts\":\"b.jsonl\",\"session\":\"mcp_0000000000000004\"}\n"
    "[]\n\n\"x\"\nnull\n"
    "{\"first\":9,\"receipts\":\"b.jsonl\",\"session\":\"mcp_00000000000000040000000\"}\n"
    "{\"ended\":\"mcp_0000000000000009\"}\n"
    "{\"ended\":{}}\n"
    "{\"first\":9,\"receipts\":\"c.jsonl\",\"session\":\"mcp_00000000";

static void test_garbled(void)
{
    struct lab l = make_place();
    struct live_dead d = { .fd = -1 };
    struct err err = { 0 };
    bool taken = false;

    if (file_put(lab_path(&l, "live/" DEAD), str_from(garbled), 0600, &err) < 0)
        exit(99);
    ok(live_take(&d, &taken, l.audit, DEAD, &err) == 0 && taken,
       "an entry with garbled lines is taken: %s", err.msg);
    ok(d.from == 7 && d.count == 1 &&
           strcmp(d.session[0].id, "mcp_0000000000000004") == 0,
       "what can be read is read, the rest is passed over (%zu)", d.count);
    live_dead_release(&d);
    lab_remove(&l);
}

static void test_strangers(void)
{
    static const char *const names[] = { "live/README", "live/w_0123",
                                         "live/.new-w_00000000000000dd",
                                         "live/w_0123456789ABCDEF" };
    CLEANUP(live_list_release) struct live_list list = { 0 };
    struct lab l = make_place();
    struct live_dead d = { .fd = -1 };
    struct err err = { 0 };
    bool taken = false;

    for (size_t i = 0; i < COUNT(names); i++) {
        if (file_put(lab_path(&l, names[i]), STR("x"), 0600, &err) < 0)
            exit(99);
    }
    ok(live_list(&list, l.audit, &err) == 0 && list.count == 0,
       "other files are no writers");
    ok(live_take(&d, &taken, l.audit, "../../x", &err) < 0 && !taken,
       "a name is never a path: %s", err.msg);
    ok(symlink("README", lab_path(&l, "live/" DEAD)) == 0 &&
           live_take(&d, &taken, l.audit, DEAD, &err) < 0 && !taken,
       "a link is not followed: %s", err.msg);
    lab_remove(&l);
}

static void add_sessions(struct buf *text, int count)
{
    buf_reset(text);
    for (int i = 0; i < count; i++)
        buf_printf(text, "{\"first\":1,\"receipts\":\"r\",\"session\":\"mcp_%016x\"}\n",
                   (unsigned)i);
}

static void test_session_limit(void)
{
    CLEANUP(buf_release) struct buf text = { .max = (size_t)32 << 20 };
    struct lab l = make_place();
    struct live_dead d = { .fd = -1 };
    struct err err = { 0 };
    bool taken = false;

    add_sessions(&text, LIVE_SESSIONS_MAX);
    ok(file_put(lab_path(&l, "live/" DEAD), buf_str(&text), 0600, &err) == 0 &&
           live_take(&d, &taken, l.audit, DEAD, &err) == 0 &&
           d.count == LIVE_SESSIONS_MAX,
       "%d open sessions: %s", LIVE_SESSIONS_MAX, err.msg);
    live_dead_release(&d);
    add_sessions(&text, LIVE_SESSIONS_MAX + 1);
    ok(file_put(lab_path(&l, "live/" DEAD), buf_str(&text), 0600, &err) == 0 &&
           live_take(&d, &taken, l.audit, DEAD, &err) < 0 && err.code == ERR_LIMIT,
       "one more is refused: %s", err.msg);
    lab_remove(&l);
}

static void test_writer_limit(void)
{
    struct lab l = make_place();
    struct err err = { 0 };
    char name[64];

    for (int i = 0; i <= LIVE_WRITERS_MAX; i++) {
        CLEANUP(live_list_release) struct live_list list = { 0 };
        int fd;

        if (i == LIVE_WRITERS_MAX)
            ok(live_list(&list, l.audit, &err) == 0 && list.count == LIVE_WRITERS_MAX,
               "%d writers: %s", LIVE_WRITERS_MAX, err.msg);
        snprintf(name, sizeof(name), "live/w_%016x", (unsigned)i);
        fd = open(lab_path(&l, name), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        if (fd < 0)
            exit(99);
        close(fd);
    }
    ok(state_of(&l, DEAD) == -2, "one more is refused");
    lab_remove(&l);
}

/* A full disk, after half a line. */
static void test_half_a_line(void)
{
    struct lab l = make_place();
    struct err err = { 0 };
    struct live live = { .fd = -1 };
    struct live_dead dead = { .fd = -1 };
    struct rlimit before = { 0 }, small;
    struct stat st = { 0 };
    bool taken = false;

    signal(SIGXFSZ, SIG_IGN);
    ok(live_open(&live, l.audit, DEAD, 1, &err) == 0 && fstat(live.fd, &st) == 0 &&
           getrlimit(RLIMIT_FSIZE, &before) == 0,
       "open: %s", err.msg);
    small = before;
    small.rlim_cur = (rlim_t)st.st_size + 10;
    ok(setrlimit(RLIMIT_FSIZE, &small) == 0 &&
           live_begin_session(&live, "mcp_0000000000000001", 2, "session_a.jsonl", &err) <
               0,
       "no room: %s", err.msg);
    ok(setrlimit(RLIMIT_FSIZE, &before) == 0 &&
           live_begin_session(&live, "mcp_0000000000000002", 3, "session_b.jsonl",
                              &err) == 0,
       "room again: %s", err.msg);
    live_abandon(&live);
    ok(live_take(&dead, &taken, l.audit, DEAD, &err) == 0 && taken && dead.count == 1 &&
           strcmp(dead.session[0].id, "mcp_0000000000000002") == 0,
       "the next session is listed");
    live_dead_release(&dead);
    lab_remove(&l);
}

static void test_a_pipe_holds_nobody_up(void)
{
    struct lab l = make_place();
    struct live_list list = { 0 };
    struct err err = { 0 };

    ok(mkfifo(lab_path(&l, "live/" DEAD), 0600) == 0, "a pipe");
    alarm(20);
    ok(live_list(&list, l.audit, &err) == 0, "listed: %s", err.msg);
    alarm(0);
    live_list_release(&list);
    lab_remove(&l);
}

int main(void)
{
    test_life_and_death();
    test_clean_end();
    for (int i = 0; i < 5; i++)
        test_race(i);
    test_garbled();
    test_half_a_line();
    test_a_pipe_holds_nobody_up();
    test_strangers();
    test_session_limit();
    test_writer_limit();
    return tap_done();
}
