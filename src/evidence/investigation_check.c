/* SPDX-License-Identifier: Apache-2.0 */
/* The payloads against the events, one walk through both: lines of a session ascend as
 * its events do. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>

#include "base/buf.h"
#include "base/codec.h"
#include "base/err.h"
#include "evidence/event.h"
#include "evidence/investigation.h"

/* What is kept of one session. */
struct kept {
    char session[ID_MAX];
    bool promised;       /* session_start said that payloads are kept */
    bool there;          /* the file is */
    bool ended;          /* session_end has been seen */
    bool forgotten;      /* payloads_forgotten has */
    bool keyed;          /* said that we lack the pepper */
    struct mapping file; /* while the session goes on */
    str rest;            /* of it */
    str line;            /* the next one; empty at the end */
    uint64_t seq;        /* that it belongs to */
    uint64_t missing;    /* received messages since the last line */
    uint64_t missing_at; /* the first of them */
};

static void find(struct investigation_check *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void find(struct investigation_check *c, const char *fmt, ...)
{
    char sentence[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    c->on_finding(c->ctx, sentence);
}

int investigation_check_init(struct investigation_check *c, const char *audit_dir,
                             str pepper, struct err *err)
{
    *c = (struct investigation_check){ .pepper = pepper,
                                       .payload = { .max = INVESTIGATION_INLINE_MAX } };
    return path_join(c->dir, audit_dir, "investigation", err);
}

static void kept_release(struct kept *k)
{
    mapping_release(&k->file);
    k->rest = k->line = STR("");
}

void investigation_check_release(struct investigation_check *c)
{
    struct kept *k;

    for (size_t i = 0; (k = map_next(&c->sessions, &i));) {
        kept_release(k);
        free(k);
    }
    map_release(&c->sessions);
    json_release(&c->json);
    buf_release(&c->payload);
}

/* --- lines --- */

/* Map the file, or map it again when it has grown; *there is false without a file. */
static int map_file(struct investigation_check *c, struct kept *k, bool *there,
                    struct err *err)
{
    CLEANUP(file_close) int fd = -1;
    char name[INVESTIGATION_NAME_MAX], path[FILE_PATH_MAX];
    size_t done = k->file.bytes.n - k->rest.n;
    struct mapping fresh = { { NULL, 0 } };
    struct err bad = { 0 };

    investigation_name(name, k->session);
    if (path_join(path, c->dir, name, err) < 0)
        return -1;
    fd = file_open(path, O_RDONLY | O_NOFOLLOW, 0, &bad);
    *there = fd >= 0;
    if (fd < 0 && bad.code == ERR_NOTFOUND)
        return 0;
    if (fd < 0 || mapping_open(&fresh, fd, path, &bad) < 0) {
        *err = bad;
        return -1;
    }
    mapping_release(&k->file);
    k->file = fresh;
    k->rest = str_skip(fresh.bytes, done);
    return 0;
}

static bool read_seq(struct investigation_check *c, struct kept *k)
{
    struct err why = { 0 };
    int64_t seq;

    if (json_parse(&c->json, k->line, NULL, &why) == 0 &&
        json_int(&c->json, json_member(&c->json, JSON_ROOT, STR("log_seq")), &seq) &&
        seq >= 0) {
        k->seq = (uint64_t)seq;
        return true;
    }
    find(c, "a line of the payloads of %s cannot be read", k->session);
    return false;
}

/* The next line that can be read; an empty one at the end. */
static int next_line(struct investigation_check *c, struct kept *k, struct err *err)
{
    bool there;

    for (;;) {
        if (!str_line(&k->rest, &k->line)) {
            k->line = STR("");
            if (map_file(c, k, &there, err) < 0)
                return -1;
            if (!there || !str_line(&k->rest, &k->line))
                return 0;
        }
        if (read_seq(c, k))
            return 0;
    }
}

/* --- one payload --- */

static bool get_own_file(struct investigation_check *c, const struct kept *k,
                         uint32_t node, struct mapping *own)
{
    CLEANUP(file_close) int fd = -1;
    char name[INVESTIGATION_NAME_MAX], path[FILE_PATH_MAX];
    struct err ignored;

    investigation_own_name(name, k->session, k->seq);
    if (!json_string_is(&c->json, node, str_from(name)) ||
        path_join(path, c->dir, name, &ignored) < 0)
        return false;
    fd = file_open(path, O_RDONLY | O_NOFOLLOW, 0, &ignored);
    return fd >= 0 && mapping_open(own, fd, path, &ignored) == 0;
}

/* The payload of the line in c->json: in c->payload or in *own. */
static bool get_payload(struct investigation_check *c, const struct kept *k,
                        struct mapping *own, str *bytes)
{
    const struct json *j = &c->json;
    uint32_t text = json_member(j, JSON_ROOT, STR("text"));
    uint32_t base64 = json_member(j, JSON_ROOT, STR("base64"));
    uint32_t file = json_member(j, JSON_ROOT, STR("file"));
    size_t n;

    buf_reset(&c->payload);
    if (json_is(j, file, JSON_STRING)) {
        if (!get_own_file(c, k, file, own))
            return false;
        *bytes = own->bytes;
        return true;
    }
    if (json_is(j, text, JSON_STRING)) {
        json_unescape(j, text, &c->payload);
    } else if (json_is(j, base64, JSON_STRING)) {
        str raw = json_raw(j, base64);

        raw = str_of(raw.p + 1, raw.n - 2);
        if (!base64_length(&n, raw) || !buf_room(&c->payload, n) ||
            !base64_decode(c->payload.p, n, &c->payload.n, raw))
            return false;
    } else {
        return false;
    }
    *bytes = buf_str(&c->payload);
    return !c->payload.failed;
}

static bool digest_matches(struct investigation_check *c, str recorded, str bytes)
{
    bool keyed = str_starts(recorded, STR("hmac-sha256:"));
    struct digest d = keyed ? hmac_of(c->pepper, bytes) : digest_of(bytes), expected;

    if (!keyed && !str_starts(recorded, STR("sha256:")))
        return false;
    return digest_from_hex(&expected, str_skip(recorded, keyed ? 12 : 7)) &&
           digest_equal(&d, &expected);
}

static void compare(struct investigation_check *c, struct kept *k,
                    const struct event_view *v)
{
    struct mapping own = { { NULL, 0 } };
    const struct json *j = &c->json;
    str recorded = event_text(v, "digest"), direction = event_text(v, "dir"), bytes;
    int64_t length;

    if (str_starts(recorded, STR("hmac-sha256:")) && c->pepper.n == 0) {
        if (!k->keyed)
            find(c,
                 "the digests of %s are keyed: without the pepper its payloads cannot be "
                 "compared",
                 k->session);
        k->keyed = true;
        return;
    }
    if (!get_payload(c, k, &own, &bytes))
        find(c, "the payload of event %" PRIu64 " of %s cannot be read", v->seq,
             k->session);
    else if (!json_int(j, json_member(j, JSON_ROOT, STR("bytes")), &length) ||
             (uint64_t)length != bytes.n ||
             !json_string_is(j, json_member(j, JSON_ROOT, STR("dir")), direction) ||
             !digest_matches(c, recorded, bytes))
        find(c, "the payload of event %" PRIu64 " of %s is not the one that was recorded",
             v->seq, k->session);
    else
        c->compared++;
    mapping_release(&own);
}

/* --- sessions --- */

static uint64_t key_of(str session)
{
    uint8_t id[ID_HEX / 2];
    uint64_t key = 0;

    if (hex_decode(id, sizeof(id), str_skip(session, 4))) {
        for (size_t i = 0; i < sizeof(id); i++)
            key = key << 8 | id[i];
    }
    return key;
}

/* A session is looked up when its first event comes. */
static struct kept *meet(struct investigation_check *c, const struct event_view *v,
                         struct err *err)
{
    uint64_t key = key_of(v->session);
    struct kept *k = map_get(&c->sessions, key);

    if (k)
        return k;
    k = calloc(1, sizeof(*k));
    if (!k) {
        err_set(err, ERR_NOMEM, "no memory");
        return NULL;
    }
    memcpy(k->session, v->session.p, v->session.n);
    if (v->type == EVENT_SESSION_START && !event_bool(v, "investigation", &k->promised))
        k->promised = false;
    if (map_put(&c->sessions, key, k, err) < 0) {
        free(k);
        return NULL;
    }
    if (map_file(c, k, &k->there, err) < 0 || (k->there && next_line(c, k, err) < 0))
        return NULL;
    return k;
}

static bool is_received(enum event_type type)
{
    return type == EVENT_REQUEST_RECEIVED || type == EVENT_RESPONSE_RECEIVED ||
           type == EVENT_NOTIFICATION_RECEIVED || type == EVENT_MESSAGE_RECEIVED;
}

/* A batch is one message and one payload, that of its first event. */
static bool wants_payload(const struct event_view *v)
{
    int64_t batch;

    return is_received(v->type) && (!event_int(v, "batch", &batch) || batch == 0);
}

static void tell_missing(struct investigation_check *c, struct kept *k)
{
    if (k->missing)
        find(c,
             "payloads of %" PRIu64 " message%s of %s are missing, the first is that of "
             "event %" PRIu64,
             k->missing, plural(k->missing), k->session, k->missing_at);
    k->missing = 0;
}

/* Lines that no event of the session has asked for, up to `until`. */
static int pass_strays(struct investigation_check *c, struct kept *k, uint64_t until,
                       struct err *err)
{
    while (k->line.n && k->seq < until) {
        find(c,
             "a payload of %s claims event %" PRIu64
             ", which is no message of it or stands "
             "before the line above",
             k->session, k->seq);
        if (next_line(c, k, err) < 0)
            return -1;
    }
    return 0;
}

/* No more messages of this session: nothing may be left, nothing may lack. */
static int end_of_lines(struct investigation_check *c, struct kept *k, struct err *err)
{
    if (pass_strays(c, k, UINT64_MAX, err) < 0)
        return -1;
    tell_missing(c, k);
    if (k->rest.n)
        find(c, "the payloads of %s end in half a line", k->session);
    kept_release(k);
    k->ended = true;
    return 0;
}

static int see_event(struct investigation_check *c, struct kept *k,
                     const struct event_view *v, struct err *err)
{
    if (k->line.n == 0 && next_line(c, k, err) < 0)
        return -1;
    if (pass_strays(c, k, v->seq, err) < 0)
        return -1;
    if (k->line.n)
        tell_missing(c, k); /* a later one is there */
    if (k->line.n && k->seq == v->seq) {
        if (read_seq(c, k)) /* c->json may be that of another session */
            compare(c, k, v);
        if (next_line(c, k, err) < 0)
            return -1;
    } else if (wants_payload(v)) {
        if (k->missing++ == 0)
            k->missing_at = v->seq;
    }
    return v->type == EVENT_SESSION_END ? end_of_lines(c, k, err) : 0;
}

static void see_forgotten(struct investigation_check *c, const struct event_view *v)
{
    str of = event_text(v, "of");
    struct kept *k = of.n == ID_HEX + 4 ? map_get(&c->sessions, key_of(of)) : NULL;

    if (!k || k->forgotten)
        return;
    k->forgotten = true;
    c->forgotten++;
    if (k->there)
        find(c,
             "event %" PRIu64 " says that the payloads of %s were deleted, and some are "
             "still there: run 'assay log forget' again",
             v->seq, k->session);
}

int investigation_check_event(struct investigation_check *c, const struct event_view *v,
                              struct err *err)
{
    struct kept *k;

    if (v->type == EVENT_PAYLOADS_FORGOTTEN)
        see_forgotten(c, v);
    if (v->session.n == 0)
        return 0;
    k = meet(c, v, err);
    if (!k)
        return -1;
    return k->there && !k->ended ? see_event(c, k, v, err) : 0;
}

/* --- the end --- */

static bool is_written_now(const struct investigation_check *c, const char *name)
{
    CLEANUP(file_close) int fd = -1;
    char path[FILE_PATH_MAX];
    struct err ignored;

    if (path_join(path, c->dir, name, &ignored) < 0)
        return false;
    fd = file_open(path, O_RDONLY | O_NOFOLLOW, 0, &ignored);
    return fd >= 0 && file_lock(fd, LOCK_SH | LOCK_NB) < 0;
}

/* A file of a session that the log does not know. */
static int look_at(void *ctx, const char *name, struct err *err)
{
    struct investigation_check *c = ctx;
    char session[ID_MAX] = "mcp_", expected[INVESTIGATION_NAME_MAX];

    (void)err;
    if (strlen(name) != strlen("session_.jsonl") + ID_HEX)
        return 0;
    memcpy(session + 4, name + strlen("session_"), ID_HEX);
    investigation_name(expected, session);
    if (strcmp(name, expected) == 0 &&
        !map_get(&c->sessions, key_of(str_from(session))) && !is_written_now(c, name))
        find(c, "payloads are kept of %s, which the log does not know", session);
    return 0;
}

static int end_session(struct investigation_check *c, struct kept *k, struct err *err)
{
    char name[INVESTIGATION_NAME_MAX];

    if (k->promised && !k->there && !k->forgotten)
        find(c,
             "the payloads of %s are missing, and no event says that they were deleted",
             k->session);
    investigation_name(name, k->session);
    if (!k->there || k->ended || is_written_now(c, name))
        return 0;
    return end_of_lines(c, k, err);
}

int investigation_check_end(struct investigation_check *c, struct err *err)
{
    struct err missing = { 0 };
    struct kept *k;

    for (size_t i = 0; (k = map_next(&c->sessions, &i));) {
        if (end_session(c, k, err) < 0)
            return -1;
    }
    if (file_each(c->dir, look_at, c, &missing) < 0 && missing.code != ERR_NOTFOUND) {
        *err = missing;
        return -1;
    }
    return 0;
}
