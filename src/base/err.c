/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Foreign bytes in a name must not drive the terminal of whoever reads the message.
 * UTF-8 passes; control characters become '?'. */
static void make_printable(char *msg)
{
    for (unsigned char *c = (unsigned char *)msg; *c; c++) {
        if (*c < 0x20 || *c == 0x7f)
            *c = '?';
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
    char inner[sizeof(err->msg)];
    char outer[sizeof(err->msg)];
    va_list ap;

    memcpy(inner, err->msg, sizeof(inner));
    va_start(ap, fmt);
    vsnprintf(outer, sizeof(outer), fmt, ap);
    va_end(ap);
    snprintf(err->msg, sizeof(err->msg), "%.200s: %.300s", outer, inner);
    make_printable(err->msg);
    return -1;
}
