/* SPDX-License-Identifier: Apache-2.0 */
#include "base/diag.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "base/utf8.h"

static bool is_dangerous(uint32_t c)
{
    /* C0, DEL and C1 drive terminals; bidi and line separators reorder what is read. */
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

static void escape_byte(struct buf *b, unsigned char c)
{
    if (c == '\n')
        buf_add(b, STR("\\n"));
    else if (c == '\t')
        buf_add(b, STR("\\t"));
    else
        buf_printf(b, "\\x%02x", c);
}

void diag_escape(struct buf *b, str bytes)
{
    while (bytes.n) {
        uint32_t c;
        size_t n = utf8_next(bytes, &c);

        if (n == 1 && c == '\\') {
            buf_add(b, STR("\\\\"));
        } else if (n == 0 || is_dangerous(c)) {
            n = n ? n : 1;
            for (size_t i = 0; i < n; i++)
                escape_byte(b, (unsigned char)bytes.p[i]);
        } else {
            buf_add(b, str_first(bytes, n));
        }
        bytes = str_skip(bytes, n);
    }
}

void diag_say(const char *fmt, ...)
{
    CLEANUP(buf_release) struct buf line = { .max = 4 * 4096 + 16 }; /* all escaped */
    va_list ap;
    char raw[4096];
    ssize_t ignored;

    va_start(ap, fmt);
    vsnprintf(raw, sizeof(raw), fmt, ap);
    va_end(ap);
    buf_add(&line, STR("assay: "));
    diag_escape(&line, str_from(raw));
    buf_add_char(&line, '\n');
    ignored = write(STDERR_FILENO, line.p, line.n);
    (void)ignored; /* there is nobody left to tell */
}
