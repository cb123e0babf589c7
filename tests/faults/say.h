/* SPDX-License-Identifier: Apache-2.0 */
/*
 * say - one line on stdout, past every buffer: it must be out before anything else
 * happens. With writev(2), because write(2) is what the tests make fail.
 */
#ifndef TESTS_FAULTS_SAY_H
#define TESTS_FAULTS_SAY_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/attr.h"

static void say(const char *fmt, ...) PRINTF_LIKE(1, 2);

static void say(const char *fmt, ...)
{
    char line[700];
    struct iovec part = { line, 0 };
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    part.iov_len = strlen(line);
    if (writev(STDOUT_FILENO, &part, 1) < 0)
        exit(4);
}

#endif
