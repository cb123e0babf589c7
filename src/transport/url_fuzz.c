/* SPDX-License-Identifier: Apache-2.0 */
/* The first line is a URL, the rest a reference that a server gives there. What parses is
 * written back and parses to the same; nothing in it can end a line or a header; and no
 * reference leads out of the origin. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "transport/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static bool is_plain(const char *text, const char *not_in_it)
{
    for (; *text; text++) {
        if ((unsigned char)*text <= ' ' || *text == 0x7f || strchr(not_in_it, *text))
            return false;
    }
    return true;
}

static bool is_same(const struct url *a, const struct url *b)
{
    return a->tls == b->tls && a->port == b->port && strcmp(a->host, b->host) == 0 &&
           strcmp(a->authority, b->authority) == 0 && strcmp(a->target, b->target) == 0;
}

static void write_back(struct buf *out, const struct url *u)
{
    buf_printf(out, "%s://%s%s", u->tls ? "https" : "http", u->authority, u->target);
}

static void check(const struct url *u)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct err err;
    struct url again;

    must(u->host[0] && u->port && is_plain(u->host, "/?#@[]\\"));
    must(is_plain(u->authority, "/?#@\\") && is_plain(u->target, "#"));
    must(u->target[0] == '/');
    write_back(&text, u);
    if (text.n <=
        URL_MAX) /* a slash, or a port's zeros, may have been added or left out */
        must(url_parse(&again, buf_cstr(&text), &err) == 0 && is_same(u, &again));
}

static void check_reference(const struct url *base, str reference)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct url there, again;
    struct err err;

    if (url_resolve(&there, base, reference, &err) < 0)
        return;
    must(there.tls == base->tls && there.port == base->port &&
         str_equal_nocase(str_from(there.host), str_from(base->host)));
    check(&there);
    write_back(&text, &there);
    if (text.n <= URL_MAX)
        must(url_resolve(&again, base, buf_str(&text), &err) == 0 &&
             is_same(&there, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    str all = str_of(data, size), line, rest = all;
    struct err err;
    struct url u;

    if (!str_line(&rest, &line)) {
        line = all;
        rest = (str){ NULL, 0 };
    }
    buf_add(&text, line);
    if (url_parse(&u, buf_cstr(&text), &err) < 0)
        return 0;
    check(&u);
    check_reference(&u, rest);
    return 0;
}
