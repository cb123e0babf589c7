/* SPDX-License-Identifier: Apache-2.0 */
/* include/assay/assay.h over the modules of this folder. */
#include "assay/assay.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/entropy.h"
#include "base/err.h"
#include "evidence/api_internal.h"
#include "evidence/dead.h"
#include "evidence/pack.h"
#include "evidence/verify.h"
#include "mcp/rpc.h"

#define API_MESSAGE_MAX ((size_t)1 << 30) /* bytes of one message */

/* --- errors --- */

static const int codes[] = {
    [ERR_NONE] = ASSAY_OK,         [ERR_NOMEM] = ASSAY_NO_MEMORY,
    [ERR_LIMIT] = ASSAY_LIMIT,     [ERR_FORMAT] = ASSAY_FORMAT,
    [ERR_REFUSED] = ASSAY_REFUSED, [ERR_NOTFOUND] = ASSAY_NOT_FOUND,
    [ERR_EXISTS] = ASSAY_EXISTS,   [ERR_DAMAGE] = ASSAY_DAMAGE,
    [ERR_TIMEOUT] = ASSAY_TIMEOUT, [ERR_IO] = ASSAY_SYSTEM,
};

int api_fail(struct assay_error *out, const struct err *err)
{
    if (out) {
        out->code = codes[err->code];
        snprintf(out->message, sizeof(out->message), "%s", err->msg);
    }
    return -1;
}

const char *assay_version(void)
{
    return ASSAY_VERSION;
}

/* --- the log --- */

int assay_log_open(struct assay_log **out, const struct assay_log_options *options,
                   struct assay_error *error)
{
    struct assay_log *made = calloc(1, sizeof(*made));
    struct err err = { 0 };
    struct log_options o = { .dir = options->dir,
                             .clock = &clock_system,
                             .entropy = &entropy_system,
                             .durability = (enum log_durability)options->durability,
                             .group = (gid_t)-1,
                             .say = options->say,
                             .say_ctx = options->say_context };

    if (!made)
        err_set(&err, ERR_NOMEM, "no memory for a log");
    else if (!options->dir || options->durability < ASSAY_WRITE ||
             options->durability > ASSAY_STRICT)
        err_set(&err, ERR_FORMAT, "no directory, or an unknown durability");
    else if (keys_open(&made->keys, options->home, &err) == 0) {
        o.keys = &made->keys;
        if (log_open(&made->log, &o, &err) == 0) {
            *out = made;
            return 0;
        }
    }
    free(made);
    return api_fail(error, &err);
}

int assay_log_close(struct assay_log *log, struct assay_error *error)
{
    struct err err = { 0 };
    int r;

    if (log->unfinished) { /* stay listed, so that others finish it */
        r = log_checkpoint(log->log, true, &err);
        log_abandon(log->log);
    } else {
        r = log_close(log->log, &err);
    }
    free(log);
    return r < 0 ? api_fail(error, &err) : 0;
}

int assay_log_checkpoint(struct assay_log *log, struct assay_error *error)
{
    struct err err = { 0 };

    return log_checkpoint(log->log, true, &err) < 0 ? api_fail(error, &err) : 0;
}

int assay_log_recover(struct assay_log *log, uint64_t *packs, struct assay_error *error)
{
    const struct dead_options options = { 0 };
    struct dead_result result;
    struct err err = { 0 };

    if (dead_recover(log->log, &options, &result, &err) < 0)
        return api_fail(error, &err);
    if (packs)
        *packs = result.packs;
    return 0;
}

/* --- a session --- */

static const char *or_default(const char *text, const char *otherwise)
{
    return text ? text : otherwise;
}

int assay_session_begin(struct assay_session **out, struct assay_log *log,
                        const struct assay_session_options *options,
                        struct assay_error *error)
{
    struct assay_session *made = calloc(1, sizeof(*made));
    struct err err = { 0 };
    const struct session_options o = {
        .log = log->log,
        .server_id = or_default(options->server_id, "unknown"),
        .transport = or_default(options->transport, "stdio"),
        .client_transport = "stdio",
        .profile = or_default(options->profile, "audit"),
        .policy_hash = options->policy_hash,
        .pack_empty = options->pack_empty != 0,
    };

    if (!made) {
        err_set(&err, ERR_NOMEM, "no memory for a session");
        return api_fail(error, &err);
    }
    made->log = log;
    made->store_arguments = options->store_arguments != 0;
    made->store_results = options->store_results != 0;
    if (session_open(&made->session, &o, &err) == 0) {
        *out = made;
        return 0;
    }
    free(made);
    return api_fail(error, &err);
}

const char *assay_session_id(const struct assay_session *session)
{
    return session_id(session->session);
}

static void free_call(struct assay_call *call)
{
    buf_release(&call->request.id);
    buf_release(&call->response.id);
    buf_release(&call->id_key);
    free(call);
}

void assay_session_free(struct assay_session *session)
{
    if (!session)
        return;
    if (!session->finished)
        session->log->unfinished = true;
    while (session->calls) {
        struct assay_call *call = session->calls;

        session->calls = call->next;
        free_call(call);
    }
    session_free(session->session);
    json_release(&session->json);
    buf_release(&session->content);
    free(session);
}

static int seal(struct assay_session *s, const char *reason, int clean, struct err *err)
{
    const struct session_ending ending = { .reason = or_default(reason, "client_eof"),
                                           .clean = clean != 0,
                                           .open_calls = "shutdown" };

    if (s->sealed)
        return 0;
    if (session_end(s->session, &ending, &s->cut, &s->packable, err) < 0)
        return -1;
    s->sealed = true;
    return 0;
}

static int build_pack(struct assay_session *s, struct assay_pack *out, struct err *err)
{
    const struct pack_request request = { .session = session_id(s->session),
                                          .receipts = session_receipts(s->session),
                                          .first = session_history(s->session)->first,
                                          .cut = s->cut };
    struct pack_result pack;

    *out = (struct assay_pack){ 0 };
    if (!s->packable)
        return 0;
    if (pack_build(s->log->log, &request, &pack, err) < 0)
        return -1;
    memcpy(out->path, pack.path, sizeof(out->path));
    memcpy(out->root, pack.root, sizeof(out->root));
    out->receipts = pack.receipts;
    out->events = pack.events;
    return 0;
}

static_assert(sizeof(((struct assay_pack *)0)->path) == FILE_PATH_MAX,
              "a path of ours fits");

int assay_session_end(struct assay_session *session, const char *reason, int clean,
                      struct assay_pack *pack, struct assay_error *error)
{
    struct err err = { 0 };
    struct assay_pack made;

    if (seal(session, reason, clean, &err) < 0 || build_pack(session, &made, &err) < 0 ||
        log_forget_session(session->log->log, session_id(session->session), &err) < 0)
        return api_fail(error, &err);
    if (pack)
        *pack = made;
    session->finished = true;
    assay_session_free(session);
    return 0;
}

/* --- a call --- */

/* The JSON-RPC message that `json` indexes, as a message event says it. */
static struct message describe(const struct json *json, str dir, str kind,
                               const struct content_hash *digest)
{
    uint32_t id = json_member(json, JSON_ROOT, STR("id"));

    return (struct message){ .dir = dir,
                             .kind = kind,
                             .id =
                                 id == JSON_NONE ? (str){ NULL, 0 } : json_raw(json, id),
                             .bytes = json->text.n,
                             .digest = str_from(digest->text) };
}

static str between_quotes(const struct json *json, uint32_t node)
{
    str raw;

    if (!json_is(json, node, JSON_STRING))
        return (str){ NULL, 0 };
    raw = json_raw(json, node);
    return str_of(raw.p + 1, raw.n - 2);
}

static int parse_message(struct assay_session *s, str text, struct err *err)
{
    static const struct json_limits limits = { .max_bytes = API_MESSAGE_MAX };

    if (json_parse(&s->json, text, &limits, err) < 0)
        return err_wrap(err, "the message");
    if (!json_is(&s->json, JSON_ROOT, JSON_OBJECT))
        return err_set(err, ERR_FORMAT, "the message is not a JSON object");
    return 0;
}

static int remember(struct passed_message *out, const struct message *m,
                    const struct content_hash *digest, struct err *err)
{
    out->bytes = m->bytes;
    out->digest = *digest;
    out->id.max = API_MESSAGE_MAX;
    buf_reset(&out->id);
    buf_add(&out->id, m->id);
    out->known = true;
    out->passed = false;
    return buf_check(&out->id, "the id of a message", err);
}

/* Content for the receipt when it is wanted and fits. */
static str store(struct assay_session *s, bool wanted, uint32_t node)
{
    s->content.max = RECEIPT_MAX;
    buf_reset(&s->content);
    if (!wanted || node == JSON_NONE || !content_add(&s->content, &s->json, node))
        return (str){ NULL, 0 };
    return buf_str(&s->content);
}

static str reason_of(const struct content_hash *h)
{
    return h->reason[0] ? str_from(h->reason) : (str){ NULL, 0 };
}

/* By which the answer knows its request; nothing without an id. */
static int key_of(struct buf *out, const struct json *json, struct err *err)
{
    uint32_t id = json_member(json, JSON_ROOT, STR("id"));

    out->max = API_MESSAGE_MAX;
    if (id != JSON_NONE)
        rpc_add_id_key(out, json, id);
    return buf_check(out, "the id of a message", err);
}

/* The result of a task comes as the answer to another request, under that one's id. */
static int check_id(const struct assay_call *call, struct err *err)
{
    CLEANUP(buf_release) struct buf key = { 0 };

    if (!call_is_open(&call->open->call))
        return 0;
    if (key_of(&key, &call->session->json, err) < 0)
        return -1;
    if (!call->id_key.n)
        return err_set(err, ERR_FORMAT, "a request without an id has no answer");
    if (!str_equal(buf_str(&key), buf_str(&call->id_key)))
        return err_set(err, ERR_FORMAT, "the answer has another id than the request");
    return 0;
}

static int record_request(struct assay_call *call, str text, struct err *err)
{
    struct assay_session *s = call->session;
    struct content_hash digest, arguments;
    struct call_request request = { 0 };
    uint32_t params, node;
    struct message m;
    uint64_t upto;

    if (parse_message(s, text, err) < 0)
        return -1;
    if (!json_string_is(&s->json, json_member(&s->json, JSON_ROOT, STR("method")),
                        STR("tools/call")))
        return err_set(err, ERR_FORMAT, "the message is not a tools/call request");
    params = json_member(&s->json, JSON_ROOT, STR("params"));
    node = json_member(&s->json, params, STR("arguments"));
    content_digest(&digest, text, (str){ NULL, 0 });
    content_digest(&arguments, STR("{}"), (str){ NULL, 0 });
    if (node != JSON_NONE &&
        content_hash(&arguments, &s->json, node, (str){ NULL, 0 }, err) < 0)
        return -1;
    m = describe(&s->json, STR("c2s"), STR("request"), &digest);
    m.method = STR("tools/call");
    m.tool = between_quotes(&s->json, json_member(&s->json, params, STR("name")));
    request.arguments_hash = str_from(arguments.text);
    request.raw_reason = reason_of(&arguments);
    request.content = store(s, s->store_arguments, node);
    if (remember(&call->request, &m, &digest, err) < 0 ||
        key_of(&call->id_key, &s->json, err) < 0 ||
        session_request(s->session, &m, &request, &call->open, &upto, err) < 0)
        return -1;
    return session_settle(s->session, upto, err);
}

int assay_call_request(struct assay_call **out, struct assay_session *session,
                       const char *message, size_t length, struct assay_error *error)
{
    struct assay_call *call = calloc(1, sizeof(*call));
    struct err err = { 0 };

    if (!call) {
        err_set(&err, ERR_NOMEM, "no memory for a call");
        return api_fail(error, &err);
    }
    call->session = session;
    if (session->sealed)
        err_set(&err, ERR_REFUSED, "the session has ended");
    if (session->sealed || record_request(call, str_of(message, length), &err) < 0) {
        if (call->open)
            session_release(session->session, call->open);
        free_call(call);
        return api_fail(error, &err);
    }
    call->next = session->calls;
    session->calls = call;
    *out = call;
    return 0;
}

static int record_response(struct assay_call *call, str text, struct err *err)
{
    struct assay_session *s = call->session;
    struct content_hash digest, result;
    struct call_response response = { 0 };
    uint32_t node, error_node;
    struct message m;
    uint64_t upto;

    if (parse_message(s, text, err) < 0)
        return -1;
    error_node = json_member(&s->json, JSON_ROOT, STR("error"));
    node = error_node != JSON_NONE ? error_node
                                   : json_member(&s->json, JSON_ROOT, STR("result"));
    if (node == JSON_NONE)
        return err_set(err, ERR_FORMAT, "the answer has neither 'result' nor 'error'");
    if (check_id(call, err) < 0)
        return -1;
    content_digest(&digest, text, (str){ NULL, 0 });
    if (content_hash(&result, &s->json, node, (str){ NULL, 0 }, err) < 0)
        return -1;
    m = describe(&s->json, STR("s2c"), STR("response"), &digest);
    response.result_hash = str_from(result.text);
    response.raw_reason = reason_of(&result);
    response.is_error =
        error_node != JSON_NONE ||
        json_is(&s->json, json_member(&s->json, node, STR("isError")), JSON_TRUE);
    response.result_type =
        between_quotes(&s->json, json_member(&s->json, node, STR("resultType")));
    response.content = store(s, s->store_results, node);
    if (session_respond(s->session, call->open, &m, &response, &upto, err) < 0 ||
        remember(&call->response, &m, &digest, err) < 0)
        return -1;
    return session_settle(s->session, upto, err);
}

int assay_call_response(struct assay_call *call, const char *message, size_t length,
                        struct assay_error *error)
{
    struct err err = { 0 };

    if (!call_is_open(&call->open->call) && !call->open->call.task)
        err_set(&err, ERR_REFUSED, "the call has its receipt already");
    else if (record_response(call, str_of(message, length), &err) == 0)
        return 0;
    return api_fail(error, &err);
}

/* Record where a message of the call went. */
static int record_passage(struct assay_call *call, enum event_type type, struct err *err)
{
    CLEANUP(event_release) struct event e = { 0 };
    bool request = type == EVENT_REQUEST_FORWARDED;
    struct passed_message *passed = request ? &call->request : &call->response;
    const struct message m = { .dir = request ? STR("c2s") : STR("s2c"),
                               .kind = request ? STR("request") : STR("response"),
                               .id =
                                   passed->id.n ? buf_str(&passed->id) : (str){ NULL, 0 },
                               .bytes = passed->bytes,
                               .digest = str_from(passed->digest.text) };

    if (!passed->known)
        return err_set(err, ERR_REFUSED, "the call has no answer yet");
    if (passed->passed)
        return err_set(err, ERR_REFUSED, "that was recorded before");
    if (call->session->sealed)
        return err_set(err, ERR_REFUSED, "the session has ended");
    message_event(&e, type, &m);
    if (session_note(call->session->session, call->open, &e, NULL, err) < 0)
        return -1;
    passed->passed = true;
    return 0;
}

int assay_call_forwarded(struct assay_call *call, struct assay_error *error)
{
    struct err err = { 0 };

    return record_passage(call, EVENT_REQUEST_FORWARDED, &err) < 0 ? api_fail(error, &err)
                                                                   : 0;
}

int assay_call_delivered(struct assay_call *call, struct assay_error *error)
{
    struct err err = { 0 };

    return record_passage(call, EVENT_RESPONSE_SENT, &err) < 0 ? api_fail(error, &err)
                                                               : 0;
}

int assay_call_lost(struct assay_call *call, const char *reason,
                    struct assay_error *error)
{
    struct session *s = call->session->session;
    struct err err = { 0 };
    uint64_t upto;

    if (!call_is_open(&call->open->call) && !call->open->call.task)
        err_set(&err, ERR_REFUSED, "the call has its receipt already");
    else if (session_lose(s, call->open, or_default(reason, "shutdown"), &upto, &err) ==
                 0 &&
             session_settle(s, upto, &err) == 0)
        return 0;
    return api_fail(error, &err);
}

const char *assay_call_receipt(const struct assay_call *call)
{
    return call->open->call.receipt_id;
}

/* A call without its receipt stays with the session, which records its end. */
void assay_call_free(struct assay_call *call)
{
    struct assay_call **at;

    if (!call)
        return;
    at = &call->session->calls;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    if (!call_is_open(&call->open->call) && !call->open->call.task)
        session_release(call->session->session, call->open);
    free_call(call);
}

/* --- verification --- */

static void take_verdict(struct assay_verification *out, const struct verify_result *r)
{
    const struct findings *f = &r->findings;

    *out = (struct assay_verification){
        .verdict = r->verdict == VERIFY_SOUND ? ASSAY_SOUND : ASSAY_UNSOUND,
        .has_log = r->has_log,
        .session_complete =
            r->receipts.has_session && r->receipts.session_complete && !r->begins_late,
        .receipts = r->receipts.count,
        .findings = f->count + f->left_out,
    };
    if (r->has_manifest)
        digest_hex(out->signer, &r->manifest.signer_pubkey_sha256);
    if (f->count)
        snprintf(out->message, sizeof(out->message), STR_FMT,
                 STR_ARG(f->items[0].message));
}

int assay_verify_pack(const char *dir, struct assay_verification *result,
                      struct assay_error *error)
{
    const struct verify_options options = { .clock = &clock_system };
    struct verify_result r = { 0 };
    struct err err = { 0 };
    int done = verify_pack(dir, &options, &r, &err);

    if (done == 0)
        take_verdict(result, &r);
    verify_result_release(&r);
    return done < 0 ? api_fail(error, &err) : 0;
}
