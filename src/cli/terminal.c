/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool terminal_is_live(int fd)
{
    const char *term = getenv("TERM");

    return isatty(fd) && term && *term && strcmp(term, "dumb") != 0;
}

const char *paint(FILE *to, enum paint colour)
{
    static const char *const sequences[] = {
        [PAINT_END] = "\033[0m",    [PAINT_BOLD] = "\033[1m",    [PAINT_RED] = "\033[31m",
        [PAINT_GREEN] = "\033[32m", [PAINT_YELLOW] = "\033[33m",
    };
    const char *no = getenv("NO_COLOR");

    if ((no && *no) || !terminal_is_live(fileno(to)))
        return "";
    return sequences[colour];
}
