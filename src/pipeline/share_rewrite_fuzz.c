/* SPDX-License-Identifier: Apache-2.0 */
/* There and back again gives the same bytes; on the way nothing is left for a server to
 * take for another's id, and everything else stays where it was. */
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
#include "pipeline/share_rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static const enum rewrite_part parts[] = { REWRITE_ID,        REWRITE_TOKEN,
                                           REWRITE_CANCELLED, REWRITE_NOTICE,
                                           REWRITE_CLOSING,   REWRITE_PROGRESS };
static const str ours = { "4711", 4 };

static size_t replace(str text, enum rewrite_part part, bool loosely, str by,
                      struct buf *out)
{
    struct splice s = { 0 };
    struct json j = { 0 };
    struct err err;
    size_t places;
    str changed;

    must(rewrite_parse(&j, text, &err) == 0);
    splice_begin(&s, text);
    rewrite_replace(&s, &j, JSON_ROOT, part, loosely, by);
    must(splice_end(&s, &changed, &err) == 0);
    buf_add(out, changed);
    must(!out->failed);
    places = s.count;
    splice_release(&s);
    json_release(&j);
    return places;
}

/* From two places that differ there is no way back: the last one stands in both. */
static void check_part(str text, const struct json *j, enum rewrite_part part,
                       bool loosely)
{
    CLEANUP(buf_release) struct buf there = { .max = SPLICE_MAX };
    CLEANUP(buf_release) struct buf back = { .max = SPLICE_MAX };
    CLEANUP(buf_release) struct buf alike = { .max = SPLICE_MAX };
    CLEANUP(buf_release) struct buf scratch = { .max = SPLICE_MAX };
    uint32_t last = rewrite_find(j, JSON_ROOT, part, loosely);
    size_t places = replace(text, part, loosely, ours, &there);
    struct json k = { 0 };
    struct err err;
    str id;

    must((places == 0) == (last == JSON_NONE));
    if (places == 0) {
        must(str_equal(buf_str(&there), text));
        return;
    }
    id = json_raw(j, last);
    must(rewrite_parse(&k, buf_str(&there), &err) == 0 && k.count == j->count);
    must(rewrite_number(&k, rewrite_find(&k, JSON_ROOT, part, loosely), &scratch) ==
         4711);
    for (uint32_t i = 0; i < k.count; i++) {
        bool same = str_equal(json_raw(&k, i), json_raw(j, i));

        must(same || str_equal(json_raw(&k, i), ours) || k.nodes[i].next > i + 1);
    }
    must(replace(buf_str(&there), part, loosely, id, &back) == places);
    must(replace(text, part, loosely, id, &alike) == places);
    must(str_equal(buf_str(&back), buf_str(&alike)));
    must(places > 1 || str_equal(buf_str(&back), text));
    json_release(&k);
}

static void check_line(str text)
{
    CLEANUP(buf_release) struct buf line = { .max = SPLICE_MAX };
    struct json j = { 0 }, k = { 0 };
    struct err err;

    buf_add(&line, text);
    rewrite_make_line(&line);
    must(memchr(line.p, '\n', line.n) == line.p + line.n - 1);
    must(rewrite_parse(&j, text, &err) == 0 &&
         rewrite_parse(&k, buf_str(&line), &err) == 0 && j.count == k.count);
    for (uint32_t i = 0; i < j.count; i++) {
        if (j.nodes[i].next == i + 1 && !(j.nodes[i].flags & JSON_OPAQUE) &&
            j.nodes[i].kind < JSON_ARRAY)
            must(str_equal(json_raw(&j, i), json_raw(&k, i)));
    }
    json_release(&j);
    json_release(&k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    str text = str_of(data, size);
    CLEANUP(json_release) struct json j = { 0 };
    struct err err;

    if (rewrite_parse(&j, text, &err) < 0)
        return 0;
    for (size_t i = 0; i < COUNT(parts); i++) {
        check_part(text, &j, parts[i], true);
        check_part(text, &j, parts[i], false);
    }
    rewrite_is_method(&j, JSON_ROOT, STR("notifications/cancelled"));
    check_line(text);
    return 0;
}
