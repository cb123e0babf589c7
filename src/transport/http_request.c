/* SPDX-License-Identifier: Apache-2.0 */
/* The heads of requests; declared in http_client.h and http_client_internal.h. */
#include <stdio.h>

#include "transport/http_client_internal.h"
#include "transport/http_encode.h"
#include "transport/http_proxy.h"

bool http_client_may_set(str name)
{
    static const str mirrored = { "Mcp-Param-", 10 };
    static const char *const ours[] = {
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "Keep-Alive",
        "Proxy-Connection",
        "Proxy-Authorization",
        "TE",
        "Trailer",
        "Upgrade",
        "Expect",
        "Accept",
        "Accept-Encoding",
        "Content-Type",
        "Content-Encoding",
        "MCP-Protocol-Version",
        "Mcp-Session-Id",
        "Last-Event-ID",
        "Mcp-Method",
        "Mcp-Name",
    };

    if (str_equal_nocase(str_first(name, mirrored.n), mirrored))
        return false;
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (str_equal_nocase(name, str_from(ours[i])))
            return false;
    }
    return true;
}

static const char *const kind_methods[] = { "POST", "GET", "DELETE", "GET" };

static int put(struct buf *out, const char *name, str value, struct err *err)
{
    return value.p ? http_put_header(out, str_from(name), value, err) : 0;
}

static int put_own_headers(struct buf *out, const struct http_client *c, struct err *err)
{
    bool agent = false;

    for (size_t i = 0; i < c->options.header_count; i++) {
        const struct http_own_header *h = &c->options.headers[i];

        agent = agent || str_equal_nocase(h->name, STR("User-Agent"));
        if (http_put_header(out, h->name, h->value, err) < 0)
            return -1;
    }
    return agent ? 0 : put(out, "User-Agent", STR("assay/" ASSAY_VERSION), err);
}

static int put_facts(struct buf *out, const struct exchange *x,
                     const struct http_facts *f, struct err *err)
{
    const struct http_client *c = x->client;
    str session = c->session.n && !f->stateless && !x->opens_session
                      ? buf_str(&c->session)
                      : (str){ NULL, 0 };
    str last = x->last_id.n ? buf_str(&x->last_id) : (str){ NULL, 0 };

    if (put(out, "MCP-Protocol-Version", f->version, err) < 0 ||
        put(out, "Mcp-Method", f->method, err) < 0 ||
        put(out, "Mcp-Name", f->name, err) < 0 ||
        put(out, "Mcp-Session-Id", session, err) < 0)
        return -1;
    for (size_t i = 0; i < f->mirrored_count; i++) {
        if (http_put_header(out, f->mirrored[i].name, f->mirrored[i].value, err) < 0)
            return -1;
    }
    return put(out, "Last-Event-ID", last, err);
}

struct url exchange_url(const struct exchange *x)
{
    const struct http_client *c = x->client;
    struct url to =
        c->server == SERVER_OLD && x->kind == EXCHANGE_POST ? c->place : *c->options.url;

    if (x->target.n)
        snprintf(to.target, sizeof(to.target), STR_FMT, STR_ARG(buf_str(&x->target)));
    return to;
}

/* A proxy must be told the whole URL, unless it only passes TLS on. */
static int put_request_line(struct buf *out, const struct exchange *x, const char *method,
                            const struct url *to, struct err *err)
{
    const struct http_proxy *proxy = to->tls ? NULL : x->client->options.proxy;
    CLEANUP(buf_release) struct buf target = { 0 };

    if (proxy)
        buf_printf(&target, "http://%s", to->authority);
    buf_add(&target, str_from(to->target));
    if (http_put_request(out, str_from(method), buf_str(&target), err) < 0 ||
        put(out, "Host", str_from(to->authority), err) < 0)
        return -1;
    return proxy && proxy->authorization[0]
               ? put(out, "Proxy-Authorization", str_from(proxy->authorization), err)
               : 0;
}

/* GET also where a POST goes on with its stream. */
int exchange_put_head(struct buf *out, const struct exchange *x,
                      const struct http_facts *f, struct err *err)
{
    const struct http_client *c = x->client;
    const struct url to = exchange_url(x);
    bool post = x->kind == EXCHANGE_POST && x->last_id.n == 0;
    const char *method = x->last_id.n ? "GET" : kind_methods[x->kind];
    str accept = post                         ? STR("application/json, text/event-stream")
                 : x->kind == EXCHANGE_DELETE ? STR("*/*")
                                              : STR("text/event-stream");
    char length[24];

    snprintf(length, sizeof(length), "%zu", x->body.n);
    if (put_request_line(out, x, method, &to, err) < 0 ||
        put_own_headers(out, c, err) < 0 || put(out, "Accept", accept, err) < 0 ||
        put(out, "Accept-Encoding", STR("identity"), err) < 0 ||
        put_facts(out, x, f, err) < 0)
        return -1;
    if (post && (put(out, "Content-Type", STR("application/json"), err) < 0 ||
                 put(out, "Content-Length", str_from(length), err) < 0))
        return -1;
    http_put_end(out);
    return buf_check(out, "the head of a request", err);
}
