/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/percent.h"

static int value_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t percent_decode(char *out, str in)
{
    size_t n = 0;

    for (size_t i = 0; i < in.n; i++) {
        int high = -1, low = -1;

        if (in.p[i] == '%' && in.n - i > 2) {
            high = value_of(in.p[i + 1]);
            low = value_of(in.p[i + 2]);
        }
        if (high < 0 || low < 0) {
            out[n++] = in.p[i];
            continue;
        }
        out[n++] = (char)(high << 4 | low);
        i += 2;
    }
    return n;
}
