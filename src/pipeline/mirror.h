/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mirror - arguments of calls that a server over HTTP wants to see in headers, too (MCP
 * 2026-07-28): tools mark them with `x-mcp-header` in their inputSchema. The marks are
 * remembered from lists of tools; a call's arguments then give its Mcp-Param headers.
 *
 * A mark counts on a string, an integer or a boolean that is reached through `properties`
 * alone, and if it is a token that no argument before it had. What is beyond the limits
 * is passed over: the server says itself what it misses.
 */
#ifndef PIPELINE_MIRROR_H
#define PIPELINE_MIRROR_H

#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"
#include "transport/http_client.h"
#include "json/json.h"

#define MIRROR_TOOLS_MAX   1024               /* with marks */
#define MIRROR_BYTES_MAX   ((size_t)4 << 20)  /* of their names and schemas */
#define MIRROR_HEADERS_MAX 32                 /* of a call */
#define MIRROR_TOKEN_MAX   128                /* bytes of a mark */
#define MIRROR_VALUE_MAX   ((size_t)8 << 10)  /* of a header, as it is sent */
#define MIRROR_TEXT_MAX    ((size_t)48 << 10) /* of all headers of a call */
#define MIRROR_DEPTH_MAX   16                 /* objects in objects */

struct mirror_tool {
    char *text; /* name and schema */
    size_t name, schema;
};

/* All zero is one that knows nothing. */
struct mirror {
    struct mirror_tool *tools;
    size_t count, bytes;
    struct json schema; /* of the call at hand */
    struct buf word, plain, value, text;
    struct {
        size_t name, value, end; /* in `text` */
    } at[MIRROR_HEADERS_MAX];
    struct http_own_header headers[MIRROR_HEADERS_MAX];
    size_t header_count;
};

void mirror_release(struct mirror *m);

/* `tools` is the array of a list; a tool that was known is known as it is now. */
void mirror_learn(struct mirror *m, const struct json *j, uint32_t tools);

/* The headers of a call, in m->headers until the next one; how many. */
size_t mirror_call(struct mirror *m, str tool, const struct json *j, uint32_t arguments);

/* How a text is written in Mcp-Name and Mcp-Param: as it is, or in base64. */
void mirror_add_value(struct buf *out, str text);
bool mirror_is_safe(str text); /* as it is, then */

#endif
