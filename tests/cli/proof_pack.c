/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records through the public interface for tests/cli/proof_pack.t.
 *     proof_pack DIR end      a session of two calls, packed; prints the pack
 *     proof_pack DIR empty    a session without calls
 *     proof_pack DIR die      a session with an open call, whose process dies
 */
#include <assay/assay.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char request[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
    "\"evil\\u001b[31m\",\"arguments\":{\"a\":1}}}";
static const char answer[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}";

static int record_two(struct assay_session *s, struct assay_error *e)
{
    struct assay_call *call;

    for (int i = 0; i < 2; i++) {
        if (assay_call_request(&call, s, request, strlen(request), e) < 0 ||
            assay_call_response(call, answer, strlen(answer), e) < 0)
            return -1;
        assay_call_free(call);
    }
    return 0;
}

static int record(const char *dir, const char *how, struct assay_error *e)
{
    struct assay_log_options log_options = { .dir = dir };
    struct assay_session_options options = { .server_id = "srv", .store_arguments = 1 };
    struct assay_session *s;
    struct assay_pack pack;
    struct assay_call *open;
    struct assay_log *log;

    if (assay_log_open(&log, &log_options, e) < 0 ||
        assay_session_begin(&s, log, &options, e) < 0)
        return -1;
    if (strcmp(how, "empty") != 0 && record_two(s, e) < 0)
        return -1;
    if (strcmp(how, "die") == 0) {
        if (assay_call_request(&open, s, request, strlen(request), e) < 0)
            return -1;
        printf("%s\n", assay_session_id(s));
        fflush(stdout);
        _exit(0);
    }
    if (strcmp(how, "empty") == 0)
        printf("%s\n", assay_session_id(s));
    if (assay_session_end(s, "client_eof", 1, &pack, e) < 0)
        return -1;
    if (pack.path[0])
        printf("%s\n", pack.path);
    return assay_log_close(log, e);
}

int main(int argc, char **argv)
{
    struct assay_error e;

    if (argc == 3 && record(argv[1], argv[2], &e) == 0)
        return 0;
    fprintf(stderr, "%s\n", argc == 3 ? e.message : "usage: proof_pack DIR HOW");
    return 1;
}
