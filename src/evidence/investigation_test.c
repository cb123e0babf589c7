/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/investigation.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "evidence/logcheck.h"
#include "tests/lab.h"
#include "tests/tap.h"

#define SESSION "mcp_0123456789abcdef"
#define FILE_OF "investigation/session_0123456789abcdef.jsonl"

static const char pepper[] = "0123456789abcdef0123456789abcdef";

/* One session with investigation on, as the proxy will write it. */
struct scene {
    struct lab l;
    struct log *log;
    struct investigation kept;
    int64_t n;
    bool keyed;
};

static uint64_t append(struct scene *s, struct event *e)
{
    const struct event *events[] = { e };
    struct err err = { 0 };
    uint64_t upto = 0;

    event_add_cstr(e, "session", SESSION);
    event_add_int(e, "n", s->n++);
    if (log_append(s->log, events, 1, &upto, &err) < 0)
        ok(false, "%s", err.msg);
    return upto - 1;
}

static uint64_t append_message(struct scene *s, enum event_type type, str message)
{
    CLEANUP(event_release) struct event e = { 0 };
    CLEANUP(buf_release) struct buf text = { 0 };
    struct digest d = s->keyed ? hmac_of(STR("0123456789abcdef0123456789abcdef"), message)
                               : digest_of(message);

    buf_add(&text, s->keyed ? STR("hmac-sha256:") : STR("sha256:"));
    digest_add_hex(&text, &d);
    event_init(&e, type);
    event_add_cstr(&e, "dir", "c2s");
    event_add_cstr(&e, "kind", "request");
    event_add_int(&e, "bytes", (int64_t)message.n);
    event_add_text(&e, "digest", buf_str(&text));
    return append(s, &e);
}

static void message(struct scene *s, str bytes)
{
    struct err err = { 0 };
    uint64_t seq = append_message(s, EVENT_REQUEST_RECEIVED, bytes);

    if (investigation_write(&s->kept, seq, "c2s", bytes, &err) < 0)
        ok(false, "%s", err.msg);
    append_message(s, EVENT_REQUEST_FORWARDED, bytes);
}

static void begin(struct scene *s, bool keyed)
{
    CLEANUP(event_release) struct event e = { 0 };
    struct log_options o;
    struct err err = { 0 };

    *s = (struct scene){ .l = lab_make(), .keyed = keyed };
    o = lab_options(&s->l);
    o.say = NULL;
    if (log_open(&s->log, &o, &err) < 0 ||
        investigation_open(&s->kept, s->l.audit, SESSION, &err) < 0) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    event_init(&e, EVENT_SESSION_START);
    event_add_cstr(&e, "server_id", "s");
    event_add_cstr(&e, "transport", "stdio");
    event_add_cstr(&e, "client_transport", "stdio");
    event_add_cstr(&e, "profile", "audit");
    event_add_bool(&e, "investigation", true);
    append(s, &e);
}

static void end_session(struct scene *s)
{
    static const char *const counts[] = { "requests", "calls",         "denied",
                                          "lost",     "interventions", "undelivered",
                                          "events" };
    CLEANUP(event_release) struct event e = { 0 };

    event_init(&e, EVENT_SESSION_END);
    event_add_bool(&e, "complete", true);
    event_add_cstr(&e, "reason", "client_eof");
    for (size_t i = 0; i < COUNT(counts); i++)
        event_add_int(&e, counts[i], 0);
    append(s, &e);
    investigation_close(&s->kept);
}

static void finish(struct scene *s)
{
    struct err err = { 0 };

    if (s->log && log_close(s->log, &err) < 0)
        ok(false, "%s", err.msg);
    investigation_close(&s->kept);
    lab_remove(&s->l);
}

/* The number of findings; all must be about payloads. */
static int findings(struct scene *s, bool with_pepper, struct logcheck *c)
{
    struct logcheck_options o = { .investigation = true };
    struct err err = { 0 };

    if (with_pepper)
        o.pepper = str_from(pepper);
    if (s->log && log_checkpoint(s->log, true, &err) < 0)
        printf("# %s\n", err.msg);
    if (logcheck_run(c, s->l.audit, &o, &err) < 0) {
        printf("# %s\n", err.msg);
        return -1;
    }
    for (unsigned i = 0; i < c->findings; i++) {
        printf("# %s %s\n", logcheck_code_name(c->finding[i].code),
               c->finding[i].message);
        if (c->finding[i].code != LOGCHECK_PAYLOAD)
            return -1;
    }
    return (int)c->findings;
}

#define PLAIN "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"

static void three_messages(struct scene *s, bool keyed)
{
    begin(s, keyed);
    message(s, STR(PLAIN));
    message(s, STR("caf\xc3\xa9 \"quoted\" \x01 \xe2\x80\xa8 \xf0\x9f\x98\x80\n"));
    message(s, STR("not \xff UTF-8\0\n"));
}

/* Written by hand, and the base64 by base64(1). */
static const char frozen[] =
    "{\"bytes\":41,\"dir\":\"c2s\",\"log_seq\":2,\"text\":"
    "\"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":1,\\\"method\\\":\\\"ping\\\"}\\n\"}\n"
    "{\"bytes\":26,\"dir\":\"c2s\",\"log_seq\":4,\"text\":"
    "\"caf\xc3\xa9 \\\"quoted\\\" \\u0001 \xe2\x80\xa8 \xf0\x9f\x98\x80\\n\"}\n"
    "{\"base64\":\"bm90IP8gVVRGLTgACg==\",\"bytes\":13,\"dir\":\"c2s\",\"log_seq\":6}\n";

static void test_keeping(void)
{
    static struct logcheck c;
    CLEANUP(buf_release) struct buf text = { 0 };
    struct scene s;
    struct err err = { 0 };
    struct stat st;

    three_messages(&s, false);
    ok(findings(&s, false, &c) == 0 && c.payloads == 3,
       "three payloads agree while the session goes on");
    end_session(&s);
    ok(findings(&s, false, &c) == 0 && c.payloads == 3, "and after its end");
    ok(file_read(lab_path(&s.l, FILE_OF), &text, &err) == 0 &&
           str_is(buf_str(&text), frozen),
       "the lines are as documented");
    ok(stat(lab_path(&s.l, FILE_OF), &st) == 0 && (st.st_mode & 0777) == 0600 &&
           stat(lab_path(&s.l, "investigation"), &st) == 0 && (st.st_mode & 0777) == 0700,
       "nobody else can read them");
    finish(&s);
}

static void test_keyed(void)
{
    static struct logcheck c;
    struct scene s;

    three_messages(&s, true);
    end_session(&s);
    ok(findings(&s, true, &c) == 0 && c.payloads == 3, "keyed digests with the pepper");
    ok(findings(&s, false, &c) == 1 && c.payloads == 0,
       "without it the payloads are not called good, and that is said once");
    finish(&s);
}

/* --- spoiling --- */

static void edit(struct scene *s, const char *from, const char *to)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    CLEANUP(buf_release) struct buf out = { 0 };
    struct err err = { 0 };
    const char *at;

    if (file_read(lab_path(&s->l, FILE_OF), &text, &err) < 0)
        ok(false, "%s", err.msg);
    at = memmem(text.p, text.n, from, strlen(from));
    if (!at)
        ok(false, "there is '%s'", from);
    else {
        buf_add(&out, str_of(text.p, (size_t)(at - text.p)));
        buf_add(&out, str_from(to));
        buf_add(&out, str_skip(buf_str(&text), (size_t)(at - text.p) + strlen(from)));
    }
    if (file_put(lab_path(&s->l, FILE_OF), buf_str(&out), 0600, &err) < 0)
        ok(false, "%s", err.msg);
}

static const struct {
    const char *what, *from, *to;
    int findings;
} edits[] = {
    { "a changed text", "ping", "pong", 1 },
    { "a changed length", "\"bytes\":41", "\"bytes\":42", 1 },
    { "a changed direction", "c2s", "s2c", 1 },
    { "a payload moved to another event", "\"log_seq\":2", "\"log_seq\":3", 1 },
    { "a payload of an event before", "\"log_seq\":4", "\"log_seq\":1", 2 },
    { "a payload of an event to come", "\"log_seq\":6", "\"log_seq\":600", 2 },
    { "no log_seq", "\"log_seq\":4,", "", 2 },
    { "a line that is no JSON", "{\"base64\"", "{base64\"", 2 },
    { "base64 of another spelling", "bm90IP8gVVRGLTgACg==", "bm90IP8gVVRGLTgACh==", 1 },
    { "base64 of something else", "bm90", "bm91", 1 },
    { "no payload", "\"text\":\"caf", "\"test\":\"caf", 1 },
    { "a file of another name", "\"log_seq\":2,\"text\"",
      "\"file\":\"../x\",\"log_seq\":2,\"text\"", 1 },
    { "half a line at the end", "\"log_seq\":6}\n", "\"log_seq\":6}", 2 },
};

static void test_edits(void)
{
    static struct logcheck c;

    for (size_t i = 0; i < COUNT(edits); i++) {
        struct scene s;
        int found;

        three_messages(&s, false);
        end_session(&s);
        edit(&s, edits[i].from, edits[i].to);
        found = findings(&s, false, &c);
        ok(found == edits[i].findings, "%s: %d findings", edits[i].what, found);
        finish(&s);
    }
}

static void test_missing(void)
{
    static struct logcheck c;
    struct scene s;
    struct err err = { 0 };

    three_messages(&s, false);
    append_message(&s, EVENT_RESPONSE_RECEIVED, STR("unkept"));
    ok(findings(&s, false, &c) == 0, "a payload that is still to come is not missed");
    message(&s, STR("later"));
    ok(findings(&s, false, &c) == 1, "when a later one is there, it is");
    end_session(&s);
    ok(findings(&s, false, &c) == 1, "and when the session has ended");
    ok(unlink(lab_path(&s.l, FILE_OF)) == 0 && findings(&s, false, &c) == 1 &&
           strstr(c.finding[0].message, "no event says"),
       "a deleted file is missed");
    ok(file_put(lab_path(&s.l, "investigation/session_ffffffffffffffff.jsonl"),
                STR("x\n"), 0600, &err) == 0 &&
           findings(&s, false, &c) == 2,
       "and payloads of a stranger are noticed");
    finish(&s);
}

/* --- forgetting --- */

static void test_forgetting(void)
{
    static struct logcheck c;
    struct scene s;
    struct err err = { 0 };
    uint64_t files = 0;
    char name[INVESTIGATION_NAME_MAX + 16] = "investigation/";

    three_messages(&s, false);
    ok(investigation_forget(s.log, SESSION, &files, &err) < 0 && err.code == ERR_REFUSED,
       "not while it is recorded: %s", err.msg);
    end_session(&s);
    investigation_own_name(name + strlen(name), SESSION, 2);
    ok(file_put(lab_path(&s.l, name), STR("long"), 0600, &err) == 0 &&
           file_put(lab_path(&s.l, "investigation/session_0123456789abcde0.jsonl"),
                    STR(""), 0600, &err) == 0,
       "a file of its own, and one of another session");
    ok(investigation_forget(s.log, SESSION, &files, &err) == 0 && files == 2,
       "two files are forgotten: %s", err.msg);
    ok(access(lab_path(&s.l, FILE_OF), F_OK) < 0 &&
           access(lab_path(&s.l, name), F_OK) < 0,
       "they are gone");
    ok(access(lab_path(&s.l, "investigation/session_0123456789abcde0.jsonl"), F_OK) ==
               0 &&
           unlink(lab_path(&s.l, "investigation/session_0123456789abcde0.jsonl")) == 0,
       "the other session's is not");
    ok(findings(&s, false, &c) == 0 && c.forgotten == 1 && c.payloads == 0,
       "the chain verifies, and the payloads are forgotten, not missing");
    ok(investigation_forget(s.log, SESSION, &files, &err) < 0 && err.code == ERR_NOTFOUND,
       "a second time there is nothing: %s", err.msg);
    ok(investigation_forget(s.log, "../../x", &files, &err) < 0 && err.code == ERR_FORMAT,
       "a name is never a path: %s", err.msg);
    ok(file_put(lab_path(&s.l, FILE_OF), STR(""), 0600, &err) == 0 &&
           findings(&s, false, &c) >= 1,
       "forgotten and still there is said");
    finish(&s);
}

/* --- the limit of a line --- */

static void test_long_messages(void)
{
    static struct logcheck c;
    struct scene s;
    struct stat st;
    size_t n = INVESTIGATION_INLINE_MAX;
    char *big = malloc(n + 1);
    char name[INVESTIGATION_NAME_MAX + 16] = "investigation/";

    if (!big)
        exit(99);
    memset(big, 'x', n + 1);
    for (size_t i = 1000; i + 3 < n; i += 49151) /* characters over the pieces' borders */
        memcpy(big + i, "\xe2\x82\xac", 3);
    begin(&s, false);
    message(&s, str_of(big, n));
    message(&s, str_of(big, n + 1));
    end_session(&s);
    ok(findings(&s, false, &c) == 0 && c.payloads == 2, "64 MiB and a byte more");
    investigation_own_name(name + strlen(name), SESSION, 4);
    ok(stat(lab_path(&s.l, name), &st) == 0 && (size_t)st.st_size == n + 1 &&
           (st.st_mode & 0777) == 0600,
       "the longer one has a file of its own");
    ok(stat(lab_path(&s.l, FILE_OF), &st) == 0 && (size_t)st.st_size > n &&
           (size_t)st.st_size < n + 1000,
       "the other one a line");
    ok(truncate(lab_path(&s.l, name), 10) == 0 && findings(&s, false, &c) == 1,
       "a cut file is found");
    ok(unlink(lab_path(&s.l, name)) == 0 &&
           symlink("/etc/passwd", lab_path(&s.l, name)) == 0 &&
           findings(&s, false, &c) == 1,
       "a link is not followed");
    free(big);
    finish(&s);
}

static void test_opening(void)
{
    struct scene s;
    struct investigation second = { .fd = -1 };
    struct err err = { 0 };

    begin(&s, false);
    ok(investigation_open(&second, s.l.audit, SESSION, &err) < 0 &&
           err.code == ERR_REFUSED,
       "one writer at a time: %s", err.msg);
    ok(investigation_open(&second, s.l.audit, "mcp_../..", &err) < 0, "no path: %s",
       err.msg);
    investigation_close(&second);
    end_session(&s);
    finish(&s);
}

int main(void)
{
    test_opening();
    test_keeping();
    test_keyed();
    test_edits();
    test_missing();
    test_forgetting();
    test_long_messages();
    return tap_done();
}
