/* SPDX-License-Identifier: Apache-2.0 */
/* recording - a log in a temporary directory, and calls recorded into it, for tests. */
#ifndef TESTS_RECORDING_H
#define TESTS_RECORDING_H

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/file.h"
#include "evidence/log.h"
#include "evidence/session.h"

#define RECORDING_POLICY                                                                 \
    "sha256:4791aaa760a131484e3c971c4f9b171ad1ef2f6fb9c2e4858fdad6d8fc8f6c0f"

struct recording {
    char root[64]; /* removed at the end */
    char dir[96];  /* the audit directory */
    char home[96];
    struct keys keys;
    int64_t now;
    struct clock clock;
    struct log *log;
};

/* A clock that a test moves: 7 ms for every look. */
static int64_t recording_now(void *ctx)
{
    struct recording *r = ctx;

    r->now += 7;
    return r->now;
}

__attribute__((unused)) static bool recording_log(struct recording *r)
{
    struct err err = { 0 };
    const struct log_options options = { .dir = r->dir,
                                         .keys = &r->keys,
                                         .clock = &r->clock,
                                         .entropy = &entropy_system,
                                         .group = (gid_t)-1 };

    if (keys_open(&r->keys, r->home, &err) == 0 && log_open(&r->log, &options, &err) == 0)
        return true;
    printf("Bail out! %s\n", err.msg);
    exit(1);
}

__attribute__((unused)) static void recording_open(struct recording *r)
{
    const char *tmp = getenv("TMPDIR");

    *r = (struct recording){ .now = 1773574200000 }; /* 2026-03-15T11:30:00Z */
    r->clock = (struct clock){ recording_now, r };
    snprintf(r->root, sizeof(r->root), "%s/assay-test-XXXXXX",
             tmp && strlen(tmp) < 40 ? tmp : "/tmp");
    if (!mkdtemp(r->root)) {
        printf("Bail out! no temporary directory\n");
        exit(1);
    }
    snprintf(r->dir, sizeof(r->dir), "%s/audit", r->root);
    snprintf(r->home, sizeof(r->home), "%s/home", r->root);
    recording_log(r);
}

__attribute__((unused)) static void recording_close(struct recording *r)
{
    struct err err = { 0 };

    if (r->log && log_close(r->log, &err) < 0)
        printf("# closing: %s\n", err.msg);
    if (file_remove_tree(r->root, &err) < 0)
        printf("# cleaning up: %s\n", err.msg);
}

/* Another session in the same log. */
__attribute__((unused)) static struct session *recording_another(struct recording *r,
                                                                 const char *profile)
{
    const struct session_options options = { .log = r->log,
                                             .server_id = "test-server",
                                             .transport = "stdio",
                                             .client_transport = "stdio",
                                             .profile = profile,
                                             .policy_hash = RECORDING_POLICY };
    struct session *s = NULL;
    struct err err = { 0 };

    if (session_open(&s, &options, &err) < 0) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    return s;
}

__attribute__((unused)) static struct session *recording_session(struct recording *r,
                                                                 const char *profile)
{
    recording_open(r);
    return recording_another(r, profile);
}

__attribute__((unused)) static struct message recording_message(const char *dir,
                                                                const char *kind, str id)
{
    return (struct message){
        .dir = str_from(dir),
        .kind = str_from(kind),
        .id = id,
        .bytes = 100,
        .digest = STR(
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    };
}

/* Ends the test when it fails. */
__attribute__((unused)) static struct open_call *
recording_call(struct recording *r, struct session *s, str id, str tool, str content)
{
    struct message m = recording_message("c2s", "request", id);
    const struct call_request request = {
        .arguments_hash = STR(
            "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
        .content = content,
    };
    struct open_call *call = NULL;
    struct err err = { 0 };

    (void)r;
    m.method = STR("tools/call");
    m.tool = tool;
    if (session_request(s, &m, &request, &call, NULL, &err) < 0) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    return call;
}

__attribute__((unused)) static bool recording_answer(struct recording *r,
                                                     struct session *s,
                                                     struct open_call *call,
                                                     bool is_error, str content)
{
    const struct message m = recording_message("s2c", "response", STR("1"));
    const struct call_response response = {
        .result_hash = STR(
            "sha256:74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"),
        .is_error = is_error,
        .content = content,
    };
    CLEANUP(event_release) struct event sent = { 0 };
    struct err err = { 0 };

    (void)r;
    if (session_respond(s, call, &m, &response, NULL, &err) < 0)
        return false;
    message_event(&sent, EVENT_RESPONSE_SENT, &m);
    return session_note(s, call, &sent, NULL, &err) == 0;
}

__attribute__((unused)) static bool recording_deny(struct recording *r, struct session *s,
                                                   struct open_call *call)
{
    const struct message m = recording_message("c2s", "request", STR("1"));
    const str codes[] = { STR("denylist") };
    const struct call_decision decision = { "denied", STR("denylist[0]"),
                                            STR("on the list"), STR(RECORDING_POLICY) };
    const struct call_denial denial = { codes, 1, STR("denylist[0]") };
    struct err err = { 0 };

    (void)r;
    return session_decide(s, call, &decision, NULL, &err) == 0 &&
           session_deny(s, call, &m, &denial, NULL, &err) == 0;
}

#endif
