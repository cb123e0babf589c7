/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For verify_parts.t: a session in three parts, with a call open over both cuts, and a
 * session in one part beside it.
 *
 *     verify_parts DIR      prints the paths of the packs: 1, 2, 3, the other
 */
#include "evidence/pack.h"
#include "tests/recording.h"

static void must(bool good, const struct err *err)
{
    if (good)
        return;
    fprintf(stderr, "%s\n", err->msg);
    exit(1);
}

static void call(struct recording *r, struct session *s, str id)
{
    struct open_call *c = recording_call(r, s, id, STR("read"), (str){ NULL, 0 });

    recording_answer(r, s, c, false, (str){ NULL, 0 });
    session_release(s, c);
}

static struct pack_result pack(struct recording *r, struct session *s,
                               const struct session_cut *cut)
{
    const struct pack_request request = {
        session_id(s), session_receipts(s), session_history(s)->first, *cut, NULL, false,
        NULL
    };
    struct pack_result made;
    struct err err = { 0 };

    must(pack_build(r->log, &request, &made, &err) == 0, &err);
    puts(made.path);
    return made;
}

static struct pack_result part(struct recording *r, struct session *s,
                               const char *previous)
{
    struct session_cut cut;
    struct err err = { 0 };

    must(session_part(s, previous, &cut, &err) == 0, &err);
    return pack(r, s, &cut);
}

static void finish(struct recording *r, struct session *s, const char *previous)
{
    const struct session_ending ending = { "client_eof", true, "shutdown", previous };
    struct session_cut cut;
    struct err err = { 0 };
    bool packable;

    must(session_end(s, &ending, &cut, &packable, &err) == 0, &err);
    pack(r, s, &cut);
    session_free(s);
}

int main(int argc, char **argv)
{
    struct recording r = { .now = 1773574200000 }; /* 2026-03-15T11:30:00Z */
    struct session *s, *other;
    struct open_call *spanning;
    struct pack_result first, second;
    struct err err = { 0 };

    if (argc != 2 || strlen(argv[1]) > 60)
        return 3;
    r.clock = (struct clock){ recording_now, &r };
    snprintf(r.dir, sizeof(r.dir), "%s/audit", argv[1]);
    snprintf(r.home, sizeof(r.home), "%s/home", argv[1]);
    recording_log(&r);
    s = recording_another(&r, "audit");
    other = recording_another(&r, "audit");
    spanning = recording_call(&r, s, STR("9"), STR("slow"), STR("{}"));
    call(&r, s, STR("1"));
    first = part(&r, s, NULL);
    call(&r, other, STR("1"));
    call(&r, s, STR("2"));
    second = part(&r, s, first.root);
    recording_answer(&r, s, spanning, false, STR("[]"));
    session_release(s, spanning);
    finish(&r, s, second.root);
    finish(&r, other, NULL);
    must(log_close(r.log, &err) == 0, &err);
    return 0;
}
