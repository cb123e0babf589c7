/* SPDX-License-Identifier: Apache-2.0 */
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/codec.h"
#include "base/err.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/pepper.h"
#include "cli/place.h"
#include "cli/server_name.h"
#include "cli/status.h"
#include "pipeline/policy_file.h"
#include "pipeline/solo.h"
#include "pipeline/upstream.h"

#define DEFAULT_SHUTDOWN 10                 /* s */
#define SECONDS_MAX      ((uint64_t)604800) /* a week: of any time that is given */
#define MESSAGE_DEFAULT  ((uint64_t)1 << 30)
#define INTERVAL_MAX     1000000 /* minutes or receipts */

/* As they stand on the command line. */
struct flags {
    const char *audit_dir, *profile, *server_id, *durability, *on_failure;
    const char *pepper_file, *interval, *group, *policy, *pin;
    const char *upstream_url, *ca;
    struct option_list headers;
    bool auto_pack, no_auto_pack, store_args, store_results, pack_empty;
    bool investigation, json, show_denied;
    struct option_number shutdown, call_timeout, max_message;
};

/* One run: what the flags mean, and what belongs to it. */
struct run {
    const struct flags *flags;
    struct status status;
    struct keys keys;
    char dir[FILE_PATH_MAX];
    char server_id[SERVER_NAME_MAX];
    struct buf pepper;
    char pepper_check[PEPPER_CHECK];
    struct policy_file policy;
    struct upstream_options upstream;
    struct log_options log;
    struct relay_options relay;
};

/* --- what the flags mean --- */

static int choose(int *out, const char *flag, const char *given, const char *const *words,
                  struct err *err)
{
    CLEANUP(buf_release) struct buf all = { 0 };

    for (int i = 0; given && words[i]; i++) {
        if (strcmp(given, words[i]) == 0) {
            *out = i;
            return 0;
        }
        buf_printf(&all, "%s%s", i ? ", " : "", words[i]);
    }
    return given ? err_set(err, ERR_FORMAT, "--%s cannot be '%s': it is one of %s", flag,
                           given, buf_cstr(&all))
                 : 0;
}

static int read_profile(struct run *r, struct err *err)
{
    static const char *const words[] = { "audit", "guard", "escrow", NULL };
    int profile = 0;

    if (choose(&profile, "profile", r->flags->profile, words, err) < 0)
        return -1;
    if (profile == 2)
        return err_set(err, ERR_REFUSED,
                       "--profile escrow is reserved for later: it does not exist");
    r->relay.enforce = profile == 1;
    if (profile == 1 && !r->flags->policy)
        return err_set(err, ERR_FORMAT,
                       "--profile guard needs a policy: --policy FILE ('assay policy "
                       "init' makes one to begin with)");
    if (r->flags->show_denied && profile != 1)
        return err_set(err, ERR_FORMAT,
                       "--show-denied-tools is for --profile guard: audit hides nothing");
    return 0;
}

/* Before the server runs: a policy that cannot be read is no policy. */
static int read_policy(struct run *r, struct err *err)
{
    static const char *const words[] = { "off", "warn", "strict", NULL };
    int pin = -1;

    if (choose(&pin, "pin", r->flags->pin, words, err) < 0)
        return -1;
    r->relay.pin = (enum policy_pin)(pin + POLICY_PIN_OFF);
    if (pin < 0)
        r->relay.pin = POLICY_PIN_UNSET;
    r->relay.show_denied_tools = r->flags->show_denied;
    if (!r->flags->policy)
        return 0;
    if (policy_file_load(&r->policy, r->flags->policy, err) < 0)
        return -1;
    for (const struct policy_note *n = r->policy.policy->notes; n; n = n->next) {
        char sentence[600];

        snprintf(sentence, sizeof(sentence), "%s:%u: %.*s", r->flags->policy, n->line,
                 STR_ARG(n->text));
        status_note(&r->status, sentence);
    }
    r->relay.policy = &r->policy;
    return 0;
}

static int read_words(struct run *r, struct err *err)
{
    static const char *const durability[] = { "write", "group", "strict", NULL };
    static const char *const failure[] = { "pass", "block", NULL };
    int d = LOG_WRITE, f = LOG_PASS;

    if (read_profile(r, err) < 0)
        return -1;
    if (r->relay.enforce)
        f = LOG_BLOCK; /* who guards does not let pass what cannot be recorded */
    if (choose(&d, "durability", r->flags->durability, durability, err) < 0 ||
        choose(&f, "on-evidence-failure", r->flags->on_failure, failure, err) < 0)
        return -1;
    r->log.durability = (enum log_durability)d;
    r->log.on_failure = (enum log_on_failure)f;
    r->relay.block = f == LOG_BLOCK;
    return 0;
}

static int read_seconds(uint64_t *ms, const char *flag, const struct option_number *n,
                        struct err *err)
{
    if (!n->given)
        return 0;
    if (n->value > SECONDS_MAX)
        return err_set(err, ERR_LIMIT, "--%s is at most %llu seconds", flag,
                       (unsigned long long)SECONDS_MAX);
    *ms = n->value * 1000;
    return 0;
}

static int read_numbers(struct run *r, struct err *err)
{
    const struct flags *f = r->flags;

    r->relay.shutdown_timeout = DEFAULT_SHUTDOWN * 1000;
    r->relay.max_message = f->max_message.given ? f->max_message.value : MESSAGE_DEFAULT;
    if (f->call_timeout.given && f->call_timeout.value == 0)
        return err_set(err, ERR_FORMAT, "--call-timeout is 1 second or more");
    if (f->max_message.given && f->max_message.value == 0)
        return err_set(err, ERR_FORMAT, "--max-message-bytes is 1 or more");
    if (read_seconds(&r->relay.call_timeout, "call-timeout", &f->call_timeout, err) < 0)
        return -1;
    return read_seconds(&r->relay.shutdown_timeout, "shutdown-timeout", &f->shutdown,
                        err);
}

/* session, 10m, 500r */
static int read_interval(struct run *r, struct err *err)
{
    const char *text = r->flags->interval;
    str s = str_from(text);
    char unit = s.n ? s.p[s.n - 1] : '\0';
    uint64_t n;

    if (r->flags->auto_pack && r->flags->no_auto_pack)
        return err_set(err, ERR_FORMAT, "either --auto-pack or --no-auto-pack, not both");
    r->relay.pack = !r->flags->no_auto_pack;
    if (!text || strcmp(text, "session") == 0)
        return 0;
    if ((unit != 'm' && unit != 'r') || !u64_parse(&n, str_first(s, s.n - 1)) || n == 0 ||
        n > INTERVAL_MAX)
        return err_set(err, ERR_FORMAT,
                       "--pack-interval is 'session', or 1 to %d with 'm' for minutes or "
                       "'r' for receipts, not '%s'",
                       INTERVAL_MAX, text);
    if (!r->relay.pack)
        return err_set(err, ERR_FORMAT,
                       "--pack-interval asks for packs that --no-auto-pack forbids");
    r->relay.pack_ms = unit == 'm' ? n * 60000 : 0;
    r->relay.pack_receipts = unit == 'r' ? n : 0;
    return 0;
}

static int read_group(struct run *r, struct err *err)
{
    const char *name = r->flags->group;
    const struct group *g;
    uint64_t n;

    r->log.group = (gid_t)-1;
    if (!name)
        return 0;
    g = getgrnam(name);
    if (!g && (!u64_parse(&n, str_from(name)) || n >= (gid_t)-1))
        return err_set(err, ERR_NOTFOUND, "there is no group '%s'", name);
    r->log.group = g ? g->gr_gid : (gid_t)n;
    return 0;
}

static int read_pepper(struct run *r, struct err *err)
{
    if (!r->flags->pepper_file)
        return 0;
    if (pepper_read(r->flags->pepper_file, &r->pepper, err) < 0)
        return -1;
    r->relay.pepper = buf_str(&r->pepper);
    pepper_check(r->pepper_check, r->relay.pepper);
    r->log.pepper_check = r->pepper_check;
    return 0;
}

static int read_place(struct run *r, struct err *err)
{
    char sentence[FILE_PATH_MAX + 64];
    bool moved;

    if (place_for_writing(r->dir, r->flags->audit_dir, &moved, err) < 0)
        return -1;
    if (moved) {
        snprintf(sentence, sizeof(sentence), "recording in '%s'", r->dir);
        status_note(&r->status, sentence);
    }
    r->log.dir = r->dir;
    return keys_open(&r->keys, NULL, err);
}

/* NAME=VALUE. A value is a secret more often than not: no message repeats it. */
static int read_header(struct run *r, const char *given, struct err *err)
{
    const char *equals = strchr(given, '=');
    struct http_own_header *h = &r->upstream.headers[r->upstream.header_count];

    if (!equals)
        return err_set(err, ERR_FORMAT, "--header is NAME=VALUE");
    if (r->upstream.header_count == HTTP_OWN_HEADERS)
        return err_set(err, ERR_LIMIT, "--header can be given %d times",
                       HTTP_OWN_HEADERS);
    h->name = str_of(given, (size_t)(equals - given));
    h->value = http_trim_spaces(str_from(equals + 1));
    if (!http_token_valid(h->name) || !http_value_valid(h->value))
        return err_set(err, ERR_FORMAT,
                       "--header needs a header's name, '=' and a value of one line");
    if (!http_client_may_set(h->name))
        return err_set(err, ERR_REFUSED,
                       "--header cannot set '%.*s': the proxy does that itself",
                       (int)h->name.n, h->name.p);
    r->upstream.header_count++;
    return 0;
}

static int read_upstream(struct run *r, char *const *argv, struct err *err)
{
    const struct flags *f = r->flags;

    if (!f->upstream_url) {
        server_name(r->server_id, argv);
        r->relay.argv = argv;
        return f->ca || f->headers.count
                   ? err_set(err, ERR_FORMAT, "--%s is for --upstream-url",
                             f->ca ? "ca" : "header")
                   : 0;
    }
    if (url_parse(&r->upstream.url, f->upstream_url, err) < 0)
        return err_wrap(err, "--upstream-url");
    if (http_proxy_find(&r->upstream.proxy, &r->upstream.url, getenv, err) < 0)
        return -1;
    if (f->ca && !r->upstream.url.tls)
        return err_set(err, ERR_FORMAT, "--ca is for https");
    for (size_t i = 0; i < f->headers.count; i++) {
        if (read_header(r, f->headers.items[i], err) < 0)
            return -1;
    }
    r->upstream.ca_file = f->ca;
    r->relay.upstream = &r->upstream;
    snprintf(r->server_id, sizeof(r->server_id), "%.*s", SERVER_NAME_MAX - 1,
             r->upstream.url.authority);
    return 0;
}

static int read_flags(struct run *r, char *const *argv, struct err *err)
{
    const struct flags *f = r->flags;

    if (read_upstream(r, argv, err) < 0)
        return -1;
    r->relay.server_id = f->server_id ? f->server_id : r->server_id;
    r->relay.store_arguments = f->store_args;
    r->relay.store_results = f->store_results;
    r->relay.pack_empty = f->pack_empty;
    r->relay.investigation = f->investigation;
    r->relay.say = status_note;
    r->relay.packed = status_pack;
    r->relay.say_ctx = &r->status;
    r->log.keys = &r->keys;
    r->log.clock = &clock_system;
    r->log.entropy = &entropy_system;
    r->log.say = status_note;
    r->log.say_ctx = &r->status;
    if (f->server_id && !f->server_id[0])
        return err_set(err, ERR_FORMAT, "--server-id is empty");
    if (read_words(r, err) < 0 || read_numbers(r, err) < 0 || read_interval(r, err) < 0 ||
        read_group(r, err) < 0 || read_pepper(r, err) < 0 || read_policy(r, err) < 0)
        return -1;
    return read_place(r, err);
}

/* --- the run --- */

/* The directory that a session will need: better missed before the server runs. */
static int prepare(struct run *r, struct err *err)
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

static void note_count(struct run *r, uint64_t n, const char *what, const char *more)
{
    char sentence[160];

    snprintf(sentence, sizeof(sentence), "%llu message%s %s %s%s", (unsigned long long)n,
             n == 1 ? "" : "s", n == 1 ? "was" : "were", what, more);
    status_note(&r->status, sentence);
}

static enum exit_code conclude(struct run *r, const struct solo_outcome *o, bool failed)
{
    enum exit_code code = decide(o, failed);

    if (o->session.violations)
        note_count(r, o->session.violations, "denied by the policy",
                   r->relay.enforce ? "" : ", and sent on: this is the profile audit");
    if (o->session.unanswered)
        note_count(r, o->session.unanswered, "not answered",
                   "; the session is not complete");
    if (o->evidence_lost)
        status_error(&r->status, "evidence was lost; the log says how much");
    if (o->session.packed)
        status_pack(&r->status, &o->session.pack);
    if (o->started)
        status_end(&r->status, o->session.complete, o->session.calls, code);
    if (o->abandoned)
        _exit(code); /* a thread is still at work for the dead: solo.h */
    return code;
}

static enum exit_code record(struct run *r)
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

static enum exit_code proxy(const struct flags *f, char *const *argv)
{
    struct run r = { .flags = f, .status = { f->json } };
    struct err err = { .code = ERR_NONE };
    enum exit_code code = EXIT_BAD_INPUT;

    if (read_flags(&r, argv, &err) < 0)
        status_error(&r.status, err.msg);
    else
        code = record(&r);
    http_proxy_release(&r.upstream.proxy);
    buf_release(&r.pepper);
    policy_file_release(&r.policy);
    return code;
}

static enum exit_code complain(const struct flags *f, const struct operands *command)
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
static enum exit_code start(const struct flags *f, const struct operands *command)
{
    bool good = f->upstream_url ? command->count == 0
                                : command->count > 0 && command->dashed == command->count;

    return good ? proxy(f, command->at) : complain(f, command);
}

static enum exit_code run(int argc, char **argv)
{
    struct flags f = { .audit_dir = NULL };
    const struct option table[] = {
        { "upstream-url", "URL", "the server is there, over HTTP; no command then",
          .text = &f.upstream_url },
        { "header", "NAME=VALUE", "send this header to it; may be repeated",
          .list = &f.headers },
        { "ca", "FILE", "trust these certificates (PEM) instead of the system's",
          .text = &f.ca },
        { "audit-dir", "DIR", "where evidence goes (default " PLACE_DEFAULT ")",
          .text = &f.audit_dir },
        { "profile", "P",
          "audit: record and change nothing (the default); guard: refuse, too",
          .text = &f.profile },
        { "policy", "FILE",
          "what may be called; guard needs it, audit records its advice",
          .text = &f.policy },
        { "pin", "P", "warn (default), strict or off: tools whose definition changes",
          .text = &f.pin },
        { "show-denied-tools", NULL, "let guard show tools that it would refuse",
          .flag = &f.show_denied },
        { "server-id", "ID", "what receipts call the server (default: from the command)",
          .text = &f.server_id },
        { "store-args", NULL, "keep arguments readable in receipts",
          .flag = &f.store_args },
        { "store-results", NULL, "keep results readable in receipts",
          .flag = &f.store_results },
        { "investigation", NULL, "keep whole messages beside the log",
          .flag = &f.investigation },
        { "hash-pepper", "FILE", "key hashes with this secret (32 bytes or more, 0600)",
          .text = &f.pepper_file },
        { "durability", "D", "write (default), group or strict: what is waited for",
          .text = &f.durability },
        { "on-evidence-failure", "F",
          "pass (default) or block (default of guard), when evidence cannot be written",
          .text = &f.on_failure },
        { "auto-pack", NULL, "build a pack at the end (the default)",
          .flag = &f.auto_pack },
        { "no-auto-pack", NULL, "build no pack at the end", .flag = &f.no_auto_pack },
        { "pack-interval", "I",
          "session (default), or also every Nm minutes, Nr receipts",
          .text = &f.interval },
        { "pack-empty", NULL, "pack sessions without calls, too", .flag = &f.pack_empty },
        { "audit-group", "G", "let this group read log/", .text = &f.group },
        { "shutdown-timeout", "S",
          "wait this long for open calls at the end (default 10)",
          .number = &f.shutdown },
        { "call-timeout", "S", "answer a call that waits longer with an error",
          .number = &f.call_timeout },
        { "max-message-bytes", "N", "cut a message that is larger (default 1 GiB)",
          .number = &f.max_message },
        { "json", NULL, "status lines on stderr as JSON", .flag = &f.json },
        { 0 },
    };
    struct operands command = { .min = 0, .max = OPERANDS_ANY };
    enum exit_code code;

    if (!options_parse(&cmd_mcp_proxy, table, argc, argv, &command, &code))
        return code;
    return start(&f, &command);
}

const struct command cmd_mcp_proxy = {
    .name = "mcp-proxy",
    .usage = "[flags] (-- COMMAND [ARGS] | --upstream-url URL)",
    .summary = "record what crosses between a client and a server",
    .run = run,
    .owns_stdout = true,
};
