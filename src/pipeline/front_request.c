/* SPDX-License-Identifier: Apache-2.0 */
/* What may come in over HTTP: whoever asks must name us, and come from where it may. */
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/front_internal.h"
#include "transport/http_encode.h"

#define SHOWN 100 /* bytes of what a stranger sent */
#include "transport/listen_address.h"
#include "json/jcs.h"

/* --- answers of our own --- */

void front_add_header(struct front *f, const char *name, str value)
{
    UNINITIALIZED struct err ignored; /* what cannot be a header is left out */

    if (http_put_header(&f->headers, str_from(name), value, &ignored) < 0)
        return;
}

static bool is_allowed(const struct front *f, str origin)
{
    for (size_t i = 0; i < f->o->origin_count; i++) {
        if (strcmp(f->o->origins[i], "*") == 0 ||
            str_equal_nocase(origin, str_from(f->o->origins[i])))
            return true;
    }
    return false;
}

void front_begin_headers(struct front *f, const struct http_head *head)
{
    str origin = head ? http_head_find(head, "Origin", NULL) : (str){ NULL, 0 };

    f->headers.max = HTTP_HEAD_MAX;
    buf_reset(&f->headers);
    if (!origin.p || !is_allowed(f, origin))
        return;
    front_add_header(f, "Access-Control-Allow-Origin", origin);
    front_add_header(f, "Access-Control-Expose-Headers",
                     STR("Mcp-Session-Id, WWW-Authenticate"));
    front_add_header(f, "Vary", STR("Origin"));
}

/* Into f->body. */
static void compose(struct front *f, int code, str id, const char *message)
{
    buf_reset(&f->body);
    f->body.max = HTTP_HEAD_MAX;
    buf_printf(&f->body, "{\"error\":{\"code\":%d,\"message\":", code);
    jcs_add_string(&f->body, str_from(message));
    buf_add(&f->body, STR("},\"id\":"));
    buf_add(&f->body, id.n ? id : STR("null"));
    buf_add(&f->body, STR(",\"jsonrpc\":\"2.0\"}"));
}

void front_refuse(struct front *f, struct http_request *r, unsigned status, int code,
                  str id, const char *fmt, ...)
{
    char message[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    compose(f, code, id, message);
    front_begin_headers(f, r->head);
    front_add_header(f, "Content-Type", STR("application/json"));
    if (status == 405)
        front_add_header(f, "Allow", STR("GET, POST, DELETE, OPTIONS"));
    http_reply(r, status, buf_str(&f->headers), buf_str(&f->body));
}

void front_on_refusal(void *ctx, const struct http_head *head, unsigned status,
                      const char *why, struct buf *headers, struct buf *body)
{
    struct front *f = ctx;
    struct err ignored;

    (void)status;
    compose(f, -32000, STR(""), why);
    front_begin_headers(f, head);
    buf_add(headers, buf_str(&f->headers));
    if (http_put_header(headers, STR("Content-Type"), STR("application/json"),
                        &ignored) == 0)
        buf_add(body, buf_str(&f->body));
}

/* --- who may ask --- */

static bool is_loopback(str name)
{
    char text[INET6_ADDRSTRLEN];

    if (name.n > 10 && str_equal_nocase(str_skip(name, name.n - 10), STR(".localhost")))
        return true;
    if (name.n == 0 || name.n >= sizeof(text) || memchr(name.p, 0, name.n))
        return false;
    memcpy(text, name.p, name.n);
    text[name.n] = '\0';
    return listen_host_is_loopback(text); /* 127.0.0.1.example.com is not */
}

/* A name that somebody's DNS makes point here is not ours. Most clients call us what the
 * one before called us. */
static bool is_our_host(struct front *f, str host)
{
    uint16_t port;
    str name;

    if (!f->o->is_loopback || (host.n && str_equal(host, buf_str(&f->known_as))))
        return true;
    if (!http_host_parse(&name, &port, host) ||
        !(is_loopback(name) || str_equal_nocase(name, str_from(f->o->host))))
        return false;
    buf_reset(&f->known_as);
    buf_add(&f->known_as, host);
    return true;
}

/* A page of this machine may ask, one from elsewhere only if it is named. */
static bool is_our_origin(const struct front *f, str origin)
{
    uint16_t port;
    str name, rest = origin;

    if (is_allowed(f, origin))
        return true;
    if (!f->o->is_loopback)
        return false;
    if (str_starts(rest, STR("http://")))
        rest = str_skip(rest, 7);
    else if (str_starts(rest, STR("https://")))
        rest = str_skip(rest, 8);
    else
        return false;
    return http_host_parse(&name, &port, rest) && is_loopback(name);
}

/* A page cannot read why; the person can. Not more often than needed. */
static void say_refused(struct front *f, const char *what, str value)
{
    struct err sentence; /* which escapes what is foreign */
    uint64_t now = loop_now(f->loop);

    if (f->said_refused && now - f->said_refused < SAY_AGAIN)
        return;
    f->said_refused = now;
    err_set(&sentence, ERR_REFUSED, "a request was refused for its %s '%.*s'%s", what,
            (int)str_first(value, SHOWN).n, value.p ? value.p : "",
            strcmp(what, "Origin") == 0 ? " (--allow-origin lets it in)" : "");
    front_say(f, "%s", sentence.msg);
}

static bool may_come(struct front *f, struct http_request *r)
{
    size_t many;
    str origin = http_head_find(r->head, "Origin", &many);

    if (r->head->host.p && !is_our_host(f, r->head->host)) {
        front_refuse(f, r, 403, -32000, STR(""),
                     "Host is not a name of this machine: a page could have been made to "
                     "ask here; a proxy in front of us must send Host: localhost");
        say_refused(f, "Host", r->head->host);
        return false;
    }
    if (many > 1 || (origin.p && !is_our_origin(f, origin))) {
        front_refuse(f, r, 403, -32000, STR(""),
                     "this Origin is not allowed here (--allow-origin)");
        say_refused(f, "Origin", origin);
        return false;
    }
    return true;
}

bool front_is_path(const struct http_request *r, const char *path)
{
    return str_is(r->head->parts.path, path);
}

bool front_is_method(const struct http_request *r, const char *method)
{
    return str_is(r->head->method, method);
}

static void preflight(struct front *f, struct http_request *r)
{
    str wanted = http_head_find(r->head, "Access-Control-Request-Headers", NULL);

    front_begin_headers(f, r->head);
    if (f->headers.n) {
        front_add_header(f, "Access-Control-Allow-Methods",
                         STR("GET, POST, DELETE, OPTIONS"));
        if (wanted.p)
            front_add_header(f, "Access-Control-Allow-Headers", wanted);
        front_add_header(f, "Access-Control-Max-Age", STR("600"));
    }
    http_reply(r, 204, buf_str(&f->headers), STR(""));
}

static void health(struct front *f, struct http_request *r)
{
    front_begin_headers(f, r->head);
    front_add_header(f, "Content-Type", STR("application/json"));
    http_reply(r, 200, buf_str(&f->headers), STR("{\"status\":\"ok\"}"));
}

/* JSON is UTF-8 (RFC 8259): a server that would read the body in another way must not get
 * what we have read in ours. */
static bool is_plain_text(str type)
{
    static const str key = { "charset", 7 };

    for (size_t i = 0; i + key.n <= type.n; i++) {
        str value = str_skip(type, i + key.n);

        if (!str_equal_nocase(str_of(type.p + i, key.n), key))
            continue;
        if (!str_starts(value, STR("=")))
            return false;
        value = http_item_word(str_skip(value, 1));
        if (!str_equal_nocase(value, STR("utf-8")) &&
            !str_equal_nocase(value, STR("\"utf-8\"")))
            return false;
    }
    return true;
}

/* What we rest on must be what the server gets: once, and not of the connection. */
static const char *ambiguity(const struct http_head *h)
{
    static const char *const names[] = { "Mcp-Session-Id", "Authorization",
                                         "Content-Type" };
    str coding = http_head_find(h, "Content-Encoding", NULL);
    size_t many;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        http_head_find(h, names[i], &many);
        if (many > 1 || http_head_lists(h, "Connection", names[i]))
            return "a header that may be there once is there twice, or is said to be of "
                   "the connection";
    }
    if (coding.p && !str_equal_nocase(coding, STR("identity")))
        return "the body must not be encoded";
    return is_plain_text(http_head_find(h, "Content-Type", NULL))
               ? NULL
               : "the charset must be utf-8";
}

/* What a client asks of the server as a whole, to find out who grants access. */
static bool is_metadata(const struct front *f, const struct http_request *r)
{
    return front_is_far(f) && front_is_method(r, "GET") &&
           str_starts(r->head->parts.path, STR("/.well-known/"));
}

/* What can be said before the body is here. */
bool front_on_head(void *ctx, struct http_request *r)
{
    struct front *f = ctx;
    bool mcp = front_is_path(r, "/mcp");
    const char *why = ambiguity(r->head);

    if (front_is_path(r, "/health") &&
        (front_is_method(r, "GET") || front_is_method(r, "HEAD")))
        health(f, r);
    else if (!may_come(f, r))
        return false;
    else if (front_is_method(r, "OPTIONS"))
        preflight(f, r);
    else if (f->stopping)
        front_refuse(f, r, 503, -32000, STR(""), "this server is about to stop");
    else if (!mcp && !front_is_path(r, "/sse") && !front_is_path(r, "/messages") &&
             !is_metadata(f, r))
        front_refuse(f, r, 404, -32000, STR(""),
                     "there is nothing here: the paths are /mcp, /sse and /health");
    else if (front_is_method(r, "POST") && !front_is_far(f) &&
             !http_head_is_type(r->head, "application/json"))
        front_refuse(f, r, 415, -32000, STR(""), "Content-Type must be application/json");
    else if (why)
        front_refuse(f, r, 400, -32000, STR(""), "%s", why);
    else
        return true;
    return false;
}
