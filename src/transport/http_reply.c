/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/err.h"
#include "transport/http_encode.h"
#include "transport/http_server_internal.h"

static struct served *served_of(struct http_request *r)
{
    return (struct served *)r; /* its first member */
}

static const struct served *const_served_of(const struct http_request *r)
{
    return (const struct served *)r;
}

/* --- bytes out --- */

void served_send(struct served *c, str bytes)
{
    UNINITIALIZED struct err ignored;

    if (!c->dead && bytes.n && link_write(&c->link, bytes, &ignored) < 0)
        served_die(c);
}

/* --- heads --- */

/* Made once a second, in English whatever the locale. 1970 began on a Thursday. */
static void make_date(struct http_server *s, int64_t second)
{
    static const char days[][4] = { "Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed" };
    static const char months[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    int64_t day = second / 86400 % 7;
    char t[CLOCK_TEXT], out[HTTP_DATE_TEXT + 1];
    int month;

    clock_format(t, second * 1000); /* 2026-03-15T11:30:00.000Z */
    month = (t[5] - '0') * 10 + t[6] - '0';
    snprintf(out, sizeof(out), "%s, %.2s %s %.4s %.8s GMT", days[day < 0 ? day + 7 : day],
             t + 8, months[month - 1], t, t + 11);
    memcpy(s->date, out, sizeof(s->date));
    s->date_second = second;
}

static str date(struct http_server *s)
{
    int64_t second = clock_now(s->options.clock) / 1000;

    if (second != s->date_second)
        make_date(s, second);
    return str_of(s->date, sizeof(s->date));
}

/* A body that is still to come must be read before the next request: it is not waited
 * for where that may take long, or where the client may leave it out. */
static bool body_passes_quickly(const struct served *c)
{
    return c->frame.verdict == HTTP_DONE ||
           (c->frame.framing == HTTP_BODY_LENGTH &&
            c->frame.left <= HTTP_SERVER_PASS_MAX && !c->waits_100);
}

static void put_framing(struct served *c, struct buf *out, unsigned status,
                        uint64_t length)
{
    c->bodiless = c->is_head || status == 204 || status == 304;
    c->chunked = length == HTTP_REPLY_CHUNKED && !c->is_old;
    c->until_close = length == HTTP_REPLY_CHUNKED && c->is_old && !c->bodiless;
    c->left = length;
    if (status == 204 || status == 304)
        return;
    if (c->chunked)
        buf_add(out, STR("Transfer-Encoding: chunked\r\n"));
    if (length != HTTP_REPLY_CHUNKED) {
        buf_add(out, STR("Content-Length: "));
        buf_add_u64(out, length);
        buf_add(out, STR("\r\n"));
    }
}

/* Into the scratch buffer. */
static int put_head(struct served *c, unsigned status, str headers, uint64_t length)
{
    struct http_server *s = c->server;
    struct buf *out = &s->scratch;
    UNINITIALIZED struct err ignored;

    buf_reset(out);
    if (http_put_status(out, status, (str){ 0 }, &ignored) < 0)
        return -1; /* the owner's fault; there is no answer in it */
    if (s->options.clock) {
        buf_add(out, STR("Date: "));
        buf_add(out, date(s));
        buf_add(out, STR("\r\n"));
    }
    buf_add(out, headers);
    put_framing(c, out, status, length);
    c->keep = c->keep && !s->finishing && !c->until_close && body_passes_quickly(c);
    if (!c->keep)
        buf_add(out, STR("Connection: close\r\n"));
    else if (c->is_old)
        buf_add(out, STR("Connection: keep-alive\r\n"));
    http_put_end(out);
    c->begun = true;
    return out->failed ? -1 : 0;
}

/* --- what the owner calls --- */

void http_reply(struct http_request *r, unsigned status, str headers, str body)
{
    struct served *c = served_of(r);
    struct buf *out = &c->server->scratch;

    if (!c->open || c->begun)
        return;
    if (put_head(c, status, headers, body.n) < 0)
        served_die(c);
    if (c->bodiless)
        body.n = 0;
    if (body.n <= JOIN_MAX) {
        buf_add(out, body);
        body.n = 0;
    }
    served_send(c, buf_str(out));
    served_send(c, body);
    served_answered(c);
}

void http_reply_begin(struct http_request *r, unsigned status, str headers,
                      uint64_t length)
{
    struct served *c = served_of(r);

    if (!c->open || c->begun)
        return;
    if (put_head(c, status, headers, length) < 0) {
        served_die(c);
        return;
    }
    served_send(c, buf_str(&c->server->scratch));
}

static void add_chunk(struct served *c, str bytes)
{
    struct buf *out = &c->server->scratch;

    buf_reset(out);
    if (bytes.n <= JOIN_MAX) {
        http_chunk_add(out, bytes);
        served_send(c, buf_str(out));
        return;
    }
    http_chunk_open(out, bytes.n);
    served_send(c, buf_str(out));
    served_send(c, bytes);
    buf_reset(out);
    http_chunk_close(out);
    served_send(c, buf_str(out));
}

void http_reply_add(struct http_request *r, str bytes)
{
    struct served *c = served_of(r);

    if (!c->open || !c->begun || c->dead || c->bodiless || bytes.n == 0)
        return;
    if (c->chunked) {
        add_chunk(c, bytes);
        return;
    }
    if (!c->until_close) {
        bytes = str_first(bytes, c->left < SIZE_MAX ? (size_t)c->left : SIZE_MAX);
        c->left -= bytes.n;
    }
    served_send(c, bytes);
}

void http_reply_end(struct http_request *r)
{
    struct served *c = served_of(r);

    if (!c->open)
        return;
    if (!c->begun || (!c->bodiless && !c->chunked && !c->until_close && c->left > 0)) {
        http_reply_abort(r);
        return;
    }
    if (c->chunked && !c->bodiless)
        served_send(c, STR("0\r\n\r\n"));
    served_answered(c);
}

void http_reply_abort(struct http_request *r)
{
    struct served *c = served_of(r);

    if (!c->open)
        return;
    if (!c->dead && c->begun && c->until_close)
        link_reset(&c->link); /* a plain end would make it look whole */
    served_die(c);
    served_answered(c);
}

bool http_reply_has_begun(const struct http_request *r)
{
    return const_served_of(r)->begun;
}

size_t http_reply_queued(const struct http_request *r)
{
    const struct served *c = const_served_of(r);

    return c->dead ? 0 : link_queued(&c->link);
}

const char *http_request_peer(const struct http_request *r)
{
    return const_served_of(r)->peer;
}

void http_request_drop_body(struct http_request *r)
{
    served_drop_body(served_of(r));
}

void http_request_forget(struct http_request *r)
{
    static const struct http_head none = { .kind = HTTP_REQUEST };
    struct served *c = served_of(r);

    served_drop_body(c);
    http_head_free(&c->head);
    r->head = &none;
    c->forgotten = true;
    if (!c->dead)
        link_trim(&c->link);
}
