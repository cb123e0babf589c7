/* SPDX-License-Identifier: Apache-2.0 */
/* A header of a head that ends in a NUL somewhere behind it, for client and server of the
 * bench; proxies are read here, not attackers. */
#ifndef BENCH_HTTP_HEADER_H
#define BENCH_HTTP_HEADER_H

#include "base/str.h"

/* `name` is "\r\nname:". Empty if there is none. */
static inline str header(str head, const char *name)
{
    const char *at = strcasestr(head.p, name);
    str rest;
    size_t n = 0;

    if (!at || at >= head.p + head.n)
        return (str){ NULL, 0 };
    rest = str_skip(head, (size_t)(at - head.p) + strlen(name));
    while (rest.n && *rest.p == ' ')
        rest = str_skip(rest, 1);
    while (n < rest.n && rest.p[n] != '\r')
        n++;
    return str_first(rest, n);
}

#endif
