/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/err.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/place.h"
#include "pipeline/relay.h"

#define DEFAULT_SHUTDOWN 10 /* s */

struct flags {
    const char *audit_dir, *profile, *server_id, *durability, *on_failure;
    bool no_auto_pack, auto_pack, store_args, store_results, pack_empty, json;
    struct option_number shutdown, call_timeout, max_message;
};

static void say(void *ctx, const char *sentence)
{
    (void)ctx;
    diag_say("%s", sentence);
}

/* "npx -y @scope/server-x dir" is x's server; "/usr/bin/python3 server.py" is server.py.
 */
static const char *name_of(char *const *argv)
{
    const char *slash = strrchr(argv[0], '/');

    return slash ? slash + 1 : argv[0];
}

static enum exit_code conclude(const struct relay_outcome *o)
{
    if (o->packed)
        diag_say("pack: %s", o->pack.path);
    if (o->evidence_lost)
        diag_say("evidence was lost; the log says what");
    if (!o->complete || o->evidence_lost)
        return EXIT_INTEGRITY;
    return o->interrupted ? EXIT_SIGINT : EXIT_GOOD;
}

static enum exit_code proxy(const struct flags *f, char *const *argv)
{
    struct keys keys;
    struct log_options log_options = { .dir = f->audit_dir ? f->audit_dir : PLACE_DEFAULT,
                                       .keys = &keys,
                                       .clock = &clock_system,
                                       .entropy = &entropy_system,
                                       .group = (gid_t)-1,
                                       .say = say };
    struct relay_options options = {
        .argv = argv,
        .server_id = f->server_id ? f->server_id : name_of(argv),
        .store_arguments = f->store_args,
        .store_results = f->store_results,
        .shutdown_timeout =
            (f->shutdown.given ? f->shutdown.value : DEFAULT_SHUTDOWN) * 1000,
        .call_timeout = f->call_timeout.value * 1000,
        .max_message = f->max_message.given ? f->max_message.value : (uint64_t)1 << 30,
        .pack = !f->no_auto_pack,
        .pack_empty = f->pack_empty,
        .say = say,
    };
    struct relay_outcome outcome;
    struct err err = { .code = ERR_NONE };
    enum exit_code code;

    if (keys_open(&keys, NULL, &err) < 0 ||
        log_open(&options.log, &log_options, &err) < 0) {
        diag_say("%s", err.msg);
        return EXIT_BAD_INPUT;
    }
    if (relay_run(&options, &outcome, &err) < 0) {
        diag_say("%s", err.msg);
        code = err.code == ERR_NOTFOUND ? EXIT_BAD_INPUT : EXIT_INTEGRITY;
    } else {
        code = conclude(&outcome);
    }
    if (log_close(options.log, &err) < 0) {
        diag_say("%s", err.msg);
        code = EXIT_INTEGRITY;
    }
    return code;
}

static enum exit_code run(int argc, char **argv)
{
    struct flags f = { .audit_dir = NULL };
    const struct option table[] = {
        { "audit-dir", "DIR", "where evidence goes (default " PLACE_DEFAULT ")",
          .text = &f.audit_dir },
        { "server-id", "ID", "what receipts call the server (default: from the command)",
          .text = &f.server_id },
        { "store-args", NULL, "keep arguments readable in receipts",
          .flag = &f.store_args },
        { "store-results", NULL, "keep results readable in receipts",
          .flag = &f.store_results },
        { "no-auto-pack", NULL, "build no pack at the end", .flag = &f.no_auto_pack },
        { "pack-empty", NULL, "pack sessions without calls, too", .flag = &f.pack_empty },
        { "shutdown-timeout", "S",
          "wait this long for open calls at the end (default 10)",
          .number = &f.shutdown },
        { "call-timeout", "S", "answer a call that waits longer with an error",
          .number = &f.call_timeout },
        { "max-message-bytes", "N", "cut a message that is larger (default 1 GiB)",
          .number = &f.max_message },
        { 0 },
    };
    struct operands command = { .min = 1, .max = OPERANDS_ANY };
    enum exit_code code;

    if (!options_parse(&cmd_mcp_proxy, table, argc, argv, &command, &code))
        return code;
    return proxy(&f, command.at);
}

const struct command cmd_mcp_proxy = {
    .name = "mcp-proxy",
    .usage = "[flags] -- COMMAND [ARGS]",
    .summary = "record what crosses between a client and a stdio server",
    .run = run,
};
