/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "evidence/receipts.h"
#include "tests/packing.h"
#include "tests/tap.h"

static void test_a_session_becomes_a_pack_that_verifies(void)
{
    struct recording r;
    struct session *s = recording_session(&r, "audit");
    struct session *other = recording_another(&r, "audit");
    struct pack_request request;
    struct pack_result result, again;
    struct session_cut cut;
    struct err err = { 0 };
    char packs[FILE_PATH_MAX];
    struct stat st = { 0 };
    bool packable;

    record_three(&r, s);
    record_three(&r, other);
    ok(session_end(s, &well, &cut, &packable, &err) == 0 && packable,
       "the session ended");
    request = request_for(s, &cut);
    ok(pack_build(r.log, &request, &result, &err) == 0, "packed: %s", err.msg);
    ok(!result.existed && result.receipts == 4 && result.rebuilt == 0,
       "three receipts and the metadata");
    ok(result.events == session_history(s)->counts.events,
       "all events of the session and none of the other");
    ok(is_sound(result.path), "it verifies");
    ok(stat(result.path, &st) == 0 && (st.st_mode & 0777) == 0700, "for its owner only");
    snprintf(packs, sizeof(packs), "%s/packs", r.dir);
    ok(count_entries(packs, ".staging") == 0, "nothing is left over");
    ok(pack_build(r.log, &request, &again, &err) == 0 && again.existed &&
           strcmp(again.path, result.path) == 0 && strcmp(again.root, result.root) == 0,
       "asked again, it is the same pack: %s", err.msg);
    session_free(s);
    session_free(other);
    recording_close(&r);
}

static void test_parts_follow_each_other(void)
{
    struct recording r;
    struct session *s = recording_session(&r, "guard");
    struct open_call *spanning = recording_call(&r, s, STR("9"), STR("w"), STR("{}"));
    struct pack_result first, second;
    struct session_ending ending = well;
    struct pack_request request;
    struct session_cut cut[2];
    struct err err = { 0 };
    bool packable;

    record_three(&r, s);
    ok(session_part(s, NULL, &cut[0], &err) == 0, "part 1 is cut with a call open");
    request = request_for(s, &cut[0]);
    ok(pack_build(r.log, &request, &first, &err) == 0 && first.receipts == 4,
       "and packed: %s", err.msg);
    recording_answer(&r, s, spanning, false, STR("[]"));
    ending.previous_root = first.root;
    ok(session_end(s, &ending, &cut[1], &packable, &err) == 0, "the session ended");
    ok(cut[1].from == cut[0].to && cut[1].part == 2, "part 2 begins where part 1 ends");
    request = request_for(s, &cut[1]);
    ok(pack_build(r.log, &request, &second, &err) == 0 && second.receipts == 2,
       "part 2 has the call that was open: %s", err.msg);
    ok(first.events + second.events == session_history(s)->counts.events,
       "no event twice, none left out");
    ok(strcmp(first.path, second.path) != 0, "two directories");
    session_free(s);
    recording_close(&r);
}

static void test_a_lost_receipts_file_is_made_again_from_events(void)
{
    struct recording r;
    struct session *s = recording_session(&r, "audit");
    struct pack_request request;
    struct pack_result result;
    struct session_cut cut;
    struct err err = { 0 };
    char path[FILE_PATH_MAX];
    bool packable;

    record_three(&r, s);
    ok(session_end(s, &well, &cut, &packable, &err) == 0, "the session ended");
    snprintf(path, sizeof(path), "%s/receipts/%s", r.dir, session_receipts(s));
    ok(unlink(path) == 0, "its receipts are deleted");
    request = request_for(s, &cut);
    ok(pack_build(r.log, &request, &result, &err) == 0, "packed: %s", err.msg);
    ok(result.receipts == 4 && result.rebuilt == 4, "all four are made from events");
    ok(result.content_lost == 1, "one had stored content, which is gone");
    ok(is_sound(result.path), "the pack verifies and says so");
    session_free(s);
    recording_close(&r);
}

/* As after an answer whose evidence could not be written. */
static void test_a_call_that_was_let_go_is_lost(void)
{
    struct recording r;
    struct session *s = recording_session(&r, "audit");
    struct pack_request request;
    struct pack_result result;
    struct session_cut cut;
    struct err err = { 0 };
    struct open_call *c;
    bool packable;

    c = recording_call(&r, s, STR("1"), STR("a"), (str){ NULL, 0 });
    session_release(s, c);
    c = recording_call(&r, s, STR("2"), STR("b"), (str){ NULL, 0 });
    recording_answer(&r, s, c, false, (str){ NULL, 0 });
    session_release(s, c);
    ok(session_end(s, &well, &cut, &packable, &err) == 0 && packable, "ends: %s",
       err.msg);
    ok(session_history(s)->counts.lost == 1, "one call is lost");
    request = request_for(s, &cut);
    ok(pack_build(r.log, &request, &result, &err) == 0 && result.receipts == 3,
       "both have a receipt in a pack that verifies: %s", err.msg);
    session_free(s);
    recording_close(&r);
}

static void test_lines_without_events_are_void(void)
{
    struct recording r;
    struct session *s = recording_session(&r, "audit");
    struct pack_request request;
    struct pack_result result;
    struct session_cut cut;
    struct err err = { 0 };
    struct receipts file;
    bool packable;

    record_three(&r, s);
    ok(receipts_init(&file, r.dir, session_receipts(s), &err) == 0 &&
           receipts_open(&file, false, &err) == 0 &&
           receipts_append(&file, STR("{\"receipt_id\":\"mtc_00000000000000ff\"}"), false,
                           &err) == 0 &&
           receipts_append(&file, STR("not json"), false, &err) == 0,
       "a stranger's lines");
    receipts_close(&file);
    ok(session_end(s, &well, &cut, &packable, &err) == 0, "the session ended");
    request = request_for(s, &cut);
    ok(pack_build(r.log, &request, &result, &err) == 0 && result.receipts == 4 &&
           result.rebuilt == 0,
       "they are not packed: %s", err.msg);
    session_free(s);
    recording_close(&r);
}

static void test_a_pack_that_was_tampered_with_is_not_called_good(void)
{
    struct recording r;
    struct session *s = recording_session(&r, "audit");
    struct pack_request request;
    struct pack_result result;
    struct session_cut cut;
    struct err err = { 0 };
    char path[FILE_PATH_MAX];
    bool packable;
    FILE *f;

    record_three(&r, s);
    ok(session_end(s, &well, &cut, &packable, &err) == 0, "the session ended");
    request = request_for(s, &cut);
    ok(pack_build(r.log, &request, &result, &err) == 0, "packed");
    ok(path_join(path, result.path, "log_events.jsonl", &err) == 0, "found");
    f = fopen(path, "a");
    ok(f && fputs("{}\n", f) >= 0 && fclose(f) == 0, "a line is added");
    ok(pack_build(r.log, &request, &result, &err) < 0 && err.code == ERR_DAMAGE,
       "refused: %s", err.msg);
    session_free(s);
    recording_close(&r);
}

int main(void)
{
    test_a_session_becomes_a_pack_that_verifies();
    test_parts_follow_each_other();
    test_a_lost_receipts_file_is_made_again_from_events();
    test_a_call_that_was_let_go_is_lost();
    test_lines_without_events_are_void();
    test_a_pack_that_was_tampered_with_is_not_called_good();
    return tap_done();
}
