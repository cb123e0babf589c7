/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record - three tool calls through libassay: what a proxy does, without the proxy.
 *
 *     record AUDIT_DIR
 *
 * Prints the path of the pack. Build it with:  cc record.c $(pkg-config --cflags --libs
 * assay)
 */
#include <assay/assay.h>

#include <stdio.h>
#include <string.h>

/* What went over the wire: requests of the client, answers of the server. */
static const struct {
    const char *request;
    const char *response; /* NULL: the server never answered */
} exchanges[] = {
    { "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
      "{\"name\":\"get_weather\",\"arguments\":{\"city\":\"Zürich\"}}}",
      "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":"
      "{\"content\":[{\"type\":\"text\",\"text\":\"11 °C, rain\"}],\"isError\":false}}" },
    { "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":"
      "{\"name\":\"read_file\",\"arguments\":{\"path\":\"/etc/shadow\"}}}",
      "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":"
      "{\"code\":-32000,\"message\":\"permission denied\"}}" },
    { "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":"
      "{\"name\":\"send_mail\",\"arguments\":{\"to\":\"a@example.org\"}}}",
      NULL },
};

static void say(void *context, const char *sentence)
{
    (void)context;
    fprintf(stderr, "record: %s\n", sentence);
}

static int record_calls(struct assay_session *session, struct assay_error *error)
{
    size_t i;

    for (i = 0; i < sizeof(exchanges) / sizeof(exchanges[0]); i++) {
        struct assay_call *call;
        const char *request = exchanges[i].request, *response = exchanges[i].response;

        if (assay_call_request(&call, session, request, strlen(request), error) < 0)
            return -1;
        /* Only now may the request go to the server. */
        if (assay_call_forwarded(call, error) < 0)
            return -1;
        if (!response && assay_call_lost(call, "call_timeout", error) < 0)
            return -1;
        if (response && assay_call_response(call, response, strlen(response), error) < 0)
            return -1;
        /* Only now may the answer go to the client. */
        if (response && assay_call_delivered(call, error) < 0)
            return -1;
        fprintf(stderr, "record: receipt %s\n", assay_call_receipt(call));
        assay_call_free(call);
    }
    return 0;
}

static int record(const char *dir, struct assay_pack *pack, struct assay_error *error)
{
    struct assay_log_options log_options = { 0 };
    struct assay_session_options session_options = { 0 };
    struct assay_session *session = NULL;
    struct assay_log *log;

    log_options.dir = dir;
    log_options.say = say;
    session_options.server_id = "example-server";
    session_options.store_arguments = 1;
    session_options.store_results = 1;
    if (assay_log_open(&log, &log_options, error) < 0)
        return -1;
    if (assay_session_begin(&session, log, &session_options, error) < 0 ||
        record_calls(session, error) < 0 ||
        assay_session_end(session, "client_eof", 1, pack, error) < 0) {
        assay_session_free(session);
        assay_log_close(log, NULL);
        return -1;
    }
    return assay_log_close(log, error);
}

int main(int argc, char **argv)
{
    struct assay_error error;
    struct assay_pack pack;

    if (argc != 2) {
        fprintf(stderr, "usage: record AUDIT_DIR\n");
        return 3;
    }
    if (record(argv[1], &pack, &error) < 0) {
        fprintf(stderr, "record: %s\n", error.message);
        return 2;
    }
    printf("%s\n", pack.path);
    return 0;
}
