/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/http_encode.h"

#include "base/err.h"
#include "transport/http_grammar.h"
#include "transport/http_head.h"

static const struct {
    unsigned status;
    const char *reason;
} reasons[] = {
    { 100, "Continue" },
    { 101, "Switching Protocols" },
    { 200, "OK" },
    { 201, "Created" },
    { 202, "Accepted" },
    { 204, "No Content" },
    { 206, "Partial Content" },
    { 301, "Moved Permanently" },
    { 302, "Found" },
    { 303, "See Other" },
    { 304, "Not Modified" },
    { 307, "Temporary Redirect" },
    { 308, "Permanent Redirect" },
    { 400, "Bad Request" },
    { 401, "Unauthorized" },
    { 402, "Payment Required" },
    { 403, "Forbidden" },
    { 404, "Not Found" },
    { 405, "Method Not Allowed" },
    { 406, "Not Acceptable" },
    { 407, "Proxy Authentication Required" },
    { 408, "Request Timeout" },
    { 409, "Conflict" },
    { 410, "Gone" },
    { 411, "Length Required" },
    { 412, "Precondition Failed" },
    { 413, "Content Too Large" },
    { 414, "URI Too Long" },
    { 415, "Unsupported Media Type" },
    { 417, "Expectation Failed" },
    { 421, "Misdirected Request" },
    { 422, "Unprocessable Content" },
    { 426, "Upgrade Required" },
    { 428, "Precondition Required" },
    { 429, "Too Many Requests" },
    { 431, "Request Header Fields Too Large" },
    { 500, "Internal Server Error" },
    { 501, "Not Implemented" },
    { 502, "Bad Gateway" },
    { 503, "Service Unavailable" },
    { 504, "Gateway Timeout" },
    { 505, "HTTP Version Not Supported" },
};

const char *http_reason(unsigned status)
{
    for (size_t i = 0; i < COUNT(reasons); i++) {
        if (reasons[i].status == status)
            return reasons[i].reason;
    }
    return "";
}

int http_put_request(struct buf *out, str method, str target, struct err *err)
{
    struct http_target parts;

    if (!http_method_valid(method))
        return err_set(err, ERR_FORMAT, "this is no HTTP method");
    if (target.n > HTTP_TARGET_MAX || http_target_parse(&parts, target) != HTTP_NONE)
        return err_set(err, ERR_FORMAT, "this is no HTTP request target");
    buf_add(out, method);
    buf_add_char(out, ' ');
    buf_add(out, target);
    buf_add(out, STR(" HTTP/1.1\r\n"));
    return 0;
}

int http_put_status(struct buf *out, unsigned status, str reason, struct err *err)
{
    if (status < 100 || status > 599)
        return err_set(err, ERR_FORMAT, "%u is no HTTP status", status);
    if (!reason.p)
        reason = str_from(http_reason(status));
    if (!http_value_valid(reason) ||
        reason.n > HTTP_STATUS_LINE_MAX - (sizeof("HTTP/1.1 200 ") - 1))
        return err_set(err, ERR_FORMAT, "this is no reason of an HTTP status");
    buf_add(out, STR("HTTP/1.1 "));
    buf_add_u64(out, status);
    buf_add_char(out, ' ');
    buf_add(out, reason);
    buf_add(out, STR("\r\n"));
    return 0;
}

static void put_line(struct buf *out, str name, str value)
{
    char *to = buf_room(out, name.n + value.n + 4);

    if (!to)
        return; /* the buffer says so itself */
    to = str_put(str_put(to, name), STR(": "));
    to = str_put(str_put(to, value), STR("\r\n"));
    out->n = (size_t)(to - out->p);
}

int http_put_header(struct buf *out, str name, str value, struct err *err)
{
    if (!http_token_valid(name))
        return err_set(err, ERR_FORMAT, "this is no name of an HTTP header");
    if (!http_value_valid(value))
        return err_set(err, ERR_FORMAT, "this is no value of an HTTP header");
    if (name.n > HTTP_HEADER_MAX || value.n + 2 > HTTP_HEADER_MAX - name.n)
        return err_set(err, ERR_FORMAT, "this is no value of an HTTP header");
    put_line(out, name, value);
    return 0;
}

/* It was valid when it was read, and without its blank perhaps as long as can be. */
void http_put_same(struct buf *out, const struct http_head *h, size_t i)
{
    put_line(out, http_head_name(h, i), http_head_value(h, i));
}

void http_put_end(struct buf *out)
{
    buf_add(out, STR("\r\n"));
}

void http_chunk_open(struct buf *out, size_t n)
{
    buf_printf(out, "%zx\r\n", n);
}

void http_chunk_close(struct buf *out)
{
    buf_add(out, STR("\r\n"));
}

void http_chunk_add(struct buf *out, str content)
{
    if (content.n == 0)
        return;
    http_chunk_open(out, content.n);
    buf_add(out, content);
    http_chunk_close(out);
}

void http_chunk_last(struct buf *out)
{
    buf_add(out, STR("0\r\n\r\n"));
}
