/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/policy_receipts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/codec.h"
#include "base/err.h"
#include "base/file.h"
#include "base/map.h"
#include "cli/place.h"
#include "evidence/crypto.h"
#include "evidence/receipt_pack.h"
#include "evidence/receipts.h"

#define TOOLS_MEMORY ((size_t)64 << 20)
#define INV_PREFIX   "inv_"

/* --- where they are --- */

static bool is_session(str text)
{
    uint8_t bytes[8];

    return str_starts(text, STR("mcp_")) &&
           hex_decode(bytes, sizeof(bytes), str_skip(text, 4));
}

static int find_session(char out[static FILE_PATH_MAX], const char *session,
                        const char *audit_dir, struct err *err)
{
    char dir[FILE_PATH_MAX], receipts[FILE_PATH_MAX], name[LIVE_NAME_MAX];

    if (place_find(dir, audit_dir, err) < 0 ||
        receipts_find_file(name, dir, session, err) < 0 ||
        path_join(receipts, dir, RECEIPTS_DIR, err) < 0)
        return -1;
    return path_join(out, receipts, name, err);
}

static int find_source(char out[static FILE_PATH_MAX], const char *source,
                       const char *audit_dir, struct err *err)
{
    struct stat st;
    size_t n = strlen(source);

    if (is_session(str_from(source)))
        return find_session(out, source, audit_dir, err);
    if (stat(source, &st) < 0)
        return err_errno(err, "'%s' is no session (mcp_<16 hex>), and no file", source);
    if (S_ISDIR(st.st_mode))
        return path_join(out, source, RECEIPT_PACK_NAME, err);
    if (n >= FILE_PATH_MAX)
        return err_set(err, ERR_LIMIT, "the path is too long");
    memcpy(out, source, n + 1);
    return 0;
}

/* --- one receipt --- */

struct reading {
    policy_receipt_visit *visit;
    void *ctx;
    struct json line, arguments;
    struct buf tool, content, hash, ref;
    struct map seen; /* invocations */
};

static void reading_release(struct reading *r)
{
    json_release(&r->line);
    json_release(&r->arguments);
    buf_release(&r->tool);
    buf_release(&r->content);
    buf_release(&r->hash);
    buf_release(&r->ref);
    map_release(&r->seen);
}

static uint32_t member(const struct reading *r, const char *name)
{
    return json_member(&r->line, JSON_ROOT, str_from(name));
}

static bool is(const struct reading *r, const char *name, str value)
{
    uint32_t node = member(r, name);

    return json_is(&r->line, node, JSON_STRING) && json_string_is(&r->line, node, value);
}

/* A member that is a text, decoded; else empty. */
static str text_of(const struct reading *r, const char *name, struct buf *out)
{
    uint32_t node = member(r, name);

    buf_reset(out);
    if (json_is(&r->line, node, JSON_STRING))
        json_unescape(&r->line, node, out);
    return buf_str(out);
}

/* The number of an invocation; false when it has none. */
static bool invocation(const struct reading *r, uint64_t *key)
{
    uint32_t node = member(r, "invocation_id");
    uint8_t bytes[8];
    str raw;

    if (!json_is(&r->line, node, JSON_STRING))
        return false;
    raw = json_raw(&r->line, node);
    raw = str_of(raw.p + 1, raw.n - 2);
    if (!str_starts(raw, STR(INV_PREFIX)) ||
        !hex_decode(bytes, sizeof(bytes), str_skip(raw, strlen(INV_PREFIX))))
        return false;
    memcpy(key, bytes, sizeof(bytes));
    return true;
}

/* Stored content is the value, or its raw text in a string. False when it is not there or
 * cannot be read: then nobody knows the arguments. */
static bool read_arguments(struct reading *r)
{
    uint32_t node = member(r, "arguments_content");
    struct err bad = { 0 };
    str text;

    if (node == JSON_NONE || json_is(&r->line, node, JSON_NULL))
        return false;
    text = json_raw(&r->line, node);
    if (json_is(&r->line, node, JSON_STRING)) {
        buf_reset(&r->content);
        json_unescape(&r->line, node, &r->content);
        text = buf_str(&r->content);
    }
    return !r->content.failed && json_parse(&r->arguments, text, NULL, &bad) == 0;
}

/* Missing arguments are hashed as {}, and nothing else hashes so. */
static bool has_no_arguments(const struct reading *r)
{
    CLEANUP(buf_release) struct buf hash = { 0 };
    struct digest empty = digest_of(STR("{}"));

    digest_add_tagged(&hash, &empty);
    return is(r, "arguments_hash", buf_str(&hash));
}

static int visit_call(struct reading *r, struct err *err)
{
    struct policy_receipt call = {
        .tool = text_of(r, "tool_name", &r->tool),
        .json = read_arguments(r) ? &r->arguments : NULL,
        .none = has_no_arguments(r),
        .was_denied = is(r, "policy_verdict", STR("denied")),
        .was_refused = is(r, "outcome", STR("denied")),
        .policy_hash = text_of(r, "policy_hash", &r->hash),
        .policy_ref = text_of(r, "policy_ref", &r->ref),
    };

    call.was_judged = call.was_denied || is(r, "policy_verdict", STR("allowed"));
    return r->visit(r->ctx, &call, err);
}

static int visit_line(struct reading *r, str line, struct err *err)
{
    struct err torn = { 0 };
    uint64_t key;

    if (json_parse(&r->line, line, NULL, &torn) < 0 ||
        !json_is(&r->line, JSON_ROOT, JSON_OBJECT) ||
        !is(r, "type", STR("mcp_tool_call")))
        return torn.code == ERR_NOMEM ? err_set(err, ERR_NOMEM, "%s", torn.msg) : 0;
    if (invocation(r, &key)) {
        if (map_get(&r->seen, key))
            return 0;
        if (map_put(&r->seen, key, r, err) < 0)
            return -1;
    }
    return visit_call(r, err);
}

static int visit_lines(struct reading *r, str rest, struct err *err)
{
    str line;

    while (str_line(&rest, &line)) {
        if (visit_line(r, line, err) < 0)
            return -1;
    }
    return 0;
}

int policy_receipts_each(const char *source, const char *audit_dir,
                         policy_receipt_visit *visit, void *ctx, struct err *err)
{
    CLEANUP(reading_release) struct reading r = { .visit = visit, .ctx = ctx };
    CLEANUP(mapping_release) struct mapping map = { 0 };
    CLEANUP(file_close) int fd = -1;
    char path[FILE_PATH_MAX];

    r.content.max = (size_t)64 << 20;
    if (find_source(path, source, audit_dir, err) < 0)
        return -1;
    fd = file_open(path, O_RDONLY | O_NOCTTY, 0, err);
    if (fd < 0 || mapping_open(&map, fd, path, err) < 0)
        return -1;
    return visit_lines(&r, map.bytes, err);
}

/* --- tools --- */

static bool has(const struct policy_tools *t, str name)
{
    for (size_t i = 0; i < t->count; i++) {
        if (str_equal(t->at[i], name))
            return true;
    }
    return false;
}

static int add_tool(void *ctx, const struct policy_receipt *call, struct err *err)
{
    struct policy_tools *t = ctx;

    if (call->was_refused || call->tool.n == 0 || has(t, call->tool))
        return 0;
    if (t->count == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 16;
        str *at = realloc(t->at, cap * sizeof(*at));

        if (!at)
            return err_set(err, ERR_NOMEM, "out of memory");
        t->at = at;
        t->cap = cap;
    }
    t->at[t->count] = arena_dup(&t->arena, call->tool);
    if (t->arena.failed)
        return err_set(err, ERR_LIMIT, "too many different tools");
    t->count++;
    return 0;
}

int policy_tools_read(struct policy_tools *t, const char *session, const char *audit_dir,
                      struct err *err)
{
    arena_init(&t->arena, TOOLS_MEMORY);
    return policy_receipts_each(session, audit_dir, add_tool, t, err);
}

void policy_tools_release(struct policy_tools *t)
{
    arena_release(&t->arena);
    free(t->at);
    *t = (struct policy_tools){ 0 };
}
