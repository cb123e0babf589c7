/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/url.h"

#include <stdio.h>

#include "base/buf.h"
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

/* Also what would end a C string, or a line. */
static bool has_control(str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if ((unsigned char)s.p[i] <= ' ' || s.p[i] == 0x7f)
            return true;
    }
    return false;
}

static int parse(struct url *u, str all, struct err *err)
{
    struct url found = { .tls = false };
    str rest = { NULL, 0 }, authority;

    if (has_control(all))
        return err_set(err, ERR_FORMAT,
                       "the URL has a space or a control character in it");
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

int url_parse(struct url *u, const char *text, struct err *err)
{
    return parse(u, str_from(text), err);
}

/* --- references --- */

static bool has_scheme(str reference)
{
    size_t n = 0;

    while (n < reference.n && !memchr(":/?#", reference.p[n], 4))
        n++;
    return n < reference.n && reference.p[n] == ':';
}

/* The path without what follows its last slash, then as many steps up as are asked for.
 * Dots anywhere else are refused when the whole is read. */
static str folder_of(str path, str *reference)
{
    while (path.n > 1 && path.p[path.n - 1] != '/')
        path.n--;
    for (;;) {
        if (str_starts(*reference, STR("./"))) {
            *reference = str_skip(*reference, 2);
        } else if (str_starts(*reference, STR("../"))) {
            *reference = str_skip(*reference, 3);
            while (path.n > 1 && path.p[path.n - 2] != '/')
                path.n--;
            path.n -= path.n > 1;
        } else {
            return path;
        }
    }
}

static void add_absolute(struct buf *out, const struct url *base, str reference)
{
    str target = str_from(base->target), path = target;
    const char *mark = memchr(target.p, '?', target.n);

    if (mark)
        path.n = (size_t)(mark - target.p);
    if (has_scheme(reference)) {
        buf_add(out, reference);
        return;
    }
    buf_printf(out, base->tls ? "https:" : "http:");
    if (!str_starts(reference, STR("//")))
        buf_printf(out, "//%s", base->authority);
    if (str_starts(reference, STR("?")))
        buf_add(out, path);
    else if (!str_starts(reference, STR("/")))
        buf_add(out, folder_of(path, &reference));
    buf_add(out, reference);
}

int url_resolve(struct url *u, const struct url *base, str reference, struct err *err)
{
    CLEANUP(buf_release) struct buf text = { .max = 2 * URL_MAX };
    struct url found;

    if (reference.n == 0)
        return err_set(err, ERR_FORMAT, "the URL is empty");
    add_absolute(&text, base, reference);
    if (buf_check(&text, "the URL", err) < 0 || parse(&found, buf_str(&text), err) < 0)
        return -1;
    if (found.tls != base->tls || found.port != base->port ||
        !str_equal_nocase(str_from(found.host), str_from(base->host)))
        return err_set(err, ERR_REFUSED, "'%s://%s' is another origin than '%s://%s'",
                       found.tls ? "https" : "http", found.authority,
                       base->tls ? "https" : "http", base->authority);
    *u = found;
    return 0;
}
