/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges as tests/data/make_addresses.py says with Python's ipaddress; spellings by hand,
 * as inet_aton(3) and the URL standard of the browsers have them. */
#include "policy/address.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "tests/tap.h"

static bool parse(struct address *a, const char *text)
{
    uint8_t bytes[16];

    if (inet_pton(AF_INET, text, bytes) == 1)
        *a = address_v4(bytes);
    else if (inet_pton(AF_INET6, text, bytes) == 1)
        *a = address_v6(bytes);
    else
        return false;
    return true;
}

static bool line_holds(str line)
{
    const char *tab = memchr(line.p, '\t', line.n), *what = NULL;
    char text[64] = "";
    bool public;
    struct address a;

    if (!tab || (size_t)(tab - line.p) >= sizeof(text))
        return false;
    memcpy(text, line.p, (size_t)(tab - line.p));
    public = str_ends(line, STR("\tpublic"));
    return parse(&a, text) && (address_private(&a) == NULL) == public &&
           address_read(str_from(text), &what) ==
               (public ? ADDRESS_PUBLIC : ADDRESS_PRIVATE);
}

static void test_ranges(void)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct err err = { 0 };
    str rest, line;
    size_t count = 0;

    if (file_read("tests/data/addresses.tsv", &text, &err) < 0) {
        ok(false, "%s", err.msg);
        return;
    }
    for (rest = buf_str(&text); str_line(&rest, &line); count++) {
        if (!line_holds(line))
            ok(false, STR_FMT, STR_ARG(line));
    }
    ok(count > 1000, "%zu addresses are what Python says", count);
}

static const struct {
    const char *text;
    enum address_spelling want;
} spellings[] = {
    { "127.0.0.1", ADDRESS_PRIVATE },
    { "127.0.0.1.", ADDRESS_PRIVATE },
    { "127.0.0.1...", ADDRESS_PRIVATE },
    { "127.1", ADDRESS_PRIVATE },
    { "127.0.1", ADDRESS_PRIVATE },
    { "2130706433", ADDRESS_PRIVATE },
    { "0x7f000001", ADDRESS_PRIVATE },
    { "0x7f.1", ADDRESS_PRIVATE },
    { "0X7F.0x0.1", ADDRESS_PRIVATE },
    { "0177.0.0.01", ADDRESS_PRIVATE },
    { "017700000001", ADDRESS_PRIVATE },
    { "0000000000000000000177.0.0.1", ADDRESS_PRIVATE },
    { "010.0.0.1", ADDRESS_PRIVATE }, /* 8.0.0.1, or 10.0.0.1 */
    { "0x", ADDRESS_PRIVATE },        /* 0 to browsers */
    { "0", ADDRESS_PRIVATE },
    { "134744072", ADDRESS_PUBLIC }, /* 8.8.8.8 */
    { "8.8.8.8", ADDRESS_PUBLIC },
    { "8.8.2056", ADDRESS_PUBLIC },
    { "8.526344", ADDRESS_PUBLIC },
    { "08.8.8.8", ADDRESS_PUBLIC },
    { "4294967295", ADDRESS_PRIVATE },
    { "4294967296", ADDRESS_BROKEN },
    { "256.0.0.1", ADDRESS_BROKEN },
    { "8.8.8.256", ADDRESS_BROKEN },
    { "8.8.65536", ADDRESS_BROKEN },
    { "8.8.65535", ADDRESS_PUBLIC },
    { "8.16777216", ADDRESS_BROKEN },
    { "1.2.3.4.5", ADDRESS_BROKEN },
    { "1..2", ADDRESS_BROKEN },
    { ".1", ADDRESS_BROKEN },
    { "example.1", ADDRESS_BROKEN },
    { "example.0x1f", ADDRESS_BROKEN },
    { "99999999999999999999999999", ADDRESS_BROKEN },
    { "example.com", ADDRESS_NONE },
    { "1.2.3.4.com", ADDRESS_NONE },
    { "0xg", ADDRESS_NONE },
    { "127.0.0.1a", ADDRESS_NONE },
    { "-1", ADDRESS_NONE },
    { "", ADDRESS_NONE },
    { ".", ADDRESS_NONE },
    { "[::1]", ADDRESS_PRIVATE },
    { "[::1].", ADDRESS_PRIVATE },
    { "[::ffff:7f00:1]", ADDRESS_PRIVATE },
    { "[0:0::FFFF:127.0.0.1]", ADDRESS_PRIVATE },
    { "[fe80::1%eth0]", ADDRESS_PRIVATE },
    { "[2606:4700::1111]", ADDRESS_PUBLIC },
    { "[2606:4700::1111%1]", ADDRESS_PUBLIC },
    { "[127.0.0.1]", ADDRESS_BROKEN },
    { "[::1", ADDRESS_BROKEN },
    { "[]", ADDRESS_BROKEN },
    { "[1::2::3]", ADDRESS_BROKEN },
    { "[::00000000000000000000000000000000000000000000000000000000000001]",
      ADDRESS_BROKEN },
    { "::1", ADDRESS_PRIVATE },
    { "::", ADDRESS_PRIVATE },
    { "a:b", ADDRESS_NONE },
};

static void test_length(void)
{
    char text[ADDRESS_TEXT_MAX + 1];
    const char *what = NULL;

    memset(text, '0', sizeof(text));
    ok(address_read(str_of(text, ADDRESS_TEXT_MAX), &what) == ADDRESS_PRIVATE,
       "zeros of %d bytes are zero", ADDRESS_TEXT_MAX);
    ok(address_read(str_of(text, ADDRESS_TEXT_MAX + 1), &what) == ADDRESS_NONE,
       "one more is no address");
}

int main(void)
{
    test_ranges();
    for (size_t i = 0; i < COUNT(spellings); i++) {
        const char *what = NULL;
        enum address_spelling got = address_read(str_from(spellings[i].text), &what);

        ok(got == spellings[i].want && (got == ADDRESS_PRIVATE) == (what != NULL),
           "'%s' (%d)", spellings[i].text, (int)got);
    }
    test_length();
    return tap_done();
}
