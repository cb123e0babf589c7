/* SPDX-License-Identifier: Apache-2.0 */
/* tap - our whole test framework: one binary per *_test.c, TAP on stdout. */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/attr.h"

/* At -O3 gcc takes a test for NULL in an inline function for a promise of NULL. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wformat-overflow"
#endif

static int tap_count, tap_failures;

#define ok(condition, ...) tap_ok((condition), __FILE__, __LINE__, __VA_ARGS__)

__attribute__((format(printf, 4, 5))) static bool tap_ok(bool pass, const char *file,
                                                         int line, const char *fmt, ...)
{
    char name[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(name, sizeof(name), fmt, ap);
    va_end(ap);
    for (char *p = name; *p; p++) {
        if (*p == '\n' || *p == '\r')
            *p = ' '; /* a name is one line */
    }
    printf("%sok %d - %s\n", pass ? "" : "not ", ++tap_count, name);
    if (!pass)
        printf("# at %s:%d\n", file, line);
    tap_failures += !pass;
    fflush(stdout);
    return pass;
}

/* A row that cannot be shown here, and why. */
__attribute__((unused)) static void tap_skip(const char *what, const char *why)
{
    printf("ok %d - %s # SKIP %s\n", ++tap_count, what, why);
}

static int tap_done(void)
{
    printf("1..%d\n", tap_count);
    return tap_failures != 0;
}

#endif
