/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cheapest server that a client accepts: it answers each line that has an id, all
 * lines of one read with one write. The tool "big" has a result of 1 MiB, the answer of
 * the tool "single" a write of its own.
 */
#include <unistd.h>

#include "tests/bench/answer.h"

#define PIECE ((size_t)64 << 10)

static void answer(struct buf *out, str line)
{
    size_t before = out->n;

    add_answer(out, line);
    if (out->n > before)
        buf_add_char(out, '\n');
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
