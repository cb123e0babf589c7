/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/pack.h"
#include "evidence/verify.h"
#include "tests/flip/flip.h"
#include "tests/recording.h"

/* Two calls, one of them with stored content; ends the program when it fails. */
static void make_pack(struct recording *r, struct pack_result *result)
{
    const struct session_ending well = { "client_eof", true, "shutdown", NULL };
    struct session *s = recording_session(r, "audit");
    struct session_cut cut;
    struct pack_request request;
    struct open_call *c;
    struct err err = { 0 };
    bool packable = false;

    c = recording_call(r, s, STR("1"), STR("a"), STR("{\"n\":1E21}"));
    recording_answer(r, s, c, false, STR("{\"t\":\"caf\xc3\xa9\"}"));
    session_release(s, c);
    c = recording_call(r, s, STR("2"), STR("b"), (str){ NULL, 0 });
    recording_answer(r, s, c, true, (str){ NULL, 0 });
    session_release(s, c);
    if (session_end(s, &well, &cut, &packable, &err) < 0 || !packable) {
        printf("Bail out! no pack: %s\n", err.msg);
        exit(99);
    }
    request = (struct pack_request){ .session = session_id(s),
                                     .receipts = session_receipts(s),
                                     .first = session_history(s)->first,
                                     .cut = cut };
    if (pack_build(r->log, &request, result, &err) < 0) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    session_free(s);
}

static bool is_found(void *ctx)
{
    const struct verify_options options = { .clock = &clock_system };
    struct verify_result result = { 0 };
    struct err err = { 0 };
    bool sound = verify_pack(ctx, &options, &result, &err) == 0 &&
                 result.verdict == VERIFY_SOUND && result.has_log;

    verify_result_release(&result);
    return !sound;
}

int main(int argc, char **argv)
{
    struct recording r;
    struct pack_result made;
    struct flip f = { .all_bits = argc > 1 && strcmp(argv[1], "soak") == 0,
                      .is_found = is_found,
                      .ctx = made.path };

    make_pack(&r, &made);
    ok(!is_found(made.path), "a sound pack");
    flip_tree(&f, made.path, "");
    ok(f.unseen == 0, "%zu flips over %zu bytes of %zu files: none unseen", f.flips,
       f.bytes, f.files);
    ok(f.files >= 8 && f.bytes > 0, "there was something to flip");
    flip_check_list(&f, "docs/pack.md");
    ok(!is_found(made.path), "sound again");
    recording_close(&r);
    return tap_done();
}
