/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/sse.h"

#include "base/err.h"

static const char byte_order_mark[] = { '\xef', '\xbb', '\xbf' };

void sse_init(struct sse *s, uint64_t data_max)
{
    *s = (struct sse){ .type = { .max = SSE_TYPE_MAX },
                       .id = { .max = SSE_ID_MAX },
                       .value = { .max = SSE_ID_MAX },
                       .data_max = data_max ? data_max : SSE_DATA_MAX };
}

void sse_release(struct sse *s)
{
    buf_release(&s->type);
    buf_release(&s->id);
    buf_release(&s->value);
}

static bool is_line_end(char c)
{
    return c == '\r' || c == '\n';
}

static enum sse_token refuse(struct sse *s)
{
    s->refused = true;
    return SSE_REFUSED;
}

/* Where the value's bytes are kept, when they are not data. */
static struct buf *value_of(struct sse *s)
{
    return s->field == SSE_FIELD_TYPE ? &s->type : &s->value;
}

/* The name is complete: which field is it? */
static void begin_value(struct sse *s)
{
    static const struct {
        const char *name;
        enum sse_field field;
    } fields[] = {
        { "data", SSE_FIELD_DATA },
        { "event", SSE_FIELD_TYPE },
        { "id", SSE_FIELD_ID },
        { "retry", SSE_FIELD_RETRY },
    };

    s->field = SSE_FIELD_NONE;
    for (size_t i = 0; i < COUNT(fields) && s->name_n <= sizeof(s->name); i++) {
        if (str_is(str_of(s->name, s->name_n), fields[i].name))
            s->field = fields[i].field;
    }
    if (s->field == SSE_FIELD_DATA) {
        s->newline = s->has_data; /* lines of data are joined */
        s->has_data = true;
    } else if (s->field != SSE_FIELD_NONE) {
        buf_reset(value_of(s));
    }
}

static void end_id(struct sse *s)
{
    if (s->value.n && memchr(s->value.p, '\0', s->value.n))
        return; /* the standard: an id with a NUL is none */
    buf_reset(&s->id);
    buf_add(&s->id, buf_str(&s->value));
    s->has_id = true;
}

static void end_retry(struct sse *s)
{
    uint64_t ms = 0;

    for (size_t i = 0; i < s->value.n; i++) {
        if (s->value.p[i] < '0' || s->value.p[i] > '9')
            return;
        ms = ms * 10 + (unsigned)(s->value.p[i] - '0');
        if (ms > SSE_RETRY_MAX)
            ms = SSE_RETRY_MAX;
    }
    if (s->value.n == 0)
        return;
    s->retry = (uint32_t)ms;
    s->has_retry = true;
}

static void begin_block(struct sse *s)
{
    buf_reset(&s->type);
    s->has_data = s->has_id = s->has_retry = false;
    s->data = 0;
}

static enum sse_token end_block(struct sse *s)
{
    if (s->has_data || s->has_id || s->has_retry)
        return SSE_EVENT;
    begin_block(s);
    return SSE_MORE;
}

/* The line ends here; SSE_MORE when that says nothing. */
static enum sse_token end_line(struct sse *s)
{
    enum sse_state was = s->state;

    s->state = SSE_LINE;
    if (was == SSE_LINE)
        return end_block(s);
    if (was == SSE_IN_COMMENT)
        return SSE_COMMENT;
    if (was == SSE_IN_NAME)
        begin_value(s); /* a name without a colon has an empty value */
    if (was == SSE_IN_NOTHING)
        return SSE_MORE;
    if (s->field == SSE_FIELD_ID)
        end_id(s);
    if (s->field == SSE_FIELD_RETRY)
        end_retry(s);
    return s->id.failed ? refuse(s) : SSE_MORE;
}

static void take_name(struct sse *s, char c)
{
    if (s->state == SSE_LINE)
        s->name_n = 0;
    s->state = SSE_IN_NAME;
    if (c == ':') {
        begin_value(s);
        s->state = s->field == SSE_FIELD_NONE ? SSE_IN_NOTHING : SSE_COLON;
    } else {
        if (s->name_n < sizeof(s->name))
            s->name[s->name_n] = c;
        s->name_n++;
    }
}

/* One byte that is not part of a value and no line end. */
static void take_byte(struct sse *s, char c)
{
    if (s->state == SSE_LINE && c == ':')
        s->state = SSE_IN_COMMENT;
    else if (s->state == SSE_LINE || s->state == SSE_IN_NAME)
        take_name(s, c);
    else if (s->state == SSE_COLON)
        s->state = SSE_IN_VALUE;
}

/* Up to n bytes of data, as many as are allowed: what is handed on before the stream is
 * refused does not depend on how it was cut. */
static enum sse_token take_data(struct sse *s, size_t n, str *in, str *out)
{
    if (s->data == s->data_max)
        return refuse(s);
    if (n > s->data_max - s->data)
        n = (size_t)(s->data_max - s->data);
    *out = str_first(*in, n);
    *in = str_skip(*in, n);
    s->data += n;
    return SSE_DATA;
}

/* A run of a value's bytes, without line end. */
static enum sse_token take_value(struct sse *s, str *in, str *out)
{
    size_t n = 0;
    str run;

    while (n < in->n && !is_line_end(in->p[n]))
        n++;
    if (s->state == SSE_IN_VALUE && s->field == SSE_FIELD_DATA)
        return take_data(s, n, in, out);
    run = str_first(*in, n);
    *in = str_skip(*in, n);
    if (s->state == SSE_IN_COMMENT || s->state == SSE_IN_NOTHING)
        return SSE_MORE;
    buf_add(value_of(s), run);
    return value_of(s)->failed ? refuse(s) : SSE_MORE;
}

/* A mark at the very beginning is passed over; half a mark is the beginning of a field's
 * name, and of none that we know. */
static bool take_mark(struct sse *s, char c)
{
    if (s->started)
        return false;
    if (c == byte_order_mark[s->mark]) {
        s->mark++;
        s->started = s->mark == sizeof(byte_order_mark);
        return true;
    }
    s->started = true;
    if (s->mark) {
        s->state = SSE_IN_NAME;
        s->name_n = sizeof(s->name) + 1;
    }
    return false;
}

static bool is_in_value(const struct sse *s, char c)
{
    return s->state == SSE_IN_VALUE || s->state == SSE_IN_COMMENT ||
           s->state == SSE_IN_NOTHING || (s->state == SSE_COLON && c != ' ');
}

/* Take at least one byte. */
static enum sse_token step(struct sse *s, str *in, str *out)
{
    char c = in->p[0];
    bool again = s->after_cr && c == '\n'; /* the second half of a line end */

    s->after_cr = false;
    if (is_line_end(c) || !is_in_value(s, c))
        *in = str_skip(*in, 1);
    if (again || take_mark(s, c))
        return SSE_MORE;
    if (is_line_end(c)) {
        s->after_cr = c == '\r';
        return end_line(s);
    }
    if (!is_in_value(s, c)) {
        take_byte(s, c);
        return SSE_MORE;
    }
    s->state = s->state == SSE_COLON ? SSE_IN_VALUE : s->state;
    return take_value(s, in, out);
}

enum sse_token sse_feed(struct sse *s, str *in, str *out)
{
    enum sse_token token = SSE_MORE;

    *out = (str){ NULL, 0 };
    if (s->refused)
        return SSE_REFUSED;
    if (s->ended)
        begin_block(s);
    while (token == SSE_MORE && in->n && !s->newline)
        token = step(s, in, out);
    if (token == SSE_MORE && s->newline) {
        str newline = STR("\n");

        s->newline = false;
        token = take_data(s, 1, &newline, out);
    }
    s->ended = token == SSE_EVENT;
    return token;
}

static bool is_one_line(str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (is_line_end(s.p[i]) || s.p[i] == '\0')
            return false;
    }
    return true;
}

int sse_open(struct sse_writer *w, struct buf *out, str type, str id, struct err *err)
{
    if (!is_one_line(type) || !is_one_line(id) || type.n > SSE_TYPE_MAX ||
        id.n > SSE_ID_MAX)
        return err_set(err, ERR_FORMAT, "this is no type or id of an event");
    w->after_cr = false;
    buf_add(out, STR("event: "));
    buf_add(out, type);
    if (id.p) {
        buf_add(out, STR("\nid: "));
        buf_add(out, id);
    }
    buf_add(out, STR("\ndata: "));
    return 0;
}

void sse_add(struct sse_writer *w, struct buf *out, str piece)
{
    while (piece.n) {
        size_t n = 0;

        if (w->after_cr && piece.p[0] == '\n')
            piece = str_skip(piece, 1);
        while (n < piece.n && !is_line_end(piece.p[n]))
            n++;
        buf_add(out, str_first(piece, n));
        w->after_cr = n < piece.n && piece.p[n] == '\r';
        if (n < piece.n)
            buf_add(out, STR("\ndata: "));
        piece = str_skip(piece, n + 1);
    }
}

void sse_close(struct sse_writer *w, struct buf *out)
{
    w->after_cr = false;
    buf_add(out, STR("\n\n"));
}

void sse_put_comment(struct buf *out)
{
    buf_add(out, STR(":\n\n"));
}

void sse_put_retry(struct buf *out, uint32_t ms)
{
    buf_add(out, STR("retry: "));
    buf_add_u64(out, ms);
    buf_add(out, STR("\n\n"));
}
