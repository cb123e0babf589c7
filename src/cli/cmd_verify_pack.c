/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/codec.h"
#include "base/diag.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/pack_order.h"
#include "cli/progress.h"
#include "cli/target.h"
#include "cli/terminal.h"
#include "evidence/report.h"
#include "evidence/verify.h"

/* What was asked for on the command line. */
struct request {
    const char *signer, *lock_file, *commit;
    const char *out, *html, *badge;
    struct option_number max_age;
    bool json, ci_binding, complete, claim_pass;
};

/* The same, read and checked. */
struct setup {
    struct verify_options options;
    struct digest signer;
    struct lock lock;
    struct keys keys;
    bool has_lock;
};

static int read_lock(struct setup *s, const char *path, struct err *err)
{
    CLEANUP(buf_release) struct buf text = { .max = LOCK_MAX_BYTES };

    if (file_read(path, &text, err) < 0)
        return -1;
    if (lock_read(&s->lock, buf_str(&text), err) < 0)
        return err_wrap(err, "the lock file '%s'", path);
    s->has_lock = true;
    return 0;
}

/* In either case: other tools print fingerprints in capitals. */
static bool read_fingerprint(struct digest *out, const char *text)
{
    char lower[2 * DIGEST_SIZE];

    if (strlen(text) != sizeof(lower))
        return false;
    for (size_t i = 0; i < sizeof(lower); i++)
        lower[i] = text[i] >= 'A' && text[i] <= 'F' ? (char)(text[i] | 0x20) : text[i];
    return digest_from_hex(out, str_of(lower, sizeof(lower)));
}

static int set_up(struct setup *s, const struct request *q, struct err *err)
{
    struct err no_keys = { .code = ERR_NONE };
    uint8_t commit[20];

    if (q->signer && !read_fingerprint(&s->signer, q->signer))
        return err_set(err, ERR_FORMAT,
                       "--signer '%s' is not a fingerprint of 64 hex digits", q->signer);
    if (q->commit && !hex_decode(commit, sizeof(commit), str_from(q->commit)))
        return err_set(err, ERR_FORMAT,
                       "--expected-commit-sha '%s' is not 40 lower-case hex digits",
                       q->commit);
    if (q->lock_file && read_lock(s, q->lock_file, err) < 0)
        return -1;
    s->options = (struct verify_options){
        .clock = &clock_system,
        .keys = keys_open(&s->keys, NULL, &no_keys) == 0 ? &s->keys : NULL,
        .lock = s->has_lock ? &s->lock : NULL,
        .signer = q->signer ? &s->signer : NULL,
        .limit_age = q->max_age.given,
        .max_age_hours = q->max_age.value,
        .require_ci_binding = q->ci_binding,
        .expected_commit = q->commit,
        .require_complete = q->complete,
        .require_claim_pass = q->claim_pass,
        .on_progress = progress_report,
    };
    return 0;
}

static void put(str text) /* foreign bytes */
{
    CLEANUP(buf_release) struct buf b = { .max = (size_t)64 << 20 };

    diag_escape(&b, text);
    fwrite(b.p, 1, b.n, stdout);
}

static void put_line(const char *name, str text)
{
    printf("  %-10s ", name);
    put(text);
    puts("");
}

static void put_verdict(const char *dir, const struct verify_result *v)
{
    static const struct {
        enum paint colour;
        const char *word, *meaning;
    } faces[] = {
        [VERIFY_SOUND] = { PAINT_GREEN, "SOUND",
                           "nothing was changed since it was signed" },
        [VERIFY_UNMET] = { PAINT_YELLOW, "SOUND, BUT NOT WHAT YOU ASKED FOR",
                           "nothing was changed, yet a requirement is not met" },
        [VERIFY_TAMPERED] = { PAINT_RED, "TAMPERED", "it is not what was signed" },
    };

    printf("%s%s%s ", paint(stdout, faces[v->verdict].colour), faces[v->verdict].word,
           paint(stdout, PAINT_END));
    put(str_from(dir));
    printf(": %s\n", faces[v->verdict].meaning);
}

static void put_key(const struct verify_result *v)
{
    CLEANUP(buf_release) struct buf words = { 0 };
    char hex[2 * DIGEST_SIZE];

    digest_hex(hex, &v->manifest.signer_pubkey_sha256);
    report_add_key_words(&words, v);
    printf("  %-10s %.64s\n  %-10s %s\n", "key", hex, "", buf_cstr(&words));
}

static void put_facts(const struct verify_result *v)
{
    CLEANUP(buf_release) struct buf count = { 0 };
    CLEANUP(buf_release) struct buf session = { 0 };
    const struct manifest *m = &v->manifest;

    if (!v->has_manifest)
        return;
    put_line("pack", m->pack_id);
    put_line("signed by", m->signer_id);
    put_key(v);
    receipt_facts_add_count(&count, &v->receipts);
    printf("  %-10s %s\n  %-10s ", "receipts", buf_cstr(&count), "time");
    put(m->timestamp_start);
    fputs(" to ", stdout);
    put(m->timestamp_end);
    puts("");
    put_line("claims", m->claim_check);
    if (v->receipts.has_session) {
        receipt_facts_add_session(&session, &v->receipts);
        printf("  %-10s %s\n", "session", buf_cstr(&session));
    }
}

/* All findings with this code, and then what it means. */
static void put_code(const struct findings *f, enum finding_code code)
{
    const struct finding_info *info = finding_info(code);

    puts("");
    for (size_t i = 0; i < f->count; i++) {
        if (f->items[i].code != code)
            continue;
        printf("%s%s%s ", paint(stdout, PAINT_RED), info->name, paint(stdout, PAINT_END));
        printf(STR_FMT "\n", STR_ARG(f->items[i].message));
    }
    printf("  means  %s\n  do     %s\n", info->meaning, info->advice);
}

static void put_findings(const struct findings *f)
{
    for (size_t i = 0; i < f->count; i++) {
        if (findings_first(f, i))
            put_code(f, f->items[i].code);
    }
    if (f->left_out)
        printf("\nand %" PRIu64 " more\n", f->left_out);
}

static void put_requirements(const struct verify_result *v)
{
    for (unsigned i = 0; i < REQUIREMENTS; i++) {
        const struct requirement *r = &v->requirements[i];
        const char *code = finding_info(r->code)->name;

        if (!r->asked || (!r->met && v->verdict == VERIFY_TAMPERED))
            continue;
        printf("\n%s%s%s %s%s", r->met ? "" : paint(stdout, PAINT_YELLOW),
               requirement_flag((enum requirement_kind)i),
               r->met ? "" : paint(stdout, PAINT_END),
               r->met ? "is met" : "is not met: ", "");
        fwrite(r->message.n ? r->message.p : "", 1, r->message.n, stdout);
        printf(*code ? " (%s)" : "%s", code);
    }
    puts("");
}

static void print_text(const char *dir, const struct verify_result *v)
{
    put_verdict(dir, v);
    put_facts(v);
    put_findings(&v->findings);
    put_requirements(v);
    for (size_t i = 0; i < v->warning_count; i++)
        printf("note: " STR_FMT "\n", STR_ARG(v->warnings[i]));
    puts(verify_boundary(v->verdict));
}

static const char *status_of(const struct verify_result *v)
{
    if (v->verdict == VERIFY_SOUND)
        return "ok";
    if (v->verdict == VERIFY_TAMPERED)
        return "failed";
    if (v->requirements[REQUIRE_LOCK].asked && !v->requirements[REQUIRE_LOCK].met)
        return "lock_mismatch";
    if (v->requirements[REQUIRE_CLAIM_PASS].asked &&
        !v->requirements[REQUIRE_CLAIM_PASS].met)
        return "claim_gate_failed";
    return "requirement_failed";
}

/* In the words of the public format. */
static const char *verdict_of(const struct verify_result *v)
{
    if (v->verdict == VERIFY_TAMPERED)
        return "TAMPERED";
    if (str_is(v->manifest.claim_check, "FAIL"))
        return "HONEST_FAIL";
    return v->verdict == VERIFY_UNMET ? "INSUFFICIENT_EVIDENCE" : "PASS";
}

static void put_json_signer(struct pretty *p, const struct verify_result *v)
{
    static const char *const standings[] = {
        [KEY_UNKNOWN] = "unknown", [KEY_LOCAL] = "local", [KEY_PINNED] = "pinned"
    };
    char hex[2 * DIGEST_SIZE];

    if (!v->has_manifest)
        return;
    digest_hex(hex, &v->manifest.signer_pubkey_sha256);
    pretty_object(p, "signer");
    pretty_string(p, "signer_id", v->manifest.signer_id);
    pretty_string(p, "fingerprint", str_of(hex, sizeof(hex)));
    pretty_bool(p, "signature_good", v->signature_good);
    pretty_text(p, "key", standings[v->key]);
    pretty_end_object(p);
}

static void put_json_part(struct pretty *p, const struct ordered_pack *pack, str missing)
{
    if (!pack->has_place)
        return;
    pretty_object(p, "part");
    pretty_text(p, "session_id", pack->place.session);
    pretty_u64(p, "part", pack->place.part);
    pretty_bool(p, "final", pack->place.final);
    pretty_bool(p, "follows", pack->follows);
    pretty_string(p, "missing", missing);
    pretty_end_object(p);
}

static void put_json_session(struct pretty *p, const struct receipt_facts *f)
{
    pretty_bool(p, "session_complete", f->session_complete);
    if (f->session_reason[0])
        pretty_text(p, "session_reason", f->session_reason);
    pretty_u64(p, "calls", f->calls);
    pretty_u64(p, "calls_lost", f->calls_lost);
}

static void add_json(struct pretty *p, const struct ordered_pack *pack, str missing,
                     const struct verify_result *v, const struct report *r)
{
    pretty_object(p, NULL);
    pretty_text(p, "command", "verify-pack");
    pretty_text(p, "status", status_of(v));
    pretty_text(p, "verdict", verdict_of(v));
    pretty_string(p, "claim_check",
                  v->has_manifest ? v->manifest.claim_check : STR("N/A"));
    pretty_text(p, "pack_dir", pack->dir);
    put_json_part(p, pack, missing);
    put_json_signer(p, v);
    if (v->receipts.has_session)
        put_json_session(p, &v->receipts);
    pretty_text(p, "boundary", verify_boundary(v->verdict));
    report_members(p, r);
    pretty_end_object(p);
}

static void add_json_error(struct pretty *p, const char *dir, const struct err *err)
{
    pretty_object(p, NULL);
    pretty_text(p, "command", "verify-pack");
    pretty_text(p, "status", "error");
    pretty_text(p, "pack_dir", dir);
    pretty_text(p, "error", err->msg);
    pretty_end_object(p);
}

static int write_file(const char *path, const struct buf *b, const char *dir,
                      struct err *err)
{
    if (target_is_in(path, dir))
        return err_set(err, ERR_REFUSED, "'%s' lies in the pack, which must not change",
                       path);
    if (buf_check(b, "the report", err) < 0)
        return -1;
    return target_write(path, buf_str(b), err);
}

static int write_files(const struct request *q, const struct report *r, const char *dir,
                       struct err *err)
{
    CLEANUP(buf_release) struct buf json = { .max = REPORT_MAX };
    CLEANUP(buf_release) struct buf html = { .max = REPORT_MAX };
    CLEANUP(buf_release) struct buf badge = { 0 };
    CLEANUP(mapping_release) struct mapping receipts = { 0 };
    struct err ignored;

    report_add(&json, r);
    buf_add_char(&json, '\n');
    if (receipt_pack_map(&receipts, dir, &ignored) < 0)
        receipts.bytes = STR(""); /* then none are listed */
    report_add_html(&html, r, dir, receipts.bytes);
    report_add_badge(&badge, r);
    if (q->out && write_file(q->out, &json, dir, err) < 0)
        return -1;
    if (q->html && write_file(q->html, &html, dir, err) < 0)
        return -1;
    return q->badge ? write_file(q->badge, &badge, dir, err) : 0;
}

static enum exit_code code_of(const struct verify_result *v)
{
    static const enum exit_code codes[] = {
        [VERIFY_SOUND] = EXIT_GOOD,
        [VERIFY_UNMET] = EXIT_NO,
        [VERIFY_TAMPERED] = EXIT_INTEGRITY,
    };

    return codes[v->verdict];
}

/* Damage outweighs not knowing, and that a wish. */
static enum exit_code worse(enum exit_code a, enum exit_code b)
{
    static const int weight[] = {
        [EXIT_GOOD] = 0, [EXIT_NO] = 1, [EXIT_INTEGRITY] = 3, [EXIT_BAD_INPUT] = 2
    };

    return weight[a] >= weight[b] ? a : b;
}

/* The packs of one session under way. */
struct batch {
    const struct request *q;
    struct setup *s;
    struct pretty *json; /* NULL: print */
    struct packlog parts;
    str missing; /* parts of the session that were not given */
    bool sound;  /* the pack before was */
};

/* A part after the one before it is checked with what that said; any other alone. A part
 * that another one follows need not be the end of its session. */
static int verify_one(struct batch *b, const struct ordered_pack *pack, bool followed,
                      struct verify_result *v, struct err *err)
{
    struct verify_options *o = &b->s->options;
    struct progress progress;
    int failed;

    if (!pack->follows || !b->sound)
        packlog_release(&b->parts);
    progress_start(&progress, "verifying the pack", &clock_system);
    o->progress = &progress;
    o->parts = &b->parts;
    o->require_complete = b->q->complete && !followed;
    failed = verify_pack(pack->dir, o, v, err);
    progress_finish(&progress);
    b->sound = failed == 0 && v->verdict != VERIFY_TAMPERED;
    return failed;
}

/* One pack: print it, or put it into the JSON that is being composed. */
static enum exit_code answer(struct batch *b, const struct ordered_pack *pack,
                             bool followed)
{
    CLEANUP(verify_result_release) struct verify_result v = { 0 };
    struct err err = { .code = ERR_NONE };
    struct report r;
    int failed = verify_one(b, pack, followed, &v, &err);

    if (failed == 0)
        report_of(&r, &v, b->s->options.lock);
    if (failed == 0 && write_files(b->q, &r, pack->dir, &err) < 0)
        failed = -1;
    if (failed < 0) {
        if (b->json)
            add_json_error(b->json, pack->dir, &err);
        return command_fail(&err);
    }
    if (b->json)
        add_json(b->json, pack, b->missing, &v, &r);
    else
        print_text(pack->dir, &v);
    return code_of(&v);
}

/* What the parts of a session are together; nothing to say of a session in one part. */
static void print_session(const struct ordered_pack *packs, size_t count, str missing)
{
    if (!packs[0].has_place || (packs[count - 1].place.part == 1 && missing.n == 0))
        return;
    puts("");
    put(str_from(packs[0].place.session));
    if (missing.n)
        printf(": not all parts of this session were given; missing: " STR_FMT "\n",
               STR_ARG(missing));
    else
        printf(": all parts of this session were given, 1 to %" PRIu64 "\n",
               packs[count - 1].place.part);
}

static enum exit_code answer_session(struct batch *b, const struct ordered_pack *packs,
                                     size_t count)
{
    CLEANUP(buf_release) struct buf missing = { 0 };
    enum exit_code code = EXIT_GOOD;

    pack_add_missing(&missing, packs, count);
    b->missing = buf_str(&missing);
    b->sound = false;
    for (size_t i = 0; i < count; i++) {
        bool followed = i + 1 < count && packs[i + 1].follows;

        if (i && !b->json)
            puts("");
        code = worse(code, answer(b, &packs[i], followed));
    }
    if (!b->json)
        print_session(packs, count, b->missing);
    return code;
}

static enum exit_code answer_sessions(struct batch *b, const struct ordered_pack *packs,
                                      size_t count)
{
    enum exit_code code = EXIT_GOOD;

    for (size_t i = 0, n; i < count; i += n) {
        n = pack_group(&packs[i], count - i);
        if (i && !b->json)
            puts("");
        code = worse(code, answer_session(b, &packs[i], n));
    }
    packlog_release(&b->parts);
    return code;
}

static enum exit_code answer_all(const struct operands *dirs, const struct request *q,
                                 struct setup *s)
{
    CLEANUP(buf_release) struct buf json = { .max = 64 * REPORT_MAX };
    size_t count = (size_t)dirs->count;
    struct ordered_pack *packs = calloc(count, sizeof(*packs));
    struct batch b = { .q = q, .s = s };
    struct err err = { .code = ERR_NONE };
    enum exit_code code;
    struct pretty p;

    if (!packs) {
        err_set(&err, ERR_NOMEM, "no memory for %zu packs", count);
        return command_fail_as(&cmd_verify_pack, q->json, &err);
    }
    for (size_t i = 0; i < count; i++)
        packs[i].dir = dirs->at[i];
    pack_order(packs, count);
    pretty_init(&p, &json);
    b.json = q->json ? &p : NULL;
    if (count > 1)
        pretty_array(&p, NULL);
    code = answer_sessions(&b, packs, count);
    free(packs);
    if (!q->json)
        return code;
    if (count > 1)
        pretty_end_array(&p);
    buf_add_char(&json, '\n');
    if (buf_check(&json, "the answer", &err) < 0)
        return command_fail_as(&cmd_verify_pack, q->json, &err);
    fwrite(json.p, 1, json.n, stdout);
    return code;
}

static enum exit_code run(int argc, char **argv)
{
    struct request q = { 0 };
    struct operands dirs = { .min = 1, .max = OPERANDS_ANY };
    const struct option table[] = {
        { "signer", "FINGERPRINT", "the key that must have signed", .text = &q.signer },
        { "lock", "FILE", "the lock file that it must fit", .text = &q.lock_file },
        { "max-age-hours", "N", "refuse an older pack", .number = &q.max_age },
        { "require-ci-binding", NULL, "it must name the build that made it",
          .flag = &q.ci_binding },
        { "expected-commit-sha", "SHA", "the commit that it must belong to",
          .text = &q.commit },
        { "require-complete", NULL, "its session must be complete", .flag = &q.complete },
        { "require-claim-pass", NULL, "its claims must have passed",
          .flag = &q.claim_pass },
        { "json", NULL, "print the report as JSON", .flag = &q.json },
        { "out", "FILE", "write verify_report.json there", .text = &q.out },
        { "html", "FILE", "write a page for people there", .text = &q.html },
        { "badge", "FILE", "write an SVG badge there", .text = &q.badge },
        { 0 },
    };
    struct setup s = { 0 };
    struct err err = { .code = ERR_NONE };
    enum exit_code code;

    if (!options_parse(&cmd_verify_pack, table, argc, argv, &dirs, &code))
        return code;
    if (dirs.count > 1 && (q.out || q.html || q.badge)) {
        err_set(&err, ERR_FORMAT,
                "--out, --html and --badge take one pack, %d were given", dirs.count);
        return command_fail_as(&cmd_verify_pack, q.json, &err);
    }
    code = set_up(&s, &q, &err) < 0 ? command_fail_as(&cmd_verify_pack, q.json, &err)
                                    : answer_all(&dirs, &q, &s);
    lock_release(&s.lock);
    return code;
}

const struct command cmd_verify_pack = {
    .name = "verify-pack",
    .usage = "[FLAGS] DIR...",
    .summary = "check that a proof pack is what was signed",
    .run = run,
};
