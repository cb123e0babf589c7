/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/oauth.h"

#include "base/err.h"
#include "json/jcs.h"
#include "json/json.h"

static const str well_known = { "/.well-known/oauth-protected-resource", 37 };

void oauth_add_path(struct buf *out, str asked, const struct oauth_places *p)
{
    bool ours = str_starts(asked, well_known) &&
                str_equal(str_skip(asked, well_known.n), p->ours_path);

    buf_add(out, ours ? well_known : asked);
    if (ours && !str_is(p->server_path, "/"))
        buf_add(out, p->server_path);
}

/* Is this the origin, and not the beginning of another one? */
static bool is_at(str url, str origin)
{
    return str_starts(url, origin) && (url.n == origin.n || url.p[origin.n] == '/' ||
                                       url.p[origin.n] == '?' || url.p[origin.n] == '"');
}

/* The server's path behind a well-known one, or alone, is ours. */
static void add_moved(struct buf *out, str url, const struct oauth_places *p)
{
    str rest = str_skip(url, p->server.n);
    bool known = str_starts(rest, well_known);
    str path = known ? str_skip(rest, well_known.n) : rest;

    buf_add(out, p->ours);
    if (known)
        buf_add(out, well_known);
    buf_add(out, str_equal(path, p->server_path) ? p->ours_path : path);
}

void oauth_add_challenge(struct buf *out, str value, const struct oauth_places *p)
{
    static const str key = { "resource_metadata=\"", 19 };

    for (size_t i = 0; i < value.n; i++) {
        str rest = str_skip(value, i), url;
        size_t n = 0;

        if (!str_starts(rest, key) || !is_at(str_skip(rest, key.n), p->server)) {
            buf_add_char(out, value.p[i]);
            continue;
        }
        url = str_skip(rest, key.n);
        while (n < url.n && url.p[n] != '"')
            n++;
        buf_add(out, key);
        add_moved(out, str_first(url, n), p);
        i += key.n + n - 1;
    }
}

void oauth_add_metadata(struct buf *out, str body, const struct oauth_places *p)
{
    CLEANUP(json_release) struct json j = { 0 };
    CLEANUP(buf_release) struct buf url = { .max = OAUTH_METADATA_MAX };
    CLEANUP(buf_release) struct buf moved = { .max = 2 * OAUTH_METADATA_MAX };
    struct err ignored;
    uint32_t node = json_parse(&j, body, NULL, &ignored) == 0
                        ? json_member(&j, JSON_ROOT, STR("resource"))
                        : JSON_NONE;

    if (json_is(&j, node, JSON_STRING))
        json_unescape(&j, node, &url);
    if (!is_at(buf_str(&url), p->server)) {
        buf_add(out, body);
        return;
    }
    add_moved(&moved, buf_str(&url), p);
    buf_add(out, str_first(body, j.nodes[node].start));
    jcs_add_string(out, buf_str(&moved));
    buf_add(out, str_skip(body, j.nodes[node].end));
}
