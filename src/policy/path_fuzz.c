/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path that is refused stays refused when it is spelled otherwise; one that is allowed
 * leads, by the kernel's own realpath(3), below the directory of the pattern. The first
 * byte chooses whether it is relative.
 */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "policy/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROOT "/usr/share"

static struct path_rule rule;
static const struct path_rules rules = { &rule, 1 };

static void must(bool condition)
{
    if (!condition)
        abort();
}

static bool is_plain(str s)
{
    return s.n && !memchr(s.p, '%', s.n) && !memchr(s.p, '\\', s.n) &&
           !memchr(s.p, '\0', s.n) && !path_is_uri(s);
}

static void respell(str path, str cwd, struct buf *b)
{
    /* percent-encoded, every byte */
    buf_reset(b);
    for (size_t i = 0; i < path.n; i++)
        buf_printf(b, "%%%02X", (unsigned char)path.p[i]);
    must(path_refuse(&rules, buf_str(b), cwd));
    /* with doubled slashes and dots */
    buf_reset(b);
    for (size_t i = 0; i < path.n; i++) {
        buf_add_char(b, path.p[i]);
        if (path.p[i] == '/')
            buf_add(b, STR("/.//"));
    }
    must(path_refuse(&rules, buf_str(b), cwd));
    /* as a URI */
    if (path.p[0] == '/') {
        buf_reset(b);
        buf_add(b, STR("FILE://"));
        buf_add(b, path);
        must(path_refuse(&rules, buf_str(b), cwd));
    }
}

static void check_allowed(str path, str cwd, struct buf *b)
{
    char real[PATH_MAX];

    buf_reset(b);
    if (path.p[0] != '/') {
        buf_add(b, cwd);
        buf_add_char(b, '/');
    }
    buf_add(b, path);
    if (!realpath(buf_cstr(b), real))
        return;
    must(strncmp(real, ROOT "/", strlen(ROOT) + 1) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(buf_release) struct buf b = { 0 };
    str path, cwd;

    if (!rule.tail.n)
        must(path_rule_read(&rule, STR(ROOT "/*")) == NULL);
    if (size < 2 || size > 1000)
        return 0;
    cwd = data[0] & 1 ? STR(ROOT) : STR("");
    path = str_of(data + 1, size - 1);
    if (path_refuse(&rules, path, cwd)) {
        if (is_plain(path))
            respell(path, cwd, &b);
    } else if (is_plain(path)) {
        check_allowed(path, cwd, &b);
    }
    return 0;
}
