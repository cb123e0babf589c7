/* SPDX-License-Identifier: Apache-2.0 */
#include "assay/assay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "tests/tap.h"

static char root[64], audit[96], home[96];

static void make_place(void)
{
    snprintf(root, sizeof(root), "/tmp/assay-api-XXXXXX");
    if (!mkdtemp(root))
        exit(1);
    snprintf(audit, sizeof(audit), "%s/audit", root);
    snprintf(home, sizeof(home), "%s/home", root);
}

static struct assay_log *open_log(struct assay_error *e)
{
    const struct assay_log_options options = { .dir = audit, .home = home };
    struct assay_log *log = NULL;

    ok(assay_log_open(&log, &options, e) == 0, "the log opens: %s", e->message);
    return log;
}

#define TEXT(s) (s), strlen(s)

static const char request[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"t\","
    "\"arguments\":{\"a\":1}}}";
static const char answer[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"ok\":true}}";

static void test_record_pack_verify(void)
{
    struct assay_error e = { 0 };
    struct assay_log *log = open_log(&e);
    struct assay_session_options options = { .server_id = "s", .store_arguments = 1 };
    struct assay_session *session;
    struct assay_call *call, *open;
    struct assay_verification v;
    struct assay_pack pack;

    ok(assay_session_begin(&session, log, &options, &e) == 0, "a session begins");
    ok(strncmp(assay_session_id(session), "mcp_", 4) == 0, "with an id");
    ok(assay_call_request(&call, session, TEXT(request), &e) == 0, "a call");
    ok(assay_call_receipt(call)[0] == '\0', "has no receipt yet");
    ok(assay_call_forwarded(call, &e) == 0, "goes on");
    ok(assay_call_delivered(call, &e) < 0 && e.code == ASSAY_REFUSED,
       "has no answer to deliver: %s", e.message);
    ok(assay_call_response(call, TEXT(answer), &e) == 0, "is answered");
    ok(assay_call_delivered(call, &e) == 0, "which is delivered");
    ok(strncmp(assay_call_receipt(call), "mtc_", 4) == 0, "and has its receipt");
    ok(assay_call_response(call, TEXT(answer), &e) < 0 && e.code == ASSAY_REFUSED,
       "a second answer is refused: %s", e.message);
    assay_call_free(call);
    ok(assay_call_request(&open, session, TEXT(request), &e) == 0, "another call");
    assay_call_free(open);
    ok(assay_session_end(session, "client_eof", 1, &pack, &e) == 0, "the end: %s",
       e.message);
    ok(pack.receipts == 3 && pack.path[0], "two calls and the metadata are packed");
    ok(assay_log_close(log, &e) == 0, "the log closes");
    ok(assay_verify_pack(pack.path, &v, &e) == 0 && v.verdict == ASSAY_SOUND && v.has_log,
       "the pack is sound: %s", v.message);
    ok(!v.session_complete, "not complete: a call had no answer");
    ok(v.receipts == 3 && strlen(v.signer) == 64, "what it says about itself");
}

/* Read the session's end from the log: how many answers count as undelivered. */
static bool log_says(const char *text)
{
    CLEANUP(buf_release) struct buf segment = { .max = (size_t)1 << 20 };
    char path[160];
    struct err err = { 0 };

    snprintf(path, sizeof(path), "%s/log/segments/00000000000000000000.jsonl", audit);
    return file_read(path, &segment, &err) == 0 && segment.n &&
           memmem(segment.p, segment.n, text, strlen(text)) != NULL;
}

static void test_what_is_said_twice_counts_once(void)
{
    struct assay_error e = { 0 };
    struct assay_log *log = open_log(&e);
    struct assay_session_options options = { 0 };
    struct assay_session *session;
    struct assay_call *first, *second;
    struct assay_verification v;
    struct assay_pack pack;

    ok(assay_session_begin(&session, log, &options, &e) == 0, "a session begins");
    ok(assay_call_request(&first, session, TEXT(request), &e) == 0 &&
           assay_call_request(&second, session, TEXT(request), &e) == 0,
       "two calls");
    ok(assay_call_forwarded(first, &e) == 0, "one is forwarded");
    ok(assay_call_forwarded(first, &e) < 0 && e.code == ASSAY_REFUSED, "once: %s",
       e.message);
    ok(assay_call_response(first, TEXT(answer), &e) == 0 &&
           assay_call_response(second, TEXT(answer), &e) == 0,
       "both are answered");
    ok(assay_call_delivered(first, &e) == 0, "one answer is delivered");
    ok(assay_call_delivered(first, &e) < 0 && e.code == ASSAY_REFUSED, "once: %s",
       e.message);
    ok(assay_call_lost(first, "cancelled", &e) < 0 && e.code == ASSAY_REFUSED,
       "what was answered is not lost: %s", e.message);
    ok(assay_session_end(session, "signal", 1, &pack, &e) == 0, "the end");
    ok(assay_log_close(log, &e) == 0, "the log closes");
    ok(assay_verify_pack(pack.path, &v, &e) == 0 && v.verdict == ASSAY_SOUND &&
           v.session_complete,
       "the pack is sound and complete: %s", v.message);
    ok(log_says("\"undelivered\":1"), "the other answer is undelivered");
}

static void test_a_session_that_no_verifier_would_accept(void)
{
    static const struct {
        const char *what;
        struct assay_session_options options;
    } cases[] = {
        { "policy hash", { .policy_hash = "xx" } },
        { "policy hash", { .policy_hash = "sha256:00" } },
        { "transport", { .transport = "pigeon" } },
        { "profile", { .profile = "escrow" } },
    };
    struct assay_error e = { 0 };
    struct assay_log *log = open_log(&e);
    struct assay_session *session;

    for (size_t i = 0; i < COUNT(cases); i++)
        ok(assay_session_begin(&session, log, &cases[i].options, &e) < 0 &&
               e.code == ASSAY_FORMAT && strstr(e.message, cases[i].what),
           "refused at its beginning: %s", e.message);
    assay_log_close(log, &e);
}

#define ANSWER(id) "{\"id\":" id ",\"result\":{}}"
#define CALL(id)   "{\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"t\"}}"

static void test_an_answer_has_the_id_of_its_request(void)
{
    static const struct {
        const char *request, *answer;
        bool good;
    } cases[] = {
        { CALL("1"), ANSWER("2"), false },
        { CALL("1"), ANSWER("\"1\""), false },
        { CALL("1"), ANSWER("null"), false },
        { CALL("1"), "{\"result\":{}}", false },
        { CALL("1"), ANSWER("1.0"), true },
        { CALL("\"a\""), ANSWER("\"\\u0061\""), true },
        { "{\"method\":\"tools/call\"}", "{\"result\":{}}", false },
    };
    struct assay_error e = { 0 };
    struct assay_log *log = open_log(&e);
    struct assay_session_options options = { 0 };
    struct assay_session *session;
    struct assay_call *call;

    ok(assay_session_begin(&session, log, &options, &e) == 0, "a session begins");
    for (size_t i = 0; i < COUNT(cases); i++) {
        e = (struct assay_error){ 0 };
        ok(assay_call_request(&call, session, TEXT(cases[i].request), &e) == 0, "%s: %s",
           cases[i].request, e.message);
        ok((assay_call_response(call, TEXT(cases[i].answer), &e) == 0) == cases[i].good &&
               e.code == (cases[i].good ? ASSAY_OK : ASSAY_FORMAT),
           "%s: %s", cases[i].answer, e.message);
        ok((assay_call_receipt(call)[0] != '\0') == cases[i].good,
           "a receipt only for its own answer");
    }
    ok(assay_session_end(session, "client_eof", 1, NULL, &e) == 0, "the session ends");
    assay_log_close(log, &e);
}

static void test_the_result_of_a_task_has_an_id_of_its_own(void)
{
    struct assay_error e = { 0 };
    struct assay_log *log = open_log(&e);
    struct assay_session_options options = { 0 };
    struct assay_session *session;
    struct assay_call *call;
    struct assay_pack pack;

    ok(assay_session_begin(&session, log, &options, &e) == 0, "a session begins");
    ok(assay_call_request(&call, session, TEXT(CALL("1")), &e) == 0, "a call");
    ok(assay_call_response(call, TEXT("{\"id\":1,\"result\":{\"resultType\":\"task\"}}"),
                           &e) == 0 &&
           assay_call_delivered(call, &e) == 0,
       "whose answer is a task: %s", e.message);
    ok(assay_call_response(call, TEXT(ANSWER("2")), &e) == 0, "its result: %s",
       e.message);
    ok(assay_call_delivered(call, &e) == 0, "is delivered as well");
    ok(assay_call_delivered(call, &e) < 0, "once");
    ok(assay_session_end(session, "client_eof", 1, &pack, &e) == 0 && pack.receipts == 3,
       "two receipts and the metadata: %s", e.message);
    assay_log_close(log, &e);
}

static void test_reasons_are_those_of_the_format(void)
{
    struct assay_error e = { 0 };
    struct assay_log *log = open_log(&e);
    struct assay_session_options options = { 0 };
    struct assay_session *session;
    struct assay_call *call;

    ok(assay_session_begin(&session, log, &options, &e) == 0, "a session begins");
    ok(assay_call_request(&call, session, TEXT(request), &e) == 0, "a call");
    ok(assay_call_lost(call, "bored", &e) < 0 && e.code == ASSAY_FORMAT, "bored: %s",
       e.message);
    ok(assay_call_receipt(call)[0] == '\0', "leaves the call open");
    ok(assay_call_lost(call, "client_gone", &e) == 0, "client_gone: %s", e.message);
    ok(assay_session_end(session, "server_crash", 1, NULL, &e) < 0 &&
           e.code == ASSAY_FORMAT,
       "a crash is no clean end: %s", e.message);
    ok(assay_session_end(session, "No!", 0, NULL, &e) < 0 && e.code == ASSAY_FORMAT,
       "no word: %s", e.message);
    ok(assay_session_end(session, "server_crash", 0, NULL, &e) == 0, "an honest end");
    ok(log_says("\"reason\":\"server_crash\""), "is in the log");
    assay_log_close(log, &e);
}

static void test_a_session_without_calls_has_no_pack(void)
{
    struct assay_error e = { 0 };
    struct assay_log *log = open_log(&e);
    struct assay_session_options options = { 0 };
    struct assay_session *session;
    struct assay_pack pack;

    ok(assay_session_begin(&session, log, &options, &e) == 0, "a session begins");
    ok(assay_session_end(session, NULL, 1, &pack, &e) == 0 && !pack.path[0],
       "ends without a pack");
    ok(assay_log_checkpoint(log, &e) == 0, "a checkpoint");
    assay_log_close(log, &e);
}

static void test_messages_that_are_refused(void)
{
    static const struct {
        const char *what, *message;
    } requests[] = {
        { "not JSON", "{" },
        { "an array", "[]" },
        { "another method", "{\"method\":\"tools/list\"}" },
        { "empty", "" },
    };
    struct assay_error e = { 0 };
    struct assay_log *log = open_log(&e);
    struct assay_session_options options = { 0 };
    struct assay_session *session;
    struct assay_call *call;

    ok(assay_session_begin(&session, log, &options, &e) == 0, "a session begins");
    for (size_t i = 0; i < COUNT(requests); i++)
        ok(assay_call_request(&call, session, TEXT(requests[i].message), &e) < 0 &&
               e.code == ASSAY_FORMAT,
           "%s: %s", requests[i].what, e.message);
    ok(assay_call_request(&call, session, TEXT(request), &e) == 0, "a good one");
    ok(assay_call_response(call, TEXT("{\"id\":1}"), &e) < 0 && e.code == ASSAY_FORMAT,
       "an answer without result: %s", e.message);
    assay_session_free(session);
    assay_log_close(log, &e);
}

static void test_events_are_checked_as_a_reader_would(void)
{
    static const struct {
        const char *type, *members;
        bool good;
    } cases[] = {
        { "heartbeat", "{}", true },
        { "policy_loaded", "{\"policy_hash\":\"sha256:00\",\"ok\":true}", true },
        { "tools_withheld", "{\"names\":[\"a\",\"b\"]}", true },
        { "policy_loaded", "{\"ok\":true}", false },
        { "policy_loaded", "{\"policy_hash\":1,\"ok\":true}", false },
        { "session_end", "{}", false },
        { "transport_found", "{\"transport\":\"sse\"}", false },
        { "receipt", "{\"receipt_id\":\"x\",\"sha256\":\"y\"}", false },
        { "no_such_type", "{}", false },
        { "heartbeat", "{\"seq\":5}", false },
        { "heartbeat", "{\"call\":\"inv_0123456789abcdef\"}", false },
        { "heartbeat", "{\"x\":1.5}", false },
        { "heartbeat", "{\"x\":{}}", false },
        { "heartbeat", "{\"x\":1,\"x\":2}", false },
        { "heartbeat", "{\"x\\u0000y\":1}", false },
        { "heartbeat", "{\"a_B9\":1}", true },
        { "heartbeat", "{\"\":1}", false },
        { "heartbeat", "{\"x-y\":1}", false },
        { "heartbeat", "{\"\xc3\xa9\":1}", false },
        { "heartbeat", "{\"n\\\":0,\\\"o\":1}", false },
        { "heartbeat", "[]", false },
        { "heartbeat", "", false },
    };
    struct assay_error e = { 0 };
    struct assay_log *log = open_log(&e);
    struct assay_session_options options = { 0 };
    struct assay_session *session;

    ok(assay_session_begin(&session, log, &options, &e) == 0, "a session begins");
    for (size_t i = 0; i < COUNT(cases); i++) {
        e.message[0] = '\0';
        ok((assay_session_event(session, cases[i].type, TEXT(cases[i].members), &e) ==
            0) == cases[i].good,
           "%s %s %s: %s", cases[i].type, cases[i].members,
           cases[i].good ? "goes in" : "is refused", e.message);
    }
    ok(assay_session_end(session, "client_eof", 1, NULL, &e) == 0, "the session ends");
    assay_log_close(log, &e);
}

static void test_what_another_process_left_is_finished(void)
{
    struct assay_error e = { 0 };
    struct assay_log *log = open_log(&e), *other;
    uint64_t packs = 9;

    ok(assay_log_recover(log, &packs, &e) == 0 && packs == 1,
       "the session that was freed without its end gets its pack");
    ok(assay_log_recover(log, &packs, &e) == 0 && packs == 0, "once");
    other = open_log(&e);
    ok(other != NULL && assay_log_close(other, &e) == 0,
       "a second writer comes and goes");
    assay_log_close(log, &e);
    ok(assay_verify_pack(audit, &(struct assay_verification){ 0 }, &e) < 0,
       "an audit directory is no pack: %s", e.message);
}

int main(void)
{
    struct err err = { 0 };

    make_place();
    test_record_pack_verify();
    test_what_is_said_twice_counts_once();
    test_a_session_that_no_verifier_would_accept();
    test_an_answer_has_the_id_of_its_request();
    test_the_result_of_a_task_has_an_id_of_its_own();
    test_reasons_are_those_of_the_format();
    test_a_session_without_calls_has_no_pack();
    test_messages_that_are_refused();
    test_events_are_checked_as_a_reader_would();
    test_what_another_process_left_is_finished();
    ok(file_remove_tree(root, &err) == 0, "cleaned up: %s", err.msg);
    ok(strcmp(assay_version(), ASSAY_VERSION) == 0, "version");
    return tap_done();
}
