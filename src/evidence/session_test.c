/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/session.h"

#include "evidence/pack.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "evidence/receipts.h"
#include "evidence/segment.h"
#include "tests/recording.h"
#include "tests/tap.h"

static const struct session_ending well = { "client_eof", true, "shutdown", NULL };

/* Everything that the log says of a session, folded as a reader would. */
static bool read_history(struct history *h, const struct recording *r, const char *id)
{
    CLEANUP(segment_close) struct segment_reader reader = { 0 };
    CLEANUP(json_release) struct json json = { 0 };
    char log_path[FILE_PATH_MAX];
    struct err err = { 0 };
    enum segment_step step;
    str line;

    *h = (struct history){ 0 };
    memcpy(h->id, id, strlen(id) + 1);
    if (path_join(log_path, r->dir, "log", &err) < 0 ||
        segment_open_seq(&reader, log_path, 0, &err) < 0)
        return false;
    while (segment_next(&reader, &step, &line, &err) == 0 && step == SEGMENT_LINE) {
        struct event_view v;

        if (event_parse(&v, &json, line, &err) < 0 || history_fold(h, &v, &err) < 0) {
            printf("# %s\n", err.msg);
            return false;
        }
    }
    return true;
}

/* Recompute every receipt of the session from its events and look for it in the file. */
static unsigned recompute(const struct recording *r, const struct session *s,
                          str arguments, str result)
{
    CLEANUP(segment_close) struct segment_reader reader = { 0 };
    CLEANUP(json_release) struct json json = { 0 };
    CLEANUP(receipts_index_release) struct receipts_index index = { 0 };
    CLEANUP(history_release) struct history h = { 0 };
    CLEANUP(receipt_line_release) struct receipt_line line = { 0 };
    char log_path[FILE_PATH_MAX];
    struct err err = { 0 };
    enum segment_step step;
    unsigned found = 0;
    str text;

    if (receipts_index_read(&index, r->dir, session_receipts(s), &err) < 0 ||
        path_join(log_path, r->dir, "log", &err) < 0 ||
        segment_open_seq(&reader, log_path, 0, &err) < 0)
        return 0;
    memcpy(h.id, session_id(s), strlen(session_id(s)) + 1);
    while (segment_next(&reader, &step, &text, &err) == 0 && step == SEGMENT_LINE) {
        struct event_view v;
        struct open_call *c;
        struct receipt receipt;

        if (event_parse(&v, &json, text, &err) < 0)
            return 0;
        c = history_call(&h, event_text(&v, "call"));
        if (v.type == EVENT_RECEIPT && c) {
            const struct receipt_place place = {
                .session = &h.session,
                .receipt_id = event_text(&v, "receipt_id"),
                .parent = event_text(&v, "parent"),
                .ts = v.ts,
                .seq = h.counts.receipts,
                .arguments_content = arguments,
                .result_content = c->call.answered ? result : (str){ NULL, 0 },
            };

            receipt_of_call(&receipt, &c->call, &place);
            if (receipt_compose(&line, &receipt, &err) == 0 &&
                str_equal(receipts_find(&index, place.receipt_id, &line.hash), line.line))
                found++;
            else
                printf("# recomputed: %.*s\n", STR_ARG(line.line));
        }
        if (history_fold(&h, &v, &err) < 0)
            return 0;
        if (v.type == EVENT_SESSION_START &&
            history_set_version(&h, STR(ASSAY_VERSION), &err) < 0)
            return 0;
    }
    return found;
}

static void test_every_outcome_is_the_same_live_and_read_back(void)
{
    struct recording r;
    struct session *s = recording_session(&r, "audit");
    struct err err = { 0 };
    struct open_call *call;
    struct session_cut cut;
    bool packable = false;

    call = recording_call(&r, s, STR("7"), STR("search"), STR("{\"q\":1}"));
    ok(recording_answer(&r, s, call, false, STR("{\"ok\":true}")), "answered");
    session_release(s, call);
    call = recording_call(&r, s, STR("\"s\\u00fc\\n\""), STR("a\\\"b\\u2028"),
                          STR("{\"q\":1}"));
    ok(recording_answer(&r, s, call, true, STR("{\"ok\":true}")),
       "answered with an error");
    session_release(s, call);
    call = recording_call(&r, s, STR("1e3"), STR("slow"), STR("{\"q\":1}"));
    ok(session_lose(s, call, "call_timeout", NULL, &err) == 0, "timed out");
    session_release(s, call);
    call = recording_call(&r, s, (str){ NULL, 0 }, STR("no_id"), STR("{\"q\":1}"));
    ok(session_lose(s, call, "no_id", NULL, &err) == 0, "without an id");
    session_release(s, call);
    call = recording_call(&r, s, STR("9"), STR("denied"), STR("{\"q\":1}"));
    ok(recording_deny(&r, s, call), "denied");
    session_release(s, call);
    recording_call(&r, s, STR("10"), STR("open"), STR("{\"q\":1}"));
    ok(session_end(s, &well, &cut, &packable, &err) == 0 && packable, "ended: %s",
       err.msg);
    ok(recompute(&r, s, STR("{\"q\":1}"), STR("{\"ok\":true}")) == 6,
       "all six receipts follow from the log");
    session_free(s);
    recording_close(&r);
}

static size_t open_files(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static void test_a_session_that_gave_back_its_memory_goes_on(void)
{
    struct recording r;
    struct session *s = recording_session(&r, "audit");
    struct err err = { 0 };
    struct open_call *call;
    struct session_cut cut;
    bool packable = false;
    size_t files;

    session_trim(s);
    call = recording_call(&r, s, STR("1"), STR("a"), STR("{\"q\":1}"));
    files = open_files();
    session_trim(s);
    ok(open_files() == files - 1, "its receipts file is closed");
    ok(recording_answer(&r, s, call, false, STR("{\"ok\":true}")),
       "a call is answered that was open meanwhile");
    session_release(s, call);
    session_trim(s);
    call = recording_call(&r, s, STR("2"), STR("b"), STR("{\"q\":1}"));
    session_trim(s);
    ok(session_lose(s, call, "call_timeout", NULL, &err) == 0, "another one is lost");
    session_release(s, call);
    session_trim(s);
    call = recording_call(&r, s, STR("3"), STR("c"), STR("{\"q\":1}"));
    session_trim(s);
    ok(recording_deny(&r, s, call), "a third is denied");
    session_release(s, call);
    session_trim(s);
    ok(session_part(s, NULL, &cut, &err) == 0, "a part ends");
    session_trim(s);
    ok(session_end(s, &well, &cut, &packable, &err) == 0 && packable, "and all of it");
    ok(recompute(&r, s, STR("{\"q\":1}"), STR("{\"ok\":true}")) == 3,
       "all receipts follow from the log");
    session_free(s);
    recording_close(&r);
}

static void test_a_transport_that_was_found_stands_in_later_receipts(void)
{
    struct recording r;
    struct session *s = recording_session(&r, "audit");
    CLEANUP(history_release) struct history h = { 0 };
    struct err err = { 0 };
    struct open_call *call;

    call = recording_call(&r, s, STR("1"), STR("early"), STR("{\"q\":1}"));
    ok(recording_answer(&r, s, call, false, STR("{\"ok\":true}")), "before");
    session_release(s, call);
    ok(session_transport(s, "pigeon", &err) < 0, "a transport that is none: %s", err.msg);
    ok(session_transport(s, "sse", &err) == 0, "found");
    ok(session_transport(s, "sse", &err) < 0, "a second time: %s", err.msg);
    call = recording_call(&r, s, STR("2"), STR("late"), STR("{\"q\":1}"));
    ok(recording_answer(&r, s, call, false, STR("{\"ok\":true}")), "after");
    session_release(s, call);
    ok(recompute(&r, s, STR("{\"q\":1}"), STR("{\"ok\":true}")) == 2,
       "both receipts follow from the log");
    ok(read_history(&h, &r, session_id(s)) && str_is(h.session.transport, "sse") &&
           str_is(session_history(s)->session.transport, "sse"),
       "and the session is said to be of it");
    session_free(s);
    recording_close(&r);
}

static void test_numbers_of_a_session(void)
{
    struct recording r;
    struct session *s = recording_session(&r, "audit");
    struct session *other = recording_another(&r, "guard");
    CLEANUP(history_release) struct history h = { 0 };
    struct open_call *call[2];
    struct session_cut cut;
    struct err err = { 0 };
    bool packable = true;

    call[0] = recording_call(&r, s, STR("1"), STR("a"), (str){ NULL, 0 });
    call[1] = recording_call(&r, other, STR("1"), STR("b"), (str){ NULL, 0 });
    recording_answer(&r, other, call[1], false, (str){ NULL, 0 });
    recording_answer(&r, s, call[0], false, (str){ NULL, 0 });
    ok(session_part(s, NULL, &cut, &err) == 0 && cut.part == 1 && !cut.final,
       "a part is cut");
    ok(session_end(s, &well, &cut, &packable, &err) == 0, "the session ends: %s",
       err.msg);
    ok(cut.part == 2 && cut.final && packable, "as part 2, the last");
    ok(read_history(&h, &r, session_id(s)), "its events are numbered without a gap");
    ok(h.ended && h.closed && h.complete && str_is(str_from(h.reason), "client_eof"),
       "the log says that it ended well");
    ok(h.counts.events == session_history(s)->counts.events && h.counts.receipts == 3 &&
           h.counts.calls == 1 && h.calls.count == 0,
       "and what was counted");
    ok(session_end(s, &(struct session_ending){ "again", true, "shutdown", NULL }, &cut,
                   &packable, &err) < 0 &&
           err.code == ERR_REFUSED,
       "it cannot end twice");
    session_free(s);
    session_free(other);
    recording_close(&r);
}

static void test_a_session_without_calls_has_no_receipts_file(void)
{
    struct recording r;
    struct session *s = recording_session(&r, "audit");
    struct session_cut cut;
    struct err err = { 0 };
    char path[FILE_PATH_MAX];
    bool packable = true;

    ok(session_end(s, &well, &cut, &packable, &err) == 0 && !packable,
       "ends without anything to pack");
    snprintf(path, sizeof(path), "%s/receipts/%s", r.dir, session_receipts(s));
    ok(access(path, F_OK) < 0, "no receipts file");
    session_free(s);
    recording_close(&r);
}

static void test_a_task_gets_a_second_receipt_with_a_parent(void)
{
    struct recording r;
    struct session *s = recording_session(&r, "audit");
    struct open_call *call = recording_call(&r, s, STR("1"), STR("t"), (str){ NULL, 0 });
    struct message m = recording_message("s2c", "response", STR("1"));
    struct call_response task = { .result_hash = STR("sha256:00"),
                                  .result_type = STR("task") };
    struct call_response result = { .result_hash = STR("sha256:01") };
    CLEANUP(history_release) struct history h = { 0 };
    char first[ID_MAX];
    struct err err = { 0 };

    ok(session_respond(s, call, &m, &task, NULL, &err) == 0, "the task is created");
    memcpy(first, call->call.receipt_id, sizeof(first));
    ok(!call_is_due(&call->call) && !call_is_open(&call->call), "its call has a receipt");
    ok(session_respond(s, call, &m, &result, NULL, &err) == 0, "its result is seen");
    ok(strcmp(call->parent, first) == 0, "the second receipt names the first");
    ok(recompute(&r, s, (str){ NULL, 0 }, (str){ NULL, 0 }) == 2,
       "both follow from the log");
    ok(read_history(&h, &r, session_id(s)) && h.counts.receipts == 2 &&
           history_open_calls(&h) == 0,
       "two receipts, no open call");
    session_free(s);
    recording_close(&r);
}

static void test_a_task_that_nobody_saw_end_is_said_to_be_unobserved(void)
{
    struct recording r;
    struct session *s = recording_session(&r, "audit");
    struct open_call *call = recording_call(&r, s, STR("1"), STR("t"), (str){ NULL, 0 });
    struct message m = recording_message("s2c", "response", STR("1"));
    struct call_response task = { .result_hash = STR("sha256:00"),
                                  .result_type = STR("task") };
    CLEANUP(history_release) struct history h = { 0 };
    struct session_cut cut;
    struct err err = { 0 };
    bool packable;

    ok(session_respond(s, call, &m, &task, NULL, &err) == 0, "the task is created");
    ok(session_end(s, &well, &cut, &packable, &err) == 0, "the session ends");
    ok(read_history(&h, &r, session_id(s)) && h.counts.receipts == 3 &&
           h.counts.lost == 1,
       "two receipts and the metadata");
    ok(!h.complete, "the record is not complete");
    ok(recompute(&r, s, (str){ NULL, 0 }, (str){ NULL, 0 }) == 2,
       "both follow from the log");
    session_free(s);
    recording_close(&r);
}

/* A file that may not grow any more is a full disk that needs no mount. */
static void test_what_cannot_be_written_leaves_no_trace_and_no_gap_in_numbers(void)
{
    struct recording r;
    struct session *s = recording_session(&r, "audit");
    struct open_call *call = recording_call(&r, s, STR("1"), STR("a"), (str){ NULL, 0 });
    struct message m = recording_message("s2c", "response", STR("1"));
    static char big[1 << 16];
    struct call_response response = { .result_hash = STR("sha256:00") };
    struct rlimit full = { 4096, RLIM_INFINITY }, before;
    CLEANUP(history_release) struct history h = { 0 };
    struct session_cut cut;
    struct err err = { 0 };
    char path[FILE_PATH_MAX];
    struct stat st = { 0 };
    bool packable, complete;

    memset(big, '1', sizeof(big));
    response.content = str_of(big, sizeof(big));
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &full);
    ok(session_respond(s, call, &m, &response, NULL, &err) < 0, "no room: %s", err.msg);
    setrlimit(RLIMIT_FSIZE, &before);
    snprintf(path, sizeof(path), "%s/receipts/%s", r.dir, session_receipts(s));
    ok(stat(path, &st) == 0 && st.st_size == 0, "half a receipt was taken back");
    ok(call_is_open(&call->call) && !call_is_due(&call->call), "the call is still open");
    response.content = (str){ NULL, 0 };
    ok(session_respond(s, call, &m, &response, NULL, &err) == 0, "later it works");
    ok(session_end(s, &well, &cut, &packable, &err) == 0, "the session ends");
    complete = session_history(s)->complete;
    ok(read_history(&h, &r, session_id(s)) && h.counts.receipts == 2,
       "its events have no gap in their numbers");
    ok(!complete && !h.complete, "but it is not complete: evidence was lost");
    session_free(s);
    recording_close(&r);
}

static void test_a_half_written_line_becomes_a_void_one(void)
{
    struct recording r;
    struct session *s = recording_session(&r, "audit");
    CLEANUP(receipts_index_release) struct receipts_index index = { 0 };
    struct receipts file;
    struct err err = { 0 };

    recording_call(&r, s, STR("1"), STR("a"), (str){ NULL, 0 });
    ok(receipts_init(&file, r.dir, session_receipts(s), &err) == 0 &&
           receipts_open(&file, false, &err) == 0,
       "open");
    ok(write(file.fd, "{\"receipt_id\":\"mtc_", 19) == 19, "half a line");
    receipts_close(&file);
    ok(receipts_open(&file, false, &err) == 0 && file.size == 20, "it was closed off");
    ok(receipts_append(&file, STR("{\"receipt_id\":\"mtc_0123456789abcdef\"}"), false,
                       &err) == 0,
       "a whole line after it");
    receipts_close(&file);
    ok(receipts_index_read(&index, r.dir, session_receipts(s), &err) == 0 &&
           index.entries.count == 1,
       "one receipt is found: %s", err.msg);
    session_free(s);
    recording_close(&r);
}

static void test_names_of_receipts_files(void)
{
    static const struct {
        const char *name;
        bool good;
    } cases[] = {
        { "session_20260315T113000Z_0123abcd.jsonl", true },
        { "session_20260315T113000Z_0123abcd.json", false },
        { "session_20260315T113000Z_0123abc/.jsonl", false },
        { "session_../../../../../../passwd.jsonl", false },
        { "session_20260315T113000Z_0123abcde.jsonl", false },
        { "", false },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        ok(receipts_name_valid(str_from(cases[i].name)) == cases[i].good, "name '%s'",
           cases[i].name);
}

static int64_t count_of(const struct session *s)
{
    return (int64_t)session_history(s)->counts.events;
}

static void test_what_may_wait_goes_with_the_next_write(void)
{
    struct recording r;
    struct session *s = recording_session(&r, "audit");
    struct message m = recording_message("c2s", "request", STR("1"));
    struct open_call *call = recording_call(&r, s, STR("1"), STR("t"), STR("{}"));
    int64_t before = count_of(s);
    struct session_ending ending = { .reason = "client_eof", .clean = true };
    struct pack_request request;
    struct pack_result result;
    struct session_cut cut;
    struct err err = { 0 };
    bool packable;

    ok(session_later(s, call, EVENT_REQUEST_FORWARDED, &m, false, &err) == 0 &&
           count_of(s) == before && session_has_later(s),
       "nothing is written yet");
    ok(recording_answer(&r, s, call, false, STR("{}")) && count_of(s) == before + 4,
       "the answer takes it along");
    ok(call->call.forwarded, "and the call knows");
    for (int i = 0; i < SESSION_LATER_MAX + 1; i++)
        ok(session_later(s, NULL, EVENT_MESSAGE_FORWARDED, &m, false, &err) == 0,
           "later");
    ok(count_of(s) == before + 4 + SESSION_LATER_MAX, "as many as may wait");
    ok(session_flush(s, &err) == 0 && count_of(s) == before + 5 + SESSION_LATER_MAX &&
           !session_has_later(s),
       "flushed");
    ok(session_later(s, call, EVENT_RESPONSE_SENT, &m, true, &err) == 0, "the last one");
    ok(session_end(s, &ending, &cut, &packable, &err) == 0 && packable, "ended: %s",
       err.msg);
    request = (struct pack_request){ .session = session_id(s),
                                     .receipts = session_receipts(s),
                                     .first = session_history(s)->first,
                                     .cut = cut };
    ok(pack_build(r.log, &request, &result, &err) == 0, "and all of it verifies: %s",
       err.msg);
    session_free(s);
    recording_close(&r);
}

int main(void)
{
    test_what_may_wait_goes_with_the_next_write();
    signal(SIGXFSZ, SIG_IGN);
    test_every_outcome_is_the_same_live_and_read_back();
    test_a_session_that_gave_back_its_memory_goes_on();
    test_a_transport_that_was_found_stands_in_later_receipts();
    test_numbers_of_a_session();
    test_a_session_without_calls_has_no_receipts_file();
    test_a_task_gets_a_second_receipt_with_a_parent();
    test_a_task_that_nobody_saw_end_is_said_to_be_unobserved();
    test_what_cannot_be_written_leaves_no_trace_and_no_gap_in_numbers();
    test_a_half_written_line_becomes_a_void_one();
    test_names_of_receipts_files();
    return tap_done();
}
