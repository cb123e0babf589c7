/* SPDX-License-Identifier: Apache-2.0 */
/* Reads streams of requests, each a line of lower-case hex, and says what the codec reads
 * from them: "METHOD PATH BYTES" for each request, then how it ended, then ".". */
#include <stdio.h>
#include <stdlib.h>

#include "base/codec.h"
#include "tests/http_stream.h"

#define STREAM_MAX ((size_t)1 << 20)

static int report(str bytes)
{
    CLEANUP(buf_release) struct buf first = { .max = 2 * STREAM_MAX };

    http_stream_read(&first, bytes, HTTP_REQUEST, CUT_WHOLE, true, false);
    for (uint32_t seed = 1; seed < 6; seed++) {
        CLEANUP(buf_release) struct buf other = { .max = 2 * STREAM_MAX };

        http_stream_read(&other, bytes, HTTP_REQUEST, seed, true, false);
        if (!str_equal(buf_str(&first), buf_str(&other)))
            return -1;
    }
    fwrite(first.p, 1, first.n, stdout);
    puts(".");
    return 0;
}

int main(void)
{
    static char bytes[STREAM_MAX];
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int status = 0;

    while (status == 0 && (n = getline(&line, &room, stdin)) > 0) {
        str hex = str_of(line, (size_t)n - (line[n - 1] == '\n'));

        if (hex.n / 2 > sizeof(bytes) || !hex_decode(bytes, hex.n / 2, hex) ||
            report(str_of(bytes, hex.n / 2)) < 0)
            status = 1;
    }
    free(line);
    return status;
}
