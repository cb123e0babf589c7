/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the servers of the bench answer with: the least that a client accepts. The tool
 * "big" has a result of 1 MiB.
 */
#ifndef BENCH_ANSWER_H
#define BENCH_ANSWER_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

#define BIG_SIZE ((size_t)1 << 20)

static inline bool has(str text, str what)
{
    return text.n && memmem(text.p, text.n, what.p, what.n) != NULL;
}

/* The number after the first "id": of a message that is ours or a client's of small ids.
 */
static inline str id_of(str message)
{
    str name = STR("\"id\":");
    const char *at = message.n ? memmem(message.p, message.n, name.p, name.n) : NULL;
    size_t n = 0;
    str rest;

    if (!at)
        return (str){ NULL, 0 };
    rest = str_skip(message, (size_t)(at - message.p) + name.n);
    while (n < rest.n && rest.p[n] != ',' && rest.p[n] != '}')
        n++;
    return str_first(rest, n);
}

static inline void add_text(struct buf *out, size_t n)
{
    static char big[BIG_SIZE];

    if (!big[0])
        memset(big, 'x', sizeof(big));
    buf_add(out, STR("{\"content\":[{\"type\":\"text\",\"text\":\""));
    buf_add(out, str_of(big, n));
    buf_add(out, STR("\"}],\"isError\":false}"));
}

/* Nothing for what has no id. */
static inline void add_answer(struct buf *out, str message)
{
    str id = id_of(message);

    if (!id.n)
        return;
    buf_add(out, STR("{\"jsonrpc\":\"2.0\",\"id\":"));
    buf_add(out, id);
    buf_add(out, STR(",\"result\":"));
    if (has(message, STR("\"initialize\"")))
        buf_add(out, STR("{\"protocolVersion\":\"2025-06-18\",\"capabilities\":"
                         "{\"tools\":{}},\"serverInfo\":{\"name\":\"bench\","
                         "\"version\":\"1\"}}"));
    else if (has(message, STR("\"tools/list\"")))
        buf_add(out, STR("{\"tools\":[{\"name\":\"small\",\"inputSchema\":"
                         "{\"type\":\"object\"}},{\"name\":\"big\",\"inputSchema\":"
                         "{\"type\":\"object\"}},{\"name\":\"single\",\"inputSchema\":"
                         "{\"type\":\"object\"}}]}"));
    else
        add_text(out, has(message, STR("\"big\"")) ? BIG_SIZE : 200);
    buf_add_char(out, '}');
}

#endif
