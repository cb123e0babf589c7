/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>

#include "base/str.h"
#include "base/utf8.h"
#include "tests/tap.h"

static void test_setting(void)
{
    struct err err = { 0 };

    ok(err_set(&err, ERR_LIMIT, "more than %d", 7) == -1 && err.code == ERR_LIMIT &&
           str_is(str_from(err.msg), "more than 7"),
       "code and sentence are kept");
    ok(err_wrap(&err, "pack '%s'", "p") == -1 && err.code == ERR_LIMIT &&
           str_is(str_from(err.msg), "pack 'p': more than 7"),
       "context comes in front");
    ok(err_wrap(&err, "%s", err.msg) == -1 &&
           str_is(str_from(err.msg), "pack 'p': more than 7: pack 'p': more than 7"),
       "even if it is the message itself");
}

static void test_system_calls(void)
{
    struct err err = { 0 };

    errno = ENOENT;
    ok(err_errno(&err, "open '%s'", "x") == -1 && err.code == ERR_NOTFOUND &&
           str_is(str_from(err.msg), "open 'x': No such file or directory") &&
           errno == ENOENT,
       "what is not there has a code of its own; errno stays");
    errno = EIO;
    err_errno(&err, "read");
    ok(err.code == ERR_IO && str_is(str_from(err.msg), "read: Input/output error"),
       "anything else is the system's no");
}

static void test_foreign_bytes(void)
{
    static const struct {
        const char *what, *in, *out;
    } rows[] = {
        { "escape", "a\x1b[31m", "a?[31m" },
        { "newline", "a\nb", "a?b" },
        { "DEL", "a\x7f", "a?" },
        { "a C1 control character",
          "a\xc2\x9b"
          "31m",
          "a??31m" },
        { "broken UTF-8", "a\x9b\xe2\x82", "a???" },
        { "UTF-8", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82",
          "\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct err err = { 0 };

        err_set(&err, ERR_FORMAT, "%s", rows[i].in);
        ok(str_is(str_from(err.msg), rows[i].out), "%s", rows[i].what);
        err_set(&err, ERR_FORMAT, "x");
        err_wrap(&err, "%s", rows[i].in);
        ok(str_equal(str_first(str_from(err.msg), strlen(rows[i].out)),
                     str_from(rows[i].out)),
           "%s in the context", rows[i].what);
    }
}

static void test_long_messages(void)
{
    static char text[2000];
    struct err err = { 0 };

    memset(text, 'x', sizeof(text) - 1);
    err_set(&err, ERR_IO, "%s", text);
    ok(strlen(err.msg) == sizeof(err.msg) - 1, "a message is cut to its room");
    errno = EIO;
    err_errno(&err, "%s", text);
    ok(str_ends(str_from(err.msg), STR(": Input/output error")),
       "but the system's word stays");
    err_wrap(&err, "%s", "first");
    ok(str_starts(str_from(err.msg), STR("first: x")) &&
           str_ends(str_from(err.msg), STR(": Input/output error")),
       "in a context too");
    err_wrap(&err, "%s", text);
    err_wrap(&err, "%s", text);
    ok(strlen(err.msg) < sizeof(err.msg), "contexts without end");
    memset(text, 0xc3, sizeof(text) - 1);
    for (size_t i = 1; i < sizeof(text) - 1; i += 2)
        text[i] = '\xa9';
    err_set(&err, ERR_IO, "%s", text);
    ok(utf8_valid(str_from(err.msg)), "a character cut in two is not left so");
}

int main(void)
{
    test_setting();
    test_system_calls();
    test_foreign_bytes();
    test_long_messages();
    return tap_done();
}
