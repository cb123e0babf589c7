/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/share_rewrite.h"

#include "base/err.h"
#include "mcp/rpc.h"

#define PATH_MAX_NAMES 3

static const char *const paths[][PATH_MAX_NAMES + 1] = {
    [REWRITE_ID] = { "id" },
    [REWRITE_TOKEN] = { "params", "_meta", "progressToken" },
    [REWRITE_PROGRESS] = { "params", "progressToken" },
    [REWRITE_CANCELLED] = { "params", "requestId" },
    [REWRITE_NOTICE] = { "params", "_meta", "io.modelcontextprotocol/subscriptionId" },
    [REWRITE_CLOSING] = { "result", "_meta", "io.modelcontextprotocol/subscriptionId" },
    [REWRITE_URI] = { "params", "uri" },
};

int rewrite_parse(struct json *j, str text, struct err *err)
{
    struct json_limits limits = { .max_bytes = SPLICE_MAX };

    if (json_parse(j, text, &limits, err) == 0)
        return 0;
    if (err->code != ERR_LIMIT)
        return -1;
    limits.opaque_depth = REWRITE_OUTLINE;
    return json_parse(j, text, &limits, err);
}

struct walk {
    const struct json *json;
    bool loosely;
    struct splice *splice; /* NULL: only look */
    str by;
    uint32_t last;
};

static bool is_called(const struct walk *w, uint32_t key, str name)
{
    return w->loosely ? rpc_may_be_name(w->json, key, name)
                      : json_string_is(w->json, key, name);
}

static void take(struct walk *w, uint32_t node)
{
    if (!json_is(w->json, node, JSON_STRING) && !json_is(w->json, node, JSON_NUMBER))
        return;
    w->last = node;
    if (w->splice)
        splice_replace(w->splice, json_raw(w->json, node), w->by);
}

/* As deep as the path is long. */
static void walk(struct walk *w, uint32_t object, const char *const *path)
{
    if (!json_is(w->json, object, JSON_OBJECT) ||
        w->json->nodes[object].flags & JSON_OPAQUE)
        return;
    json_each (w->json, object, at) {
        if (!is_called(w, at, str_from(path[0])))
            continue;
        if (path[1])
            walk(w, at + 1, path + 1);
        else
            take(w, at + 1);
    }
}

uint32_t rewrite_find(const struct json *j, uint32_t message, enum rewrite_part part,
                      bool loosely)
{
    struct walk w = { .json = j, .loosely = loosely, .last = JSON_NONE };

    walk(&w, message, paths[part]);
    return w.last;
}

void rewrite_replace(struct splice *s, const struct json *j, uint32_t message,
                     enum rewrite_part part, bool loosely, str by)
{
    struct walk w = { .json = j, .loosely = loosely, .splice = s, .by = by };

    walk(&w, message, paths[part]);
}

bool rewrite_is_method(const struct json *j, uint32_t message, str method)
{
    static const str name = { "method", 6 };

    if (!json_is(j, message, JSON_OBJECT))
        return false;
    json_each (j, message, at) {
        if (json_is(j, at + 1, JSON_STRING) && rpc_may_be_name(j, at, name) &&
            rpc_may_be_name(j, at + 1, method))
            return true;
    }
    return false;
}

uint64_t rewrite_number(const struct json *j, uint32_t node, struct buf *scratch)
{
    uint64_t number = 0;

    if (!json_is(j, node, JSON_NUMBER))
        return 0;
    buf_reset(scratch);
    rpc_add_id_key(scratch, j, node);
    if (scratch->failed || scratch->n > 16) /* 2^53 has as many */
        return 0;
    for (size_t i = 0; i < scratch->n; i++) {
        if (scratch->p[i] < '0' || scratch->p[i] > '9')
            return 0;
        number = number * 10 + (uint64_t)(scratch->p[i] - '0');
    }
    return number;
}

/* Inside a string JSON has no bare line break. */
void rewrite_make_line(struct buf *text)
{
    bool ends = text->n && text->p[text->n - 1] == '\n';
    size_t end = text->n - ends;

    if (ends && end && text->p[end - 1] == '\r')
        end--;
    for (size_t i = 0; i < end; i++) {
        if (text->p[i] == '\n' || text->p[i] == '\r')
            text->p[i] = ' ';
    }
    if (!ends)
        buf_add_char(text, '\n');
}
