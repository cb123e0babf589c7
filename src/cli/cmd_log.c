/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/codec.h"
#include "base/diag.h"
#include "base/err.h"
#include "cli/command.h"
#include "cli/log_show.h"
#include "cli/options.h"
#include "cli/pepper.h"
#include "cli/place.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "evidence/investigation.h"
#include "evidence/log.h"
#include "evidence/logcheck.h"
#include "evidence/origin.h"
#include "evidence/prove.h"
#include "evidence/verify.h"
#include "json/pretty.h"

static const struct command log_verify, log_prove, log_rebuild_command, log_forget;

/* --- verify --- */

static void print_findings(const struct logcheck *c)
{
    unsigned kept =
        c->findings < LOGCHECK_FINDINGS_MAX ? c->findings : LOGCHECK_FINDINGS_MAX;

    for (unsigned i = 0; i < kept; i++) {
        CLEANUP(buf_release) struct buf line = { .max = 4096 };

        diag_escape(&line, str_from(c->finding[i].message));
        printf("  %-14s %s\n", logcheck_code_name(c->finding[i].code), buf_cstr(&line));
    }
    if (c->findings > kept)
        printf("  and %u more\n", c->findings - kept);
}

static void print_key(const struct logcheck *c, const struct keys *keys)
{
    struct digest d = digest_of(str_of(c->public_key, PUBLIC_SIZE));
    char hex[2 * DIGEST_SIZE], id[KEYS_ID_MAX + 1];
    struct err ignored;

    digest_hex(hex, &d);
    printf("  signed by      %.*s\n", 2 * DIGEST_SIZE, hex);
    if (keys_find_public(keys, c->public_key, id, &ignored) == 0)
        printf("                 known here as '%s'\n", id);
    else
        printf(
            "                 not known here: compare it with the fingerprint that you "
            "were given\n");
}

static void print_facts(const struct logcheck *c, const struct keys *keys)
{
    printf("  log            %s\n", c->origin);
    print_key(c, keys);
    printf("  events         %" PRIu64 " in %" PRIu64 " segment%s, %" PRIu64
           " session%s\n",
           c->events, c->segments, plural(c->segments), c->sessions, plural(c->sessions));
    printf("  signed         %" PRIu64 " event%s, %" PRIu64 " checkpoint%s\n",
           c->signed_size, plural(c->signed_size), c->checkpoints,
           plural(c->checkpoints));
    if (c->events > c->signed_size && c->serious == 0)
        printf("  not yet signed %" PRIu64 " event%s\n", c->events - c->signed_size,
               plural(c->events - c->signed_size));
    if (c->gaps)
        printf("  gaps           %" PRIu64 ", by which %" PRIu64 " event%s lost\n",
               c->gaps, c->lost, c->lost == 1 ? " is" : "s are");
    if (c->repairs)
        printf("  repairs        %" PRIu64 " torn tail%s cut off and kept\n", c->repairs,
               plural(c->repairs));
    printf("  this machine   %s\n",
           !c->remembered    ? "has no memory of its own of this log"
           : c->serious == 0 ? "remembers signing this log, and agrees"
                             : "remembers signing this log");
}

static const char *boundary_of(const struct logcheck *c)
{
    switch (logcheck_verdict_of(c)) {
    case LOGCHECK_SOUND:
        return VERIFY_BOUNDARY;
    case LOGCHECK_MENDABLE:
        return "this shows what crossed the proxy and that the signed events were not "
               "changed since; " VERIFY_LIMITS;
    case LOGCHECK_DAMAGED:
        break;
    }
    return "this shows that the log is not what was written and signed; it does not show "
           "who changed it, nor what crossed the proxy";
}

static void print_text(const struct logcheck *c, const struct keys *keys)
{
    static const struct {
        enum paint colour;
        const char *sentence;
    } verdicts[] = {
        [LOGCHECK_SOUND] = { PAINT_GREEN,
                             "SOUND: every event is what was written, in its place" },
        [LOGCHECK_MENDABLE] = { PAINT_YELLOW,
                                "SOUND, but not tidy: every signed event is what was "
                                "written; what follows can be mended without loss" },
        [LOGCHECK_DAMAGED] = { PAINT_RED,
                               "DAMAGED: this log is not what was written and signed" },
    };
    enum logcheck_verdict v = logcheck_verdict_of(c);

    printf("%s%s%s\n", paint(stdout, verdicts[v].colour), verdicts[v].sentence,
           paint(stdout, PAINT_END));
    print_findings(c);
    print_facts(c, keys);
    printf("\n%s\n", boundary_of(c));
}

static void add_findings(struct pretty *p, const struct logcheck *c)
{
    pretty_array(p, "findings");
    for (unsigned i = 0; i < c->findings && i < LOGCHECK_FINDINGS_MAX; i++) {
        pretty_object(p, NULL);
        pretty_text(p, "code", logcheck_code_name(c->finding[i].code));
        pretty_u64(p, "seq", c->finding[i].seq);
        pretty_text(p, "message", c->finding[i].message);
        pretty_end_object(p);
    }
    pretty_end_array(p);
}

static void add_fingerprint(struct pretty *p, const struct logcheck *c)
{
    struct digest d = digest_of(str_of(c->public_key, PUBLIC_SIZE));
    char hex[2 * DIGEST_SIZE];

    digest_hex(hex, &d);
    pretty_string(p, "signer_pubkey_sha256", str_of(hex, sizeof(hex)));
}

static void print_json(const struct logcheck *c)
{
    static const char *const statuses[] = { "ok", "mendable", "failed" };
    CLEANUP(buf_release) struct buf out = { 0 };
    struct pretty p;

    pretty_init(&p, &out);
    pretty_object(&p, NULL);
    pretty_text(&p, "command", "log verify");
    pretty_text(&p, "status", statuses[logcheck_verdict_of(c)]);
    pretty_text(&p, "origin", c->origin);
    add_fingerprint(&p, c);
    pretty_u64(&p, "events", c->events);
    pretty_u64(&p, "bytes", c->bytes);
    pretty_u64(&p, "segments", c->segments);
    pretty_u64(&p, "sessions", c->sessions);
    pretty_u64(&p, "checkpoints", c->checkpoints);
    pretty_u64(&p, "signed_size", c->signed_size);
    pretty_u64(&p, "gaps", c->gaps);
    pretty_u64(&p, "lost", c->lost);
    pretty_u64(&p, "repairs", c->repairs);
    pretty_bool(&p, "remembered", c->remembered);
    pretty_u64(&p, "finding_count", c->findings);
    add_findings(&p, c);
    pretty_text(&p, "boundary", boundary_of(c));
    pretty_end_object(&p);
    buf_add_char(&out, '\n');
    fwrite(out.p, 1, out.n, stdout);
}

static enum exit_code verify(const char *dir, bool investigation, str pepper, bool json)
{
    struct progress bar;
    struct keys keys;
    struct logcheck_options options = { .keys = &keys,
                                        .clock = &clock_system,
                                        .investigation = investigation,
                                        .pepper = pepper,
                                        .progress = progress_report,
                                        .progress_ctx = &bar };
    static struct logcheck result;
    struct err err = { .code = ERR_NONE };
    int r;

    if (keys_open(&keys, NULL, &err) < 0)
        return command_fail_as(&log_verify, json, &err);
    progress_start(&bar, "verifying the log", &clock_system);
    r = logcheck_run(&result, dir, &options, &err);
    progress_finish(&bar);
    if (r < 0)
        return command_fail_as(&log_verify, json, &err);
    if (json)
        print_json(&result);
    else
        print_text(&result, &keys);
    switch (logcheck_verdict_of(&result)) {
    case LOGCHECK_SOUND:
        return EXIT_GOOD;
    case LOGCHECK_MENDABLE:
        return EXIT_NO;
    case LOGCHECK_DAMAGED:
        break;
    }
    return EXIT_INTEGRITY;
}

static enum exit_code run_verify(int argc, char **argv)
{
    bool json = false, investigation = false;
    const char *given = NULL, *pepper_file = NULL;
    const struct option table[] = {
        { "audit-dir", "DIR", "the audit directory (default " PLACE_DEFAULT ")",
          .text = &given },
        { "investigation", NULL, "compare kept payloads with their events too",
          .flag = &investigation },
        { "hash-pepper", "FILE", "with --investigation: the key of keyed hashes",
          .text = &pepper_file },
        { "json", NULL, "print JSON", .flag = &json },
        { 0 },
    };
    CLEANUP(buf_release) struct buf pepper = { 0 };
    struct operands dirs = { .max = 1 };
    struct err err = { .code = ERR_NONE };
    char dir[FILE_PATH_MAX];
    enum exit_code code;

    if (!options_parse(&log_verify, table, argc, argv, &dirs, &code))
        return code;
    if (place_choose(dir, &dirs, given, &err) < 0 ||
        pepper_read(pepper_file, &pepper, &err) < 0)
        return command_fail_as(&log_verify, json, &err);
    return verify(dir, investigation, buf_str(&pepper), json);
}

static const struct command log_verify = {
    .name = "log verify",
    .usage = "[--investigation [--hash-pepper FILE]] [--json] [DIR]",
    .summary = "check every event, signature and derived file of the log",
    .run = run_verify,
};

/* --- prove --- */

static void add_digest(struct pretty *p, const char *name, const struct digest *d)
{
    CLEANUP(buf_release) struct buf text = { 0 };

    base64_add(&text, d->bytes, DIGEST_SIZE);
    pretty_string(p, name, buf_str(&text));
}

static void add_proof(struct pretty *p, const struct proven *proven)
{
    pretty_array(p, "hashes");
    for (unsigned i = 0; i < proven->proof.count; i++)
        add_digest(p, NULL, &proven->proof.hash[i]);
    pretty_end_array(p);
    if (proven->note.n)
        pretty_string(p, "checkpoint", buf_str(&proven->note));
    else
        pretty_null(p, "checkpoint");
}

static void add_json(struct buf *out, const struct proven *proven, bool inclusion)
{
    struct pretty p;

    pretty_init(&p, out);
    pretty_object(&p, NULL);
    pretty_text(&p, "command", "log prove");
    pretty_u64(&p, inclusion ? "index" : "from", proven->index);
    pretty_u64(&p, inclusion ? "size" : "to", proven->size);
    if (!inclusion)
        add_digest(&p, "from_root", &proven->old_root);
    add_digest(&p, inclusion ? "root" : "to_root", &proven->root);
    add_proof(&p, proven);
    pretty_end_object(&p);
    buf_add_char(out, '\n');
}

static int add_consistency(struct buf *out, const struct proven *proven, const char *dir,
                           struct err *err)
{
    struct origin origin;
    char log_dir[FILE_PATH_MAX];

    if (path_join(log_dir, dir, "log", err) < 0 || origin_read(&origin, log_dir, err) < 0)
        return -1;
    proven_add_consistency(out, proven, origin.name);
    if (proven->note.n == 0)
        diag_say("no checkpoint of exactly %" PRIu64
                 " event%s was signed; the last lines "
                 "are not a signed note",
                 proven->size, plural(proven->size));
    return 0;
}

/* Add what helps, which is what `log verify` finds out: bad tiles can be made anew only
 * from good events. */
static void advise(const char *dir, struct err *err)
{
    static struct logcheck c;
    struct err why = *err, ignored = { .code = ERR_NONE };
    struct keys keys;
    struct logcheck_options options = {
        .keys = keys_open(&keys, NULL, &ignored) == 0 ? &keys : NULL,
        .clock = &clock_system,
    };

    if (err->code != ERR_DAMAGE || logcheck_run(&c, dir, &options, &ignored) < 0)
        return;
    if (logcheck_verdict_of(&c) == LOGCHECK_DAMAGED)
        err_set(err, why.code,
                "%s; the log is damaged, and that cannot be mended: 'assay log verify' "
                "says where",
                why.msg);
    else
        err_set(err, why.code, "%s; 'assay log rebuild' writes them anew", why.msg);
}

/* What the caller asks to be proven. */
struct question {
    bool inclusion;
    uint64_t seq, from, to; /* to 0: the newest checkpoint */
};

static enum exit_code prove(const char *dir, const struct question *q, bool json)
{
    CLEANUP(proven_release) struct proven proven = { 0 };
    CLEANUP(buf_release) struct buf out = { 0 };
    struct err err = { .code = ERR_NONE };
    int r = q->inclusion ? prove_inclusion(&proven, dir, q->seq, &err)
                         : prove_consistency(&proven, dir, q->from, q->to, &err);

    if (r < 0) {
        advise(dir, &err);
        return command_fail_as(&log_prove, json, &err);
    }
    if (json)
        add_json(&out, &proven, q->inclusion);
    else if (q->inclusion)
        proven_add_inclusion(&out, &proven);
    else if (add_consistency(&out, &proven, dir, &err) < 0)
        return command_fail_as(&log_prove, json, &err);
    fwrite(out.p, 1, out.n, stdout);
    return EXIT_GOOD;
}

static int read_question(struct question *q, const struct operands *seq,
                         const struct option_number *from, const struct option_number *to,
                         struct err *err)
{
    *q = (struct question){ .inclusion = seq->count == 1, .from = from->value };
    if (q->inclusion && (from->given || to->given))
        return err_set(err, ERR_FORMAT, "either SEQ, or --from and --to");
    if (!q->inclusion && !from->given)
        return err_set(err, ERR_FORMAT, "what shall be proven? SEQ, or --from M --to N");
    if (to->given && to->value == 0)
        return err_set(err, ERR_FORMAT, "--to is a size of 1 or more");
    q->to = to->value;
    if (q->inclusion && !u64_parse(&q->seq, str_from(seq->at[0])))
        return err_set(err, ERR_FORMAT, "'%s' is not the number of an event", seq->at[0]);
    return 0;
}

static enum exit_code run_prove(int argc, char **argv)
{
    bool json = false;
    const char *given = NULL;
    struct option_number from = { 0 }, to = { 0 };
    const struct option table[] = {
        { "from", "M", "prove that the first M events…", .number = &from },
        { "to", "N", "…are the beginning of the first N (default: all that are signed)",
          .number = &to },
        { "audit-dir", "DIR", "the audit directory (default " PLACE_DEFAULT ")",
          .text = &given },
        { "json", NULL, "print JSON", .flag = &json },
        { 0 },
    };
    struct operands seq = { .max = 1 };
    struct err err = { .code = ERR_NONE };
    struct question q;
    char dir[FILE_PATH_MAX];
    enum exit_code code;

    if (!options_parse(&log_prove, table, argc, argv, &seq, &code))
        return code;
    if (read_question(&q, &seq, &from, &to, &err) < 0 || place_find(dir, given, &err) < 0)
        return command_fail_as(&log_prove, json, &err);
    return prove(dir, &q, json);
}

static const struct command log_prove = {
    .name = "log prove",
    .usage = "(SEQ | --from M [--to N]) [--audit-dir DIR] [--json]",
    .summary = "print a C2SP proof that an event, or an older size, is in the log",
    .run = run_prove,
};

/* --- rebuild --- */

static int rebuild(const char *dir, uint64_t *events, struct err *err)
{
    struct log_options options;
    struct keys keys;

    if (keys_open(&keys, NULL, err) < 0)
        return -1;
    options = place_log_options(dir, &keys);
    return log_rebuild(&options, events, err);
}

static enum exit_code run_rebuild(int argc, char **argv)
{
    const char *given = NULL;
    const struct option table[] = {
        { "audit-dir", "DIR", "the audit directory (default " PLACE_DEFAULT ")",
          .text = &given },
        { 0 },
    };
    struct operands dirs = { .max = 1 };
    struct err err = { .code = ERR_NONE };
    char dir[FILE_PATH_MAX];
    enum exit_code code;
    uint64_t events;

    if (!options_parse(&log_rebuild_command, table, argc, argv, &dirs, &code))
        return code;
    if (place_choose(dir, &dirs, given, &err) < 0 || rebuild(dir, &events, &err) < 0)
        return command_fail(&err);
    printf("rebuilt the head and the tiles of %" PRIu64 " event%s\n", events,
           plural(events));
    return EXIT_GOOD;
}

static const struct command log_rebuild_command = {
    .name = "log rebuild",
    .usage = "[--audit-dir DIR | DIR]",
    .summary = "make the derived files (head, tiles) anew from the events",
    .run = run_rebuild,
};

/* --- forget --- */

static int forget(const char *dir, const char *session, uint64_t *files, struct err *err)
{
    struct log_options options;
    struct keys keys;
    struct err closing = { .code = ERR_NONE };
    struct log *log;
    int r;

    if (keys_open(&keys, NULL, err) < 0)
        return -1;
    options = place_log_options(dir, &keys);
    if (log_open(&log, &options, err) < 0)
        return -1;
    r = investigation_forget(log, session, files, err);
    if (log_close(log, &closing) < 0 && r == 0) {
        *err = closing;
        r = -1;
    }
    return r;
}

static enum exit_code run_forget(int argc, char **argv)
{
    const char *given = NULL;
    const struct option table[] = {
        { "audit-dir", "DIR", "the audit directory (default " PLACE_DEFAULT ")",
          .text = &given },
        { 0 },
    };
    struct operands session = { .min = 1, .max = 1 };
    struct err err = { .code = ERR_NONE };
    char dir[FILE_PATH_MAX];
    enum exit_code code;
    uint64_t files;

    if (!options_parse(&log_forget, table, argc, argv, &session, &code))
        return code;
    if (place_find(dir, given, &err) < 0 || forget(dir, session.at[0], &files, &err) < 0)
        return command_fail(&err);
    printf("deleted %" PRIu64 " file%s with messages of %s; the log says so and still "
           "verifies\n",
           files, plural(files), session.at[0]);
    return EXIT_GOOD;
}

static const struct command log_forget = {
    .name = "log forget",
    .usage = "[--audit-dir DIR] SESSION",
    .summary = "delete the kept messages of a session; the evidence stays",
    .run = run_forget,
};

static const struct command *const subcommands[] = {
    &log_verify, &log_show, &log_prove, &log_rebuild_command, &log_forget, NULL,
};

const struct command cmd_log = {
    .name = "log",
    .usage = "COMMAND",
    .summary = "verify, print and prove the audit log",
    .subcommands = subcommands,
};
