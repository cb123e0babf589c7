/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/peek.h"

#include "base/codec.h"
#include "base/err.h"
#include "mcp/rpc.h"
#include "pipeline/mirror.h"
#include "transport/http_head.h"

#define VERSION_MAX 64
#define TEXT_MAX    ((size_t)64 << 10) /* of what a header repeats */

static const str token_key = { "progressToken", 13 };

static uint32_t meta_of(const struct rpc *m)
{
    return json_member(m->json, m->params, STR("_meta"));
}

static void note_token(struct peek *p, const struct rpc *m)
{
    uint32_t token = json_member(m->json, meta_of(m), token_key);

    if (!json_is(m->json, token, JSON_STRING) && !json_is(m->json, token, JSON_NUMBER))
        return;
    rpc_add_id_key(&p->tokens, m->json, token);
    buf_add_char(&p->tokens, '\n');
}

static void note_era(struct peek *p, const struct rpc *m)
{
    uint32_t version = rpc_stated_version(m);

    if (!json_is(m->json, version, JSON_STRING))
        return;
    p->is_stateless = true;
    buf_reset(&p->version);
    p->version.max = VERSION_MAX;
    json_unescape(m->json, version, &p->version);
}

static void read_one(struct peek *p, uint32_t node)
{
    struct rpc m;

    rpc_read(&m, &p->json, node);
    p->is_rpc = p->is_rpc && m.kind != RPC_INVALID;
    if (m.kind == RPC_REQUEST) {
        p->requests++;
        buf_reset(&p->id);
        if (p->requests == 1)
            buf_add(&p->id, json_raw(&p->json, m.id));
        note_token(p, &m);
        p->is_initialize = p->is_initialize || m.method == RPC_INITIALIZE;
    }
    if (m.kind == RPC_REQUEST || m.kind == RPC_NOTIFICATION)
        note_era(p, &m);
}

static void clear(struct peek *p)
{
    p->is_json = p->is_batch = p->is_initialize = p->is_stateless = false;
    p->is_rpc = true;
    p->requests = 0;
    buf_reset(&p->id);
    buf_reset(&p->version);
    buf_reset(&p->tokens);
    p->id.max = p->tokens.max = p->text.max = JSON_MAX_BYTES - 1;
}

void peek_read(struct peek *p, str body)
{
    UNINITIALIZED struct err ignored;

    clear(p);
    p->is_json = json_parse(&p->json, body, NULL, &ignored) == 0;
    if (!p->is_json)
        return;
    p->is_batch = json_is(&p->json, JSON_ROOT, JSON_ARRAY);
    if (!p->is_batch) {
        read_one(p, JSON_ROOT);
        return;
    }
    p->is_rpc = json_count(&p->json, JSON_ROOT) > 0;
    json_each (&p->json, JSON_ROOT, at)
        read_one(p, at);
}

void peek_release(struct peek *p)
{
    json_release(&p->json);
    buf_release(&p->id);
    buf_release(&p->version);
    buf_release(&p->tokens);
    buf_release(&p->text);
}

/* --- headers that repeat the body --- */

/* =?base64?…?= stands for the bytes that it encodes. */
static bool decode(struct buf *out, str value)
{
    str inner;
    size_t n;
    char *room;

    buf_reset(out);
    if (!str_starts(value, STR("=?base64?")) || !str_ends(value, STR("?=")) ||
        value.n < 11) {
        buf_add(out, value);
        return true;
    }
    inner = str_of(value.p + 9, value.n - 11);
    if (!base64_length(&n, inner))
        return false;
    room = buf_room(out, n + 3);
    if (!room || !base64_decode(room, n + 3, &n, inner))
        return false;
    out->n += n;
    return true;
}

static bool says(struct peek *p, str value, uint32_t node)
{
    CLEANUP(buf_release) struct buf text = { .max = TEXT_MAX };

    if (!json_is(&p->json, node, JSON_STRING) || !decode(&p->text, value))
        return false;
    json_unescape(&p->json, node, &text);
    return !text.failed && str_equal(buf_str(&text), buf_str(&p->text));
}

static const char *check_name(struct peek *p, const struct rpc *m, str name, size_t many)
{
    uint32_t node = rpc_name(m);

    if (node == JSON_NONE)
        return NULL;
    if (!name.p)
        return "the header Mcp-Name is missing";
    return many == 1 && says(p, name, node)
               ? NULL
               : "the header Mcp-Name is not what the body says";
}

const char *peek_mismatch(struct peek *p, const struct http_head *head)
{
    size_t versions, methods, names;
    str version = http_head_find(head, "MCP-Protocol-Version", &versions);
    str method = http_head_find(head, "Mcp-Method", &methods);
    str name = http_head_find(head, "Mcp-Name", &names);
    struct rpc m;

    rpc_read(&m, &p->json, JSON_ROOT);
    if (versions != 1 || !str_equal(version, buf_str(&p->version)))
        return versions ? "the header MCP-Protocol-Version is not what the body says"
                        : "the header MCP-Protocol-Version is missing";
    if (m.kind != RPC_REQUEST && !method.p)
        return NULL; /* what a notification must say is not defined */
    if (!method.p)
        return "the header Mcp-Method is missing";
    if (methods != 1 || !json_string_is(&p->json, m.method_node, method))
        return "the header Mcp-Method is not what the body says";
    return check_name(p, &m, name, names);
}

const char *peek_param_mismatch(struct peek *p, struct mirror *marks,
                                const struct http_head *head)
{
    CLEANUP(buf_release) struct buf tool = { .max = TEXT_MAX };
    CLEANUP(buf_release) struct buf wanted = { .max = TEXT_MAX };
    struct rpc m;
    size_t count;

    rpc_read(&m, &p->json, JSON_ROOT);
    if (m.kind != RPC_REQUEST || m.method != RPC_TOOLS_CALL ||
        !json_is(&p->json, rpc_tool(&m), JSON_STRING))
        return NULL;
    json_unescape(&p->json, rpc_tool(&m), &tool);
    count = mirror_call(marks, buf_str(&tool), &p->json, rpc_arguments(&m));
    for (size_t i = 0; i < count; i++) {
        str given = http_head_find_str(head, marks->headers[i].name, NULL);

        if (!given.p)
            return "a header Mcp-Param of this tool is missing";
        if (!decode(&wanted, marks->headers[i].value) || !decode(&p->text, given) ||
            !str_equal(buf_str(&wanted), buf_str(&p->text)))
            return "a header Mcp-Param is not what the body says";
    }
    return NULL;
}

/* --- messages of the server --- */

str peek_progress(struct peek *p, str message)
{
    UNINITIALIZED struct err ignored;
    struct rpc m;
    uint32_t token;

    clear(p);
    if (json_parse(&p->json, message, NULL, &ignored) < 0)
        return STR("");
    rpc_read(&m, &p->json, JSON_ROOT);
    if (m.kind != RPC_NOTIFICATION || m.method != RPC_PROGRESS)
        return STR("");
    token = json_member(&p->json, m.params, token_key);
    if (!json_is(&p->json, token, JSON_STRING) && !json_is(&p->json, token, JSON_NUMBER))
        return STR("");
    rpc_add_id_key(&p->tokens, &p->json, token);
    return buf_str(&p->tokens);
}

int peek_error(struct peek *p, str message)
{
    UNINITIALIZED struct err ignored;
    struct rpc m;
    uint32_t node;
    int64_t code;

    clear(p);
    if (json_parse(&p->json, message, NULL, &ignored) < 0)
        return 0;
    rpc_read(&m, &p->json, JSON_ROOT);
    node = json_member(&p->json, m.error, STR("code"));
    if (m.kind != RPC_RESPONSE || !json_is(&p->json, node, JSON_NUMBER) ||
        !json_int(&p->json, node, &code))
        return 0;
    return code < -40000 || code > 40000 ? 0 : (int)code;
}
