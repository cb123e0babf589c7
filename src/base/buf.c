/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/codec.h"
#include "base/err.h"

static size_t maximum(const struct buf *b)
{
    size_t max = b->max ? b->max : BUF_MAX_DEFAULT;

    return max < BUF_MAX ? max : BUF_MAX;
}

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){ .max = max };
}

void buf_release(struct buf *b)
{
    free(b->p);
    *b = (struct buf){ .max = b->max };
}

void buf_reset(struct buf *b)
{
    b->n = 0;
    b->failed = false;
}

static bool grow(struct buf *b, size_t need)
{
    size_t cap = b->cap ? b->cap : 64;
    char *p;

    while (cap < need)
        cap *= 2;
    if (cap > maximum(b) + 1)
        cap = maximum(b) + 1; /* one more for the NUL of buf_cstr() */
    p = realloc(b->p, cap);
    if (!p)
        return false;
    b->p = p;
    b->cap = (uint32_t)cap;
    return true;
}

char *buf_make_room(struct buf *b, size_t n)
{
    if (b->failed)
        return NULL;
    if (n > maximum(b) - b->n || (b->n + n >= b->cap && !grow(b, b->n + n + 1))) {
        b->failed = true;
        return NULL;
    }
    return b->p + b->n;
}

void buf_add_u64(struct buf *b, uint64_t value)
{
    char digits[U64_DIGITS];
    size_t n = u64_format(digits, value);
    char *to = buf_room(b, n);

    if (!to)
        return;
    memcpy(to, digits, n);
    b->n += n;
}

void buf_add_i64(struct buf *b, int64_t value)
{
    if (value < 0)
        buf_add_char(b, '-');
    buf_add_u64(b, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    int n;
    char *to;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    to = buf_room(b, (size_t)n);
    if (!to)
        return;
    va_start(ap, fmt);
    vsnprintf(to, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->n += (size_t)n;
}

const char *buf_cstr(struct buf *b)
{
    if (b->failed || !buf_room(b, 0))
        return "";
    b->p[b->n] = '\0';
    return b->p;
}

static void write_to_buf(void *ctx, str bytes)
{
    buf_add(ctx, bytes);
}

struct sink buf_sink(struct buf *b)
{
    return (struct sink){ write_to_buf, b };
}

int buf_check(const struct buf *b, const char *what, struct err *err)
{
    if (!b->failed)
        return 0;
    return err_set(err, ERR_LIMIT, "%s is larger than %zu bytes", what, maximum(b));
}
