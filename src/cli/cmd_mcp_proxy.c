/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/place.h"
#include "cli/proxy_flags.h"
#include "pipeline/front.h"
#include "pipeline/solo.h"

/* --- for one client --- */

/* The directory that a session will need: better missed before the server runs. */
static int prepare(struct proxy_run *r, struct err *err)
{
    char path[FILE_PATH_MAX];

    if (log_open(&r->relay.log, &r->log, err) < 0 ||
        (r->relay.policy &&
         policy_file_keep(r->relay.policy, log_dir(r->relay.log), err) < 0))
        return -1;
    if (!r->relay.investigation)
        return 0;
    return path_join(path, log_dir(r->relay.log), "investigation", err) < 0
               ? -1
               : file_make_dirs(path, 0700, err);
}

/* The first that holds. */
static enum exit_code decide(const struct solo_outcome *o, bool failed)
{
    if (failed && !o->started)
        return EXIT_BAD_INPUT;
    if (failed || !o->session.complete || o->evidence_lost)
        return EXIT_INTEGRITY;
    if (o->interrupted)
        return EXIT_SIGINT;
    return o->session.violations ? EXIT_NO : EXIT_GOOD;
}

static void note_violations(struct proxy_run *r, uint64_t n)
{
    char sentence[160];

    snprintf(sentence, sizeof(sentence), "%llu message%s %s denied by the policy%s",
             (unsigned long long)n, plural(n),
             !r->relay.enforce ? "would have been"
             : n == 1          ? "was"
                               : "were",
             r->relay.enforce ? "" : "; the profile audit sends on what comes");
    status_note(&r->status, sentence);
}

static void note_unanswered(struct proxy_run *r, uint64_t n, const char *whose)
{
    char sentence[160];

    snprintf(sentence, sizeof(sentence),
             "%llu call%s %s not answered; %s session is not complete",
             (unsigned long long)n, plural(n), n == 1 ? "was" : "were", whose);
    status_note(&r->status, sentence);
}

static enum exit_code conclude(struct proxy_run *r, const struct solo_outcome *o,
                               bool failed)
{
    enum exit_code code = decide(o, failed);

    if (o->session.violations)
        note_violations(r, o->session.violations);
    if (o->session.unanswered)
        note_unanswered(r, o->session.unanswered, "the");
    if (o->evidence_lost)
        status_error(&r->status, "evidence was lost; the lines above say how much");
    if (o->session.packed)
        status_pack(&r->status, &o->session.pack);
    if (o->started)
        status_end(&r->status, o->session.complete, o->session.calls, code);
    if (o->abandoned)
        _exit(code); /* a thread is still at work for the dead: solo.h */
    return code;
}

static enum exit_code record(struct proxy_run *r)
{
    struct solo_outcome outcome = { .started = false };
    struct err err = { .code = ERR_NONE };
    bool failed = prepare(r, &err) < 0 || solo_run(&r->relay, &outcome, &err) < 0;

    if (failed)
        status_error(&r->status, err.msg);
    if (r->relay.log && !outcome.abandoned && log_close(r->relay.log, &err) < 0) {
        status_error(&r->status, err.msg);
        failed = true;
    }
    return conclude(r, &outcome, failed);
}

/* --- the same for many clients --- */

static void on_listening(void *ctx, const char *url)
{
    struct proxy_run *r = ctx;

    status_listening(&r->status, url);
    if (!r->front.is_loopback)
        status_note(&r->status,
                    r->front.identity
                        ? "whoever reaches this port can use the server: there is no "
                          "password"
                        : "whoever reaches this port can use the server: there is no "
                          "password, and no TLS");
}

static enum exit_code decide_front(const struct front_outcome *o, bool failed)
{
    if (failed && !o->started)
        return EXIT_BAD_INPUT;
    if (failed || o->incomplete || o->evidence_lost)
        return EXIT_INTEGRITY;
    if (o->interrupted)
        return EXIT_SIGINT;
    return o->violations ? EXIT_NO : EXIT_GOOD;
}

static enum exit_code conclude_front(struct proxy_run *r, const struct front_outcome *o,
                                     bool failed)
{
    enum exit_code code = decide_front(o, failed);

    if (o->violations)
        note_violations(r, o->violations);
    if (o->unanswered)
        note_unanswered(r, o->unanswered, "its");
    if (o->evidence_lost)
        status_error(&r->status, "evidence was lost; the lines above say how much");
    if (o->started)
        status_end(&r->status, !o->incomplete, o->calls, code);
    if (o->abandoned)
        _exit(code); /* a thread is still at work for the dead: solo.h */
    return code;
}

/* Workers have little to allocate: a heap for each of them would be as much memory as
 * hundreds of sessions that idle. */
static void share_heaps(void)
{
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 2);
#endif
}

static enum exit_code serve(struct proxy_run *r)
{
    struct front_outcome outcome = { .started = false };
    struct err err = { .code = ERR_NONE };
    bool failed;

    share_heaps();
    r->front.listening = on_listening;
    r->front.ctx = r;
    failed = prepare(r, &err) < 0 || front_run(&r->front, &outcome, &err) < 0;
    if (failed)
        status_error(&r->status, err.msg);
    if (r->relay.log && !outcome.abandoned && log_close(r->relay.log, &err) < 0) {
        status_error(&r->status, err.msg);
        failed = true;
    }
    return conclude_front(r, &outcome, failed);
}

static enum exit_code proxy(const struct proxy_flags *f, char *const *argv)
{
    struct proxy_run r = { .flags = f, .status = { .json = f->json } };
    struct err err = { .code = ERR_NONE };
    enum exit_code code = EXIT_BAD_INPUT;

    if (proxy_read_flags(&r, argv, &err) < 0)
        status_error(&r.status, err.msg);
    else
        code = f->listen ? serve(&r) : record(&r);
    proxy_run_release(&r);
    return code;
}

static enum exit_code complain(const struct proxy_flags *f,
                               const struct operands *command)
{
    const struct command *c = &cmd_mcp_proxy;
    struct err err = { .code = ERR_NONE };

    if (f->upstream_url)
        err_set(&err, ERR_FORMAT,
                "%s: either --upstream-url or a server's command, not both", c->name);
    else if (command->count == 0)
        err_set(&err, ERR_FORMAT, "%s: too few arguments; usage: assay %s %s", c->name,
                c->name, c->usage);
    else
        err_set(&err, ERR_FORMAT,
                "put '--' in front of the server's command: assay %s %s", c->name,
                c->usage);
    return command_fail_as(c, f->json, &err);
}

/* Either there is a URL, or a command behind '--'. */
static enum exit_code start(const struct proxy_flags *f, const struct operands *command)
{
    bool good = f->upstream_url ? command->count == 0
                                : command->count > 0 && command->dashed == command->count;

    return good ? proxy(f, command->at) : complain(f, command);
}

/* One command line a process. */
static struct proxy_flags given;

static const struct option table[] = {
    { "upstream-url", "URL", "the server is there, over HTTP; no command then",
      .text = &given.upstream_url },
    { "header", "NAME=VALUE", "send this header to it; may be repeated",
      .list = &given.headers },
    { "ca", "FILE", "trust these certificates (PEM) instead of the system's",
      .text = &given.ca },
    { "listen", "ADDR:PORT",
      "serve clients over HTTP there: /mcp, /sse (default: stdin and stdout)",
      .text = &given.listen },
    { "listen-any", NULL, "let --listen take an address that others can reach",
      .flag = &given.listen_any },
    { "tls-cert", "FILE", "serve HTTPS with this certificate chain (PEM)",
      .text = &given.tls_cert },
    { "tls-key", "FILE", "…and its key (PEM)", .text = &given.tls_key },
    { "allow-origin", "O", "let pages of this origin in, and read; may be repeated",
      .list = &given.origins },
    { "share-child", NULL, "one server process for all clients of --listen",
      .flag = &given.share_child },
    { "audit-dir", "DIR", "where evidence goes (default " PLACE_DEFAULT ")",
      .text = &given.audit_dir },
    { "profile", "P",
      "audit: record and change nothing (the default); guard: refuse, too",
      .text = &given.profile },
    { "policy", "FILE", "what may be called; guard needs it, audit records its advice",
      .text = &given.policy },
    { "pin", "P", "warn (default), strict or off: tools whose definition changes",
      .text = &given.pin },
    { "show-denied-tools", NULL, "let guard show tools that it would refuse",
      .flag = &given.show_denied },
    { "server-id", "ID", "what receipts call the server (default: from the command)",
      .text = &given.server_id },
    { "store-args", NULL, "keep arguments readable in receipts",
      .flag = &given.store_args },
    { "store-results", NULL, "keep results readable in receipts",
      .flag = &given.store_results },
    { "investigation", NULL, "keep whole messages beside the log",
      .flag = &given.investigation },
    { "hash-pepper", "FILE", "key hashes with this secret (32 bytes or more, 0600)",
      .text = &given.pepper_file },
    { "durability", "D", "write (default), group or strict: what is waited for",
      .text = &given.durability },
    { "on-evidence-failure", "F",
      "pass (default) or block (default of guard), when evidence cannot be written",
      .text = &given.on_failure },
    { "auto-pack", NULL, "build a pack at the end (the default)",
      .flag = &given.auto_pack },
    { "no-auto-pack", NULL, "build no pack at the end", .flag = &given.no_auto_pack },
    { "pack-interval", "I", "session (default), or also every Nm minutes, Nr receipts",
      .text = &given.interval },
    { "pack-empty", NULL, "pack sessions without calls, too", .flag = &given.pack_empty },
    { "audit-group", "G", "let this group read log/", .text = &given.group },
    { "shutdown-timeout", "S", "wait this long for open calls at the end (default 10)",
      .number = &given.shutdown },
    { "call-timeout", "S", "answer a call that waits longer with an error",
      .number = &given.call_timeout },
    { "max-message-bytes", "N", "cut a message that is larger (default 1 GiB)",
      .number = &given.max_message },
    { "json", NULL, "status lines on stderr as JSON", .flag = &given.json },
    { 0 },
};

static enum exit_code run(int argc, char **argv)
{
    struct operands command = { .min = 0, .max = OPERANDS_ANY };
    enum exit_code code;

    if (!options_parse(&cmd_mcp_proxy, table, argc, argv, &command, &code))
        return code;
    return start(&given, &command);
}

const struct command cmd_mcp_proxy = {
    .name = "mcp-proxy",
    .usage = "[flags] (-- COMMAND [ARGS] | --upstream-url URL)",
    .summary = "record what crosses between a client and a server",
    .run = run,
    .owns_stdout = true,
};
