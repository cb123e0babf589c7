/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/url.h"

#include <stdio.h>

#include "base/err.h"

/* The part between "scheme://" and the path. */
static str authority_of(str rest)
{
    size_t n = 0;

    while (n < rest.n && !memchr("/?#", rest.p[n], 3))
        n++;
    return str_first(rest, n);
}

static int read_scheme(struct url *u, str text, str *rest, struct err *err)
{
    static const str plain = { "http://", 7 }, safe = { "https://", 8 };

    u->tls = str_equal_nocase(str_first(text, safe.n), safe);
    if (!u->tls && !str_equal_nocase(str_first(text, plain.n), plain))
        return err_set(err, ERR_FORMAT,
                       "the URL does not begin with 'http://' or 'https://'");
    *rest = str_skip(text, u->tls ? safe.n : plain.n);
    return 0;
}

static int read_authority(struct url *u, str authority, struct err *err)
{
    uint16_t own = u->tls ? 443 : 80;
    const char *bracket;
    str name;

    if (authority.n && memchr(authority.p, '@', authority.n))
        return err_set(err, ERR_REFUSED,
                       "the URL has a user name or password in it: give them with "
                       "--header Authorization=… instead");
    if (!http_host_parse(&name, &u->port, authority))
        return err_set(err, ERR_FORMAT, "the URL has no valid host");
    if (u->port == 0)
        u->port = own;
    snprintf(u->host, sizeof(u->host), STR_FMT, STR_ARG(name));
    bracket = authority.p[0] == '[' ? "[" : "";
    if (u->port == own)
        snprintf(u->authority, sizeof(u->authority), "%s%s%s", bracket, u->host,
                 *bracket ? "]" : "");
    else
        snprintf(u->authority, sizeof(u->authority), "%s%s%s:%u", bracket, u->host,
                 *bracket ? "]" : "", u->port);
    return 0;
}

static int read_target(struct url *u, str rest, struct err *err)
{
    struct http_target parts;
    enum http_refusal refusal;
    const char *slash = rest.n && rest.p[0] == '/' ? "" : "/";

    if (rest.n && memchr(rest.p, '#', rest.n))
        return err_set(err, ERR_FORMAT, "the URL has a fragment ('#…')");
    snprintf(u->target, sizeof(u->target), "%s" STR_FMT, slash, STR_ARG(rest));
    refusal = http_target_parse(&parts, str_from(u->target));
    if (refusal != HTTP_NONE)
        return err_set(err, ERR_FORMAT, "the URL's path is none: %s",
                       http_refusal_why(refusal));
    return 0;
}

int url_parse(struct url *u, const char *text, struct err *err)
{
    struct url found = { .tls = false };
    str all = str_from(text), rest = { NULL, 0 }, authority;

    if (all.n > URL_MAX)
        return err_set(err, ERR_LIMIT, "the URL is longer than %zu bytes", URL_MAX);
    if (read_scheme(&found, all, &rest, err) < 0)
        return -1;
    authority = authority_of(rest);
    if (read_authority(&found, authority, err) < 0 ||
        read_target(&found, str_skip(rest, authority.n), err) < 0)
        return -1;
    *u = found;
    return 0;
}
