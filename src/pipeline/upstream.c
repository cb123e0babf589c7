/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/upstream.h"

#include <stdlib.h>

#include "base/err.h"
#include "pipeline/relay_internal.h"
#include "transport/tls.h"

/* --- what a message is --- */

static uint32_t param(const struct rpc *m, str name)
{
    return m->params == JSON_NONE ? JSON_NONE : json_member(m->json, m->params, name);
}

/* The text of a string, if it can be a version. */
static bool take_version(struct buf *out, const struct json *j, uint32_t node)
{
    str raw = json_is(j, node, JSON_STRING) ? json_raw(j, node) : STR("");

    if (raw.n < 3 || raw.n > UPSTREAM_VERSION_MAX + 2)
        return false;
    raw = str_of(raw.p + 1, raw.n - 2);
    if (!http_all(raw, HTTP_TOKEN))
        return false;
    buf_reset(out);
    buf_add(out, raw);
    return true;
}

static void take_name(struct upstream *u, const struct rpc *m, struct http_facts *out)
{
    CLEANUP(buf_release) struct buf text = { .max = UPSTREAM_NAME_MAX };
    uint32_t node = rpc_name(m);

    if (!json_is(m->json, node, JSON_STRING))
        return;
    json_unescape(m->json, node, &text);
    buf_reset(&u->name);
    mirror_add_value(&u->name, buf_str(&text));
    if (!text.failed && !u->name.failed)
        out->name = u->name.n ? buf_str(&u->name) : STR("");
    if (m->method == RPC_TOOLS_CALL && !text.failed) {
        out->mirrored_count =
            mirror_call(&u->mirror, buf_str(&text), m->json, param(m, STR("arguments")));
        out->mirrored = u->mirror.headers;
    }
}

static void take_method(struct upstream *u, const struct rpc *m, struct http_facts *out)
{
    buf_reset(&u->method);
    if (!json_is(m->json, m->method_node, JSON_STRING))
        return;
    json_unescape(m->json, m->method_node, &u->method);
    if (u->method.n && http_value_valid(buf_str(&u->method)) &&
        mirror_is_safe(buf_str(&u->method)))
        out->method = buf_str(&u->method);
}

static bool is_method(const struct rpc *m, const char *name)
{
    return m->kind != RPC_INVALID && m->method_node != JSON_NONE &&
           json_string_is(m->json, m->method_node, str_from(name));
}

/* Does it only ask? What acts is never sent twice. */
static bool is_repeatable(const struct rpc *m)
{
    static const char *const asking[] = {
        "initialize",     "ping",        "server/discover", "tools/list",
        "prompts/list",   "prompts/get", "resources/list",  "resources/templates/list",
        "resources/read",
    };

    if (m->kind == RPC_RESPONSE ||
        (m->kind == RPC_NOTIFICATION && m->method != RPC_TOOLS_CALL))
        return true;
    for (size_t i = 0; i < sizeof(asking) / sizeof(asking[0]); i++) {
        if (is_method(m, asking[i]))
            return true;
    }
    return false;
}

static void add_id(struct buf *ids, const struct json *j, uint32_t id)
{
    buf_add(ids, ids->n ? STR(",") : STR("["));
    buf_add(ids, json_raw(j, id));
}

/* The era shows in the message itself; a notification is of that of the request before.
 */
static void take_era(struct upstream *u, const struct rpc *m, struct http_facts *out)
{
    uint32_t version = rpc_stated_version(m);

    if (json_is(m->json, version, JSON_STRING))
        u->stateless = take_version(&u->stated, m->json, version);
    else if (m->kind == RPC_REQUEST)
        u->stateless = false;
    out->stateless = u->stateless;
    if (u->stateless) {
        out->version = buf_str(&u->stated);
        take_method(u, m, out);
        take_name(u, m, out);
    } else if (u->agreed.n && !out->opens_session) {
        out->version = buf_str(&u->agreed);
    }
}

static void take_cancelled(struct upstream *u, const struct rpc *m,
                           struct http_facts *out)
{
    uint32_t id = rpc_cancelled_id(m);

    if (m->kind != RPC_NOTIFICATION || m->method != RPC_CANCELLED || id == JSON_NONE)
        return;
    buf_reset(&u->cancels);
    add_id(&u->cancels, m->json, id);
    buf_add(&u->cancels, STR("]"));
    out->cancels = buf_str(&u->cancels);
}

static void describe_one(struct upstream *u, struct http_facts *out)
{
    struct rpc m;

    rpc_read(&m, &u->json, JSON_ROOT);
    out->opens_session = m.kind == RPC_REQUEST && m.method == RPC_INITIALIZE;
    out->opens_stream =
        m.kind == RPC_NOTIFICATION && is_method(&m, "notifications/initialized");
    out->endless = m.kind == RPC_REQUEST && m.method == RPC_SUBSCRIPTIONS_LISTEN;
    out->repeatable = m.kind != RPC_INVALID && is_repeatable(&m);
    if (m.kind == RPC_REQUEST)
        add_id(&u->ids, &u->json, m.id);
    take_era(u, &m, out);
    take_cancelled(u, &m, out);
}

static void describe_batch(struct upstream *u, struct http_facts *out)
{
    json_each (&u->json, JSON_ROOT, at) {
        struct rpc m;

        rpc_read(&m, &u->json, at);
        if (m.kind == RPC_REQUEST)
            add_id(&u->ids, &u->json, m.id);
    }
    if (u->agreed.n)
        out->version = buf_str(&u->agreed);
}

static void describe(void *ctx, str message, struct http_facts *out)
{
    struct upstream *u = ((struct relay *)ctx)->upstream;
    const struct json_limits limits = { .max_nodes = TAP_NODES_MAX };
    struct err ignored;

    *out = (struct http_facts){ 0 };
    buf_reset(&u->ids);
    if (message.n == 0 || json_parse(&u->json, message, &limits, &ignored) < 0) {
        if (u->agreed.n)
            out->version = buf_str(&u->agreed);
        return;
    }
    if (json_is(&u->json, JSON_ROOT, JSON_ARRAY))
        describe_batch(u, out);
    else
        describe_one(u, out);
    out->wants_answer = u->ids.n > 0;
    if (u->ids.n)
        buf_add(&u->ids, STR("]"));
    out->ids = buf_str(&u->ids);
}

/* --- answers --- */

/* The request with this id, while the client waits for its answer. */
static struct pending *find(struct upstream *u, uint32_t id)
{
    const struct desk *desk = u->relay->desk;
    struct pending *p;

    if (!desk)
        return NULL;
    buf_reset(&u->key);
    rpc_add_id_key(&u->key, &u->json, id);
    p = correlate_find(&desk->tap.asked[TO_SERVER], json_raw(&u->json, id),
                       buf_str(&u->key), NULL);
    return p && !p->answered && !p->cancelled ? p : NULL;
}

static bool awaits(void *ctx, str ids)
{
    struct upstream *u = ((struct relay *)ctx)->upstream;
    struct err ignored;

    if (json_parse(&u->json, ids, NULL, &ignored) < 0)
        return false;
    json_each (&u->json, JSON_ROOT, id) {
        if (find(u, id))
            return true;
    }
    return false;
}

static void answer_lost(struct upstream *u, uint32_t id, const struct err *why)
{
    struct pending *p = find(u, id);

    if (p)
        flow_lose(u->relay, p, "server_exit", why);
}

static void lost(void *ctx, str ids, const struct err *why)
{
    struct relay *r = ctx;
    struct err ignored;

    relay_say(r, "no answer from the server: %s", why->msg);
    if (json_parse(&r->upstream->json, ids, NULL, &ignored) < 0)
        return;
    json_each (&r->upstream->json, JSON_ROOT, id)
        answer_lost(r->upstream, id, why);
    flow_leave_if_drained(r);
}

static bool is_message(void *ctx, str body)
{
    struct upstream *u = ((struct relay *)ctx)->upstream;
    struct err ignored;
    struct rpc m;

    if (json_parse(&u->json, body, NULL, &ignored) < 0)
        return false;
    rpc_read(&m, &u->json, JSON_ROOT);
    return m.kind == RPC_RESPONSE;
}

static void opened(void *ctx, str message)
{
    struct upstream *u = ((struct relay *)ctx)->upstream;
    struct err ignored;
    struct rpc m;

    if (json_parse(&u->json, message, NULL, &ignored) < 0)
        return;
    rpc_read(&m, &u->json, JSON_ROOT);
    if (m.kind != RPC_RESPONSE || m.result == JSON_NONE)
        return;
    if (!take_version(&u->agreed, &u->json,
                      json_member(&u->json, m.result, STR("protocolVersion"))))
        buf_reset(&u->agreed);
}

/* Evidence first: receipts from now on say so. */
static void found(void *ctx, const char *transport)
{
    struct relay *r = ctx;
    struct err err = { 0 };

    relay_say(r, "the server speaks the older transport HTTP+SSE");
    if (session_transport(r->session, transport, &err) < 0)
        relay_say(r, "%s", err.msg);
    if (r->start.found)
        r->start.found(r->start.ctx);
}

static void cut(void *ctx, const struct err *why)
{
    flow_cut(ctx, TO_CLIENT, NULL, why);
}

static void say(void *ctx, const char *sentence)
{
    relay_say(ctx, "%s", sentence);
}

static const struct http_client_hooks hooks = { describe, awaits, lost, is_message,
                                                opened,   found,  cut,  say };

int upstream_open(struct upstream **out, struct relay *r,
                  const struct upstream_options *options,
                  const struct endpoint_events *events, struct err *err)
{
    struct http_client_options http = { .loop = r->loop,
                                        .url = &options->url,
                                        .proxy =
                                            options->proxy.used ? &options->proxy : NULL,
                                        .headers = options->headers,
                                        .header_count = options->header_count,
                                        .hooks = &hooks,
                                        .events = events,
                                        .ctx = r };
    struct upstream *u = *out = malloc(sizeof(*u));

    if (!u)
        return err_set(err, ERR_NOMEM, "no memory for a server");
    *u = (struct upstream){ .relay = r, .ids = { .max = JSON_MAX_BYTES - 1 } };
    u->key.max = u->cancels.max = JSON_MAX_BYTES - 1;
    u->name.max = 2 * UPSTREAM_NAME_MAX;
    if (options->url.tls && tls_trust_new(&u->trust, options->ca_file, err) < 0)
        return -1;
    http.trust = u->trust;
    return http_client_open(&u->client, &http, err);
}

void upstream_learn(struct upstream *u, const struct rpc *m)
{
    if (m->result != JSON_NONE)
        mirror_learn(&u->mirror, m->json, json_member(m->json, m->result, STR("tools")));
}

void upstream_free(struct upstream *u)
{
    if (!u)
        return;
    http_client_free(u->client);
    tls_trust_free(u->trust);
    mirror_release(&u->mirror);
    json_release(&u->json);
    buf_release(&u->agreed);
    buf_release(&u->stated);
    buf_release(&u->method);
    buf_release(&u->name);
    buf_release(&u->ids);
    buf_release(&u->cancels);
    buf_release(&u->key);
    free(u);
}
