/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cheapest server that a client accepts: it answers each line that has an id, all
 * lines of one read with one write. The tool "big" has a result of 1 MiB, the answer of
 * the tool "single" a write of its own.
 */
#include <stdbool.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"

#define PIECE    ((size_t)64 << 10)
#define BIG_SIZE ((size_t)1 << 20)

static char big[BIG_SIZE];

static bool has(str line, str what)
{
    return memmem(line.p, line.n, what.p, what.n) != NULL;
}

/* The number after the first "id": of a line that is ours or a client's of small ids. */
static str id_of(str line)
{
    str name = STR("\"id\":");
    const char *at = memmem(line.p, line.n, name.p, name.n);
    size_t n = 0;
    str rest;

    if (!at)
        return (str){ NULL, 0 };
    rest = str_skip(line, (size_t)(at - line.p) + name.n);
    while (n < rest.n && rest.p[n] != ',' && rest.p[n] != '}')
        n++;
    return str_first(rest, n);
}

static void answer(struct buf *out, str line)
{
    str id = id_of(line);

    if (!id.n)
        return;
    buf_add(out, STR("{\"jsonrpc\":\"2.0\",\"id\":"));
    buf_add(out, id);
    buf_add(out, STR(",\"result\":"));
    if (has(line, STR("\"initialize\"")))
        buf_add(out, STR("{\"protocolVersion\":\"2025-06-18\",\"capabilities\":"
                         "{\"tools\":{}},\"serverInfo\":{\"name\":\"bench\","
                         "\"version\":\"1\"}}"));
    else if (has(line, STR("\"tools/list\"")))
        buf_add(out, STR("{\"tools\":[{\"name\":\"small\",\"inputSchema\":"
                         "{\"type\":\"object\"}},{\"name\":\"big\",\"inputSchema\":"
                         "{\"type\":\"object\"}},{\"name\":\"single\",\"inputSchema\":"
                         "{\"type\":\"object\"}}]}"));
    else {
        buf_add(out, STR("{\"content\":[{\"type\":\"text\",\"text\":\""));
        buf_add(out, str_of(big, has(line, STR("\"big\"")) ? sizeof(big) : 200));
        buf_add(out, STR("\"}],\"isError\":false}"));
    }
    buf_add(out, STR("}\n"));
}

static bool flush(struct buf *b)
{
    for (size_t done = 0; done < b->n;) {
        ssize_t n = write(STDOUT_FILENO, b->p + done, b->n - done);

        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    buf_reset(b);
    return true;
}

int main(void)
{
    CLEANUP(buf_release) struct buf in = { .max = PIECE * 16 };
    CLEANUP(buf_release) struct buf out = { .max = BIG_SIZE * 128 };
    ssize_t n;

    memset(big, 'x', sizeof(big));
    while (buf_room(&in, PIECE) && (n = read(STDIN_FILENO, in.p + in.n, PIECE)) > 0) {
        str rest, line;
        size_t left;

        in.n += (size_t)n;
        rest = buf_str(&in);
        while (str_line(&rest, &line)) {
            answer(&out, line);
            if (has(line, STR("\"single\"")) && !flush(&out))
                return 0;
        }
        left = rest.n;
        memmove(in.p, in.p + in.n - left, left);
        in.n = left;
        if (!flush(&out))
            return 0;
    }
    return 0;
}
