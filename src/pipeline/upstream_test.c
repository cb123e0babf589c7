/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/upstream.h"

#include "tests/tap.h"

/* From the table of MCP 2026-07-28; the base64 is Python's. */
static const struct {
    const char *name, *header;
} names[] = {
    { "get_weather", "get_weather" },
    { "", "" },
    { "file:///a b", "file:///a b" },
    { "tab\tinside", "tab\tinside" },
    { " leading", "=?base64?IGxlYWRpbmc=?=" },
    { "trailing\t", "=?base64?dHJhaWxpbmcJ?=" },
    { "größe", "=?base64?Z3LDtsOfZQ==?=" },
    { "a\r\nX: y", "=?base64?YQ0KWDogeQ==?=" },
    { "=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?=" },
    { "=?BASE64?eA==?=", "=?BASE64?eA==?=" },
    { "\x7f", "=?base64?fw==?=" },
};

int main(void)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        CLEANUP(buf_release) struct buf b = { 0 };

        upstream_add_name(&b, str_from(names[i].name));
        ok(str_is(buf_str(&b), names[i].header), "name %zu as a header", i);
    }
    return tap_done();
}
