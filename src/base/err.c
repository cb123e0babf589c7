/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define WRAP_MAX 200 /* bytes of context; the cause keeps the rest */

/* Foreign bytes in a name must not drive the terminal of whoever reads the message.
 * UTF-8 passes; control characters and bytes that are not UTF-8 become '?'. */
static void make_printable(char *msg)
{
    str rest = str_from(msg);

    while (rest.n) {
        uint32_t c;
        size_t n = utf8_next(rest, &c);
        bool bad = n == 0 || c < 0x20 || (c >= 0x7f && c <= 0x9f);

        n = n ? n : 1;
        if (bad)
            memset(msg, '?', n);
        msg += n;
        rest = str_skip(rest, n);
    }
}

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
    va_list ap;

    err->code = code;
    va_start(ap, fmt);
    vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    make_printable(err->msg);
    return -1;
}

int err_errno(struct err *err, const char *fmt, ...)
{
    int number = errno;
    char what[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    err_set(err, number == ENOENT ? ERR_NOTFOUND : ERR_IO, "%s: %s", what,
            strerror(number));
    errno = number;
    return -1;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
    char context[WRAP_MAX + sizeof(": ")];
    size_t n, cause;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(context, WRAP_MAX + 1, fmt, ap);
    va_end(ap);
    n = strlen(context);
    memcpy(context + n, ": ", 2);
    n += 2;
    cause = strnlen(err->msg, sizeof(err->msg) - 1 - n);
    memmove(err->msg + n, err->msg, cause);
    memcpy(err->msg, context, n);
    err->msg[n + cause] = '\0';
    make_printable(err->msg);
    return -1;
}
