/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host that is refused stays refused when it is spelled otherwise: in capitals, with a
 * dot at the end, percent-encoded, with a user before it, in the middle of a sentence.
 * Names that are asked for are host names, and are asked for again.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "policy/address.h"
#include "policy/host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct arena arena;

static void must(bool condition)
{
    if (!condition)
        abort();
}

static const char *look(struct host_look *l, str text, bool is_host)
{
    *l = (struct host_look){ .arena = &arena };
    return host_refuse(l, text, is_host);
}

/* Letters, digits, dots; not only dots, which in a sentence are none of the host's. */
static bool is_plain(str host)
{
    bool only_dots = true;

    for (size_t i = 0; i < host.n; i++) {
        char c = host.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-'))
            return false;
        only_dots = only_dots && c == '.';
    }
    return !only_dots;
}

static void add_percent(struct buf *b, str host)
{
    for (size_t i = 0; i < host.n; i++)
        buf_printf(b, "%%%02x", (unsigned char)host.p[i]);
}

/* A plain host that is refused; `b` is working memory. */
static void respell(str host, struct buf *b)
{
    static const char *const before[] = {
        "http://",  "HTTPS://",     "x+y://",
        "http:///", "http://user@", "http://good.example@",
        "",         "//",           "http:/",
        "http:\\\\"
    };
    struct host_look l;

    for (size_t i = 0; i < COUNT(before); i++) {
        for (int form = 0; form < 4; form++) {
            buf_reset(b);
            buf_add(b, str_from(before[i]));
            if (form == 1)
                add_percent(b, host);
            for (size_t k = 0; form != 1 && k < host.n; k++)
                buf_add_char(b, form == 2 && host.p[k] >= 'a' ? (char)(host.p[k] - 32)
                                                              : host.p[k]);
            buf_add(b, form == 3 ? STR(".") : STR(":80/x"));
            must(look(&l, buf_str(b), true) != NULL);
        }
    }
    buf_reset(b);
    buf_add(b, STR("go to http://"));
    buf_add(b, host);
    buf_add(b, STR("/ now"));
    must(look(&l, buf_str(b), false) != NULL);
}

static void check_names(const struct host_look *l)
{
    must(l->name_count <= HOST_NAMES_MAX);
    for (size_t i = 0; i < l->name_count; i++) {
        struct host_look again;
        const char *what = NULL;

        must(l->names[i].n > 0 && l->names[i].n <= HOST_NAME_MAX);
        must(address_read(l->names[i], &what) == ADDRESS_NONE);
        must(look(&again, l->names[i], true) == NULL && again.name_count == 1 &&
             str_equal(again.names[0], l->names[i]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(buf_release) struct buf b = { 0 };
    str text = str_of(data, size);
    struct host_look l;

    arena_reset(&arena);
    arena.limit = (size_t)1 << 24;
    if (size > 4096)
        return 0;
    if (!look(&l, text, false))
        check_names(&l);
    if (!look(&l, text, true))
        check_names(&l);
    else if (is_plain(text) && text.n < 200)
        respell(text, &b);
    return 0;
}
