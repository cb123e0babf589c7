/* SPDX-License-Identifier: Apache-2.0 */
/*
 * terminal - colour on a terminal, and nowhere else.
 *
 * paint() gives an escape sequence, or "" when `to` is not a terminal, when NO_COLOR is
 * set and not empty, or when TERM is dumb:
 *
 *     printf("%sPASS%s\n", paint(stdout, PAINT_GREEN), paint(stdout, PAINT_END));
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

enum paint {
    PAINT_END,
    PAINT_BOLD,
    PAINT_RED,
    PAINT_GREEN,
    PAINT_YELLOW,
};

const char *paint(FILE *to, enum paint colour);

/* A terminal that understands cursor control: not a pipe, a file or TERM=dumb. */
bool terminal_is_live(int fd);

#endif
