/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/rpc.h"

#include "base/codec.h"
#include "base/err.h"
#include "json/jcs.h"
#include "json/text.h"

static const char *const kind_names[] = {
    [RPC_REQUEST] = "request",
    [RPC_NOTIFICATION] = "notification",
    [RPC_RESPONSE] = "response",
    [RPC_INVALID] = "invalid",
};

const char *rpc_kind_name(enum rpc_kind kind)
{
    return kind_names[kind];
}

#define METHOD(name, method)                                                             \
    {                                                                                    \
        { name, sizeof(name) - 1 }, method                                               \
    }

/* The ones that come most often first. */
static const struct {
    str name;
    enum rpc_method method;
} methods[] = {
    METHOD("tools/call", RPC_TOOLS_CALL),
    METHOD("tools/list", RPC_TOOLS_LIST),
    METHOD("initialize", RPC_INITIALIZE),
    METHOD("server/discover", RPC_DISCOVER),
    METHOD("notifications/cancelled", RPC_CANCELLED),
    METHOD("notifications/progress", RPC_PROGRESS),
    METHOD("tasks/get", RPC_TASKS_GET),
    METHOD("tasks/result", RPC_TASKS_RESULT),
    METHOD("tasks/cancel", RPC_TASKS_CANCEL),
    METHOD("notifications/tasks", RPC_TASKS_NOTIFICATION),
    METHOD("subscriptions/listen", RPC_SUBSCRIPTIONS_LISTEN),
};

static enum rpc_method find_method(const struct json *j, uint32_t node)
{
    for (size_t i = 0; i < COUNT(methods); i++) {
        if (json_string_is(j, node, methods[i].name))
            return methods[i].method;
    }
    return RPC_OTHER;
}

static uint32_t member(const struct rpc *m, uint32_t object, str name)
{
    return json_member(m->json, object, name);
}

static bool is_id(const struct json *j, uint32_t node)
{
    return json_is(j, node, JSON_STRING) || json_is(j, node, JSON_NUMBER);
}

/* An id of null belongs to answers that could not be assigned; it is no id. */
static enum rpc_kind kind_of(const struct rpc *m)
{
    bool answers = m->result != JSON_NONE || m->error != JSON_NONE;

    if (m->json->nodes[m->node].flags & JSON_DUPLICATE)
        return RPC_INVALID;
    if (m->method_node != JSON_NONE) {
        if (answers || !json_is(m->json, m->method_node, JSON_STRING))
            return RPC_INVALID;
        if (m->id == JSON_NONE)
            return RPC_NOTIFICATION;
        return is_id(m->json, m->id) ? RPC_REQUEST : RPC_INVALID;
    }
    return answers ? RPC_RESPONSE : RPC_INVALID;
}

/* Of two members of one name the first counts. */
static ALWAYS_INLINE bool take_if(const struct rpc *m, uint32_t at, str name,
                                  uint32_t *out)
{
    if (!json_string_is(m->json, at, name))
        return false;
    if (*out == JSON_NONE)
        *out = at + 1;
    return true;
}

static void take_member(struct rpc *m, uint32_t at)
{
    const struct json_node *n = &m->json->nodes[at];
    size_t length = n->end - n->start - 2;

    if (length != 2 && length != 5 && length != 6 && !(n->flags & JSON_ESCAPED))
        return; /* none of ours has that many letters */
    if (!take_if(m, at, STR("id"), &m->id) &&
        !take_if(m, at, STR("method"), &m->method_node) &&
        !take_if(m, at, STR("params"), &m->params) &&
        !take_if(m, at, STR("result"), &m->result))
        take_if(m, at, STR("error"), &m->error);
}

void rpc_read(struct rpc *m, const struct json *j, uint32_t node)
{
    *m = (struct rpc){ .json = j,
                       .node = node,
                       .kind = RPC_INVALID,
                       .method_node = JSON_NONE,
                       .id = JSON_NONE,
                       .params = JSON_NONE,
                       .result = JSON_NONE,
                       .error = JSON_NONE };
    if (!json_is(j, node, JSON_OBJECT))
        return;
    for (uint32_t at = node + 1; at < j->nodes[node].next; at = j->nodes[at + 1].next)
        take_member(m, at);
    if (m->method_node != JSON_NONE)
        m->method = find_method(j, m->method_node);
    m->kind = kind_of(m);
}

/* Lower and upper case, the long s, which folds to s, and the sign of kelvins, to k. */
static bool folds_to(str s, str name)
{
    size_t i = 0;

    for (size_t k = 0; k < name.n; k++) {
        if (i < s.n && ascii_lower(s.p[i]) == ascii_lower(name.p[k]))
            i++;
        else if (name.p[k] == 's' && str_starts(str_skip(s, i), STR("\xc5\xbf")))
            i += 2;
        else if (name.p[k] == 'k' && str_starts(str_skip(s, i), STR("\xe2\x84\xaa")))
            i += 3;
        else
            return false;
    }
    return i == s.n;
}

static bool is_lookalike(const struct json *j, uint32_t key, const char *const *names)
{
    char space[128];
    struct buf b = { .p = space, .cap = sizeof(space), .max = sizeof(space) };

    if (json_raw(j, key).n >= sizeof(space))
        return false; /* longer than any of ours with all its letters escaped */
    json_unescape(j, key, &b);
    for (; *names; names++) {
        if (folds_to(buf_str(&b), str_from(*names)))
            return !str_is(buf_str(&b), *names);
    }
    return false;
}

/* A NUL and what follows it may have any length. */
bool rpc_may_be_name(const struct json *j, uint32_t key, str name)
{
    CLEANUP(buf_release) struct buf b = { .max = JSON_MAX_BYTES };
    const char *nul;

    if (!(j->nodes[key].flags & JSON_ESCAPED))
        return folds_to(rpc_source(&(struct rpc){ .json = j }, key), name);
    json_unescape(j, key, &b);
    nul = b.n ? memchr(b.p, '\0', b.n) : NULL;
    return folds_to(str_first(buf_str(&b), nul ? (size_t)(nul - b.p) : b.n), name);
}

static bool has_lookalikes(const struct json *j, uint32_t object,
                           const char *const *names)
{
    if (!json_is(j, object, JSON_OBJECT))
        return false;
    json_each (j, object, at) {
        if (is_lookalike(j, at, names))
            return true;
    }
    return false;
}

bool rpc_has_lookalikes(const struct rpc *m)
{
    static const char *const ours[] = { "jsonrpc", "id",    "method", "params",
                                        "result",  "error", NULL };
    static const char *const of_call[] = { "name", "arguments", NULL };

    return has_lookalikes(m->json, m->node, ours) ||
           (m->method == RPC_TOOLS_CALL && has_lookalikes(m->json, m->params, of_call));
}

/* Only an escape can stand for it: JSON has no bare NUL. */
static bool has_nul(const struct json *j, uint32_t node)
{
    str rest;
    uint32_t c = 0;

    if (!json_is(j, node, JSON_STRING) || !(j->nodes[node].flags & JSON_ESCAPED))
        return false;
    rest = text_of(j, node).raw;
    while (rest.n) {
        size_t n = rest.p[0] == '\\' ? text_escape(rest, &c) : 0;

        if (n && c == 0)
            return true;
        rest = str_skip(rest, n ? n : 1);
    }
    return false;
}

/* In a text that is JSON, a colon follows a name and nothing else. */
static bool is_name(const struct json *j, uint32_t node)
{
    size_t at = j->nodes[node].end;

    while (at < j->text.n && (unsigned char)j->text.p[at] <= ' ')
        at++;
    return at < j->text.n && j->text.p[at] == ':';
}

bool rpc_has_nul_name(const struct json *j, uint32_t node)
{
    for (uint32_t i = node; i < j->nodes[node].next; i++) {
        if (has_nul(j, i) && is_name(j, i))
            return true;
    }
    return false;
}

bool rpc_has_nul(const struct rpc *m)
{
    if (has_nul(m->json, m->method_node))
        return true;
    if (m->method == RPC_TOOLS_CALL)
        return has_nul(m->json, rpc_tool(m)) || rpc_has_nul_name(m->json, m->node);
    if (!json_is(m->json, m->node, JSON_OBJECT))
        return false;
    json_each (m->json, m->node, at) {
        if (has_nul(m->json, at))
            return true;
    }
    return false;
}

str rpc_source(const struct rpc *m, uint32_t node)
{
    str raw;

    if (node == JSON_NONE)
        return (str){ NULL, 0 };
    raw = json_raw(m->json, node);
    return json_is(m->json, node, JSON_STRING) ? str_of(raw.p + 1, raw.n - 2) : raw;
}

uint32_t rpc_tool(const struct rpc *m)
{
    return member(m, m->params, STR("name"));
}

uint32_t rpc_arguments(const struct rpc *m)
{
    return member(m, m->params, STR("arguments"));
}

/* traceparent: 2 hex "-" 32 hex "-" 16 hex "-" 2 hex (W3C Trace Context §3.2) */
str rpc_trace(const struct rpc *m)
{
    uint32_t meta = member(m, m->params, STR("_meta"));
    uint32_t node = member(m, meta, STR("traceparent"));
    uint8_t trace[16], parent[8];
    str text;

    if (!json_is(m->json, node, JSON_STRING))
        return (str){ NULL, 0 };
    text = rpc_source(m, node);
    if (text.n < 55 || text.p[2] != '-' || text.p[35] != '-' || text.p[52] != '-' ||
        !hex_decode(trace, sizeof(trace), str_of(text.p + 3, 32)) ||
        !hex_decode(parent, sizeof(parent), str_of(text.p + 36, 16)))
        return (str){ NULL, 0 };
    return str_of(text.p + 3, 32);
}

uint32_t rpc_request_state(const struct rpc *m)
{
    uint32_t in = m->kind == RPC_RESPONSE ? m->result : m->params;
    uint32_t node = member(m, in, STR("requestState"));

    return json_is(m->json, node, JSON_STRING) ? node : JSON_NONE;
}

bool rpc_is_error(const struct rpc *m)
{
    return m->error != JSON_NONE ||
           json_is(m->json, member(m, m->result, STR("isError")), JSON_TRUE);
}

str rpc_result_type(const struct rpc *m)
{
    uint32_t type = member(m, m->result, STR("resultType"));

    if (json_is(m->json, type, JSON_STRING))
        return json_string_is(m->json, type, STR("complete")) ? (str){ NULL, 0 }
                                                              : rpc_source(m, type);
    if (json_is(m->json, member(m, m->result, STR("task")), JSON_OBJECT))
        return STR("task");
    return (str){ NULL, 0 };
}

uint32_t rpc_task(const struct rpc *m)
{
    uint32_t in = m->kind == RPC_RESPONSE ? m->result : m->params;
    uint32_t node = member(m, in, STR("taskId"));

    if (node == JSON_NONE)
        node = member(m, member(m, in, STR("task")), STR("taskId"));
    return json_is(m->json, node, JSON_STRING) ? node : JSON_NONE;
}

bool rpc_task_ended(const struct rpc *m, uint32_t *inner, bool *is_error)
{
    uint32_t in = m->kind == RPC_RESPONSE ? m->result : m->params;
    uint32_t status = member(m, in, STR("status"));
    bool failed = json_string_is(m->json, status, STR("failed"));

    if (status == JSON_NONE ||
        (!failed && !json_string_is(m->json, status, STR("completed")) &&
         !json_string_is(m->json, status, STR("cancelled"))))
        return false;
    *inner = member(m, in, failed ? STR("error") : STR("result"));
    if (*inner == JSON_NONE && !json_string_is(m->json, status, STR("cancelled")))
        return false; /* 2025-11-25: tasks/result will tell */
    *is_error = failed || json_is(m->json, member(m, *inner, STR("isError")), JSON_TRUE);
    return true;
}

uint32_t rpc_cancelled_id(const struct rpc *m)
{
    uint32_t node = member(m, m->params, STR("requestId"));

    return node != JSON_NONE && is_id(m->json, node) ? node : JSON_NONE;
}

void rpc_add_id_key(struct buf *out, const struct json *j, uint32_t id)
{
    struct sink sink = buf_sink(out);
    size_t start = out->n;
    UNINITIALIZED struct err ignored;

    if (jcs_is_as_written(j, id)) {
        buf_add(out, json_raw(j, id));
        return;
    }
    if (jcs_write(j, id, JCS_RFC8785, &sink, &ignored) == 0)
        return;
    out->n = start;
    buf_add(out, json_raw(j, id));
}

uint32_t rpc_stated_version(const struct rpc *m)
{
    return json_member(m->json, json_member(m->json, m->params, STR("_meta")),
                       STR("io.modelcontextprotocol/protocolVersion"));
}

uint32_t rpc_name(const struct rpc *m)
{
    static const struct {
        str method, param;
    } table[] = {
        { { "tools/call", 10 }, { "name", 4 } },
        { { "prompts/get", 11 }, { "name", 4 } },
        { { "resources/read", 14 }, { "uri", 3 } },
        { { "tasks/get", 9 }, { "taskId", 6 } },
        { { "tasks/update", 12 }, { "taskId", 6 } },
        { { "tasks/cancel", 12 }, { "taskId", 6 } },
    };

    for (size_t i = 0;
         m->method_node != JSON_NONE && i < sizeof(table) / sizeof(table[0]); i++) {
        if (json_string_is(m->json, m->method_node, table[i].method))
            return json_member(m->json, m->params, table[i].param);
    }
    return JSON_NONE;
}
