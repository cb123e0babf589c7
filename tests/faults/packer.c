/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other program that the fault tests disturb: it records sessions and packs them.
 *
 *     packer record ROOT CALLS FIRST   one session with tools named t<FIRST>…, and a pack
 *     packer rescue ROOT               finish and pack what the dead left
 *     packer verify ROOT               verify every pack
 *
 * record prints `ack N` once a call's evidence is promised and `failed what why` for all
 * that was refused; it tries the end of the session and the pack twice, and leaves them
 * to others if need be. Exit: 0 well, 2 something failed, 3 the log could not be opened.
 * verify prints `pack PATH` for each sound one, `finding …` otherwise, and exits 0 or 2.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "evidence/dead.h"
#include "evidence/log.h"
#include "evidence/pack.h"
#include "evidence/session.h"
#include "evidence/verify.h"
#include "tests/faults/say.h"

#define EMPTY_SHA256                                                                     \
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct place {
    char home[FILE_PATH_MAX];
    char audit[FILE_PATH_MAX];
    struct keys keys;
};

static int status; /* of the whole run */

static int failed(const char *what, const struct err *err)
{
    say("failed %s %s\n", what, err->msg);
    status = 2;
    return -1;
}

static int open_log(const struct place *p, struct log **log, struct err *err)
{
    const struct log_options options = { .dir = p->audit,
                                         .keys = &p->keys,
                                         .clock = &clock_system,
                                         .entropy = &entropy_system,
                                         .durability = LOG_GROUP,
                                         .segment_max = 4000,
                                         .group = (gid_t)-1 };

    return log_open(log, &options, err);
}

/* --- record --- */

static struct message message(const char *dir, const char *kind, str tool)
{
    return (struct message){ .dir = str_from(dir),
                             .kind = str_from(kind),
                             .method = STR("tools/call"),
                             .id = STR("1"),
                             .tool = tool,
                             .bytes = 100,
                             .digest = STR(EMPTY_SHA256) };
}

static int answer(struct session *s, struct open_call *call, str tool, struct err *err)
{
    const struct message m = message("s2c", "response", tool);
    const struct call_response response = { .result_hash = STR(EMPTY_SHA256),
                                            .content = STR("{\"r\":1}") };
    uint64_t upto;

    if (session_respond(s, call, &m, &response, &upto, err) < 0)
        return -1;
    return session_settle(s, upto, err);
}

static int one_call(struct session *s, int64_t number, struct err *err)
{
    char tool[32];
    struct message m;
    const struct call_request request = { .arguments_hash = STR(EMPTY_SHA256),
                                          .content = STR("{\"a\":1}") };
    struct open_call *call;
    int r;

    snprintf(tool, sizeof(tool), "t%" PRId64, number);
    m = message("c2s", "request", str_from(tool));
    if (session_request(s, &m, &request, &call, NULL, err) < 0)
        return -1;
    r = answer(s, call, str_from(tool), err);
    session_release(s, call);
    return r;
}

static int make_pack(struct log *log, const struct session *s,
                     const struct session_cut *cut)
{
    const struct pack_request request = { .session = session_id(s),
                                          .receipts = session_receipts(s),
                                          .first = session_history(s)->first,
                                          .cut = *cut };
    struct pack_result result;
    struct err err;

    for (int i = 0; i < 2; i++) {
        if (pack_build(log, &request, &result, &err) == 0)
            return 0;
        failed("pack", &err);
    }
    return -1;
}

static int finish(struct log *log, struct session *s)
{
    const struct session_ending ending = { "client_eof", true, "shutdown", NULL };
    struct session_cut cut;
    bool packable = false;
    struct err err;

    if (session_end(s, &ending, &cut, &packable, &err) < 0) {
        failed("end", &err);
        if (session_end(s, &ending, &cut, &packable, &err) < 0)
            return failed("end", &err);
    }
    return packable ? make_pack(log, s, &cut) : 0;
}

static int run_session(struct log *log, struct session *s, int64_t calls, int64_t first)
{
    struct err err;

    for (int64_t i = 0; i < calls; i++) {
        if (one_call(s, first + i, &err) < 0)
            failed("call", &err);
        else
            say("ack %" PRId64 "\n", first + i);
    }
    return finish(log, s);
}

static int record(const struct place *p, int64_t calls, int64_t first)
{
    struct session_options options = { .server_id = "server",
                                       .transport = "stdio",
                                       .client_transport = "stdio",
                                       .profile = "audit" };
    struct session *s;
    struct err err;
    int r;

    if (open_log(p, &options.log, &err) < 0) {
        failed("open", &err);
        return 3;
    }
    if (session_open(&s, &options, &err) < 0) {
        r = failed("session", &err);
    } else {
        r = run_session(options.log, s, calls, first);
        session_free(s);
    }
    if (r < 0)
        log_abandon(options.log); /* as if we had died: others finish it */
    else if (log_close(options.log, &err) < 0)
        failed("close", &err);
    return status;
}

/* --- rescue and verify --- */

static void not_finished(void *ctx, const char *writer, const char *why)
{
    (void)ctx;
    say("failed writer %s %s\n", writer, why);
    status = 2;
}

static int rescue(const struct place *p)
{
    const struct dead_options options = { .failed = not_finished };
    struct dead_result result = { 0 };
    struct log *log;
    struct err err;

    if (open_log(p, &log, &err) < 0) {
        failed("open", &err);
        return 3;
    }
    if (dead_recover(log, &options, &result, &err) < 0)
        failed("rescue", &err);
    if (log_close(log, &err) < 0)
        failed("close", &err);
    return status;
}

static int verify_one(void *ctx, const char *name, struct err *err)
{
    const struct verify_options options = { .clock = &clock_system };
    struct verify_result result = { 0 };
    const char *dir = ctx;
    char path[FILE_PATH_MAX];
    int r = 0;

    if (strncmp(name, "proof_pack_", 11) != 0)
        return 0;
    if (path_join(path, dir, name, err) < 0 ||
        verify_pack(path, &options, &result, err) < 0)
        r = -1;
    else if (result.verdict == VERIFY_SOUND && result.has_log)
        printf("pack %s\n", path);
    else
        printf("finding %s " STR_FMT "\n", name,
               STR_ARG(result.findings.count ? result.findings.items[0].message
                                             : STR("without a log")));
    verify_result_release(&result);
    return r;
}

static int verify(const struct place *p)
{
    char dir[FILE_PATH_MAX];
    struct err err;

    if (path_join(dir, p->audit, PACKS_DIR, &err) < 0 ||
        file_each(dir, verify_one, dir, &err) < 0)
        failed("verify", &err);
    return status;
}

int main(int argc, char **argv)
{
    static struct place p;
    struct err err;

    if (argc < 3 || path_join(p.home, argv[2], "home", &err) < 0 ||
        path_join(p.audit, argv[2], "audit", &err) < 0 ||
        keys_open(&p.keys, p.home, &err) < 0)
        return 3;
    if (strcmp(argv[1], "record") == 0 && argc == 5)
        return record(&p, strtoll(argv[3], NULL, 10), strtoll(argv[4], NULL, 10));
    if (strcmp(argv[1], "rescue") == 0)
        return rescue(&p);
    return strcmp(argv[1], "verify") == 0 ? verify(&p) : 3;
}
