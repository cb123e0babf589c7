/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever parses and is not tainted has one canonical form, which is its own canonical
 * form; and the quick ways to canonical numbers and to an answer are the long ways.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "json/jcs.h"
#include "json/json.h"
#include "json/number.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void check_number(str raw)
{
    char quick[NUMBER_TEXT_MAX], slow[NUMBER_TEXT_MAX];
    double value;
    size_t n = number_canonical(quick, raw, false);

    if (!number_parse(&value, raw)) {
        must(n == 0);
        return;
    }
    must(number_format(slow, value, false) == n && memcmp(quick, slow, n) == 0);
}

static int canonical(const struct json *j, struct buf *out)
{
    struct sink sink = buf_sink(out);
    struct err err = { 0 };
    int result = jcs_write(j, JSON_ROOT, JCS_RFC8785, &sink, &err);

    must(result == 0 || err.msg[0]);
    return result;
}

static void check_text(const struct json *j)
{
    CLEANUP(buf_release) struct buf first = { .max = (size_t)1 << 30 };
    CLEANUP(buf_release) struct buf second = { .max = (size_t)1 << 30 };
    CLEANUP(json_release) struct json again = { 0 };
    bool tainted = j->nodes[JSON_ROOT].flags & JSON_TAINTED;
    struct err err = { 0 };

    if (canonical(j, &first) < 0)
        return;
    must(!tainted);
    must(jcs_is_canonical(j) == str_equal(buf_str(&first), j->text));
    must(json_parse(&again, buf_str(&first), NULL, &err) == 0);
    must(again.count == j->count);
    must(canonical(&again, &second) == 0);
    must(str_equal(buf_str(&first), buf_str(&second)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(json_release) struct json j = { 0 };
    CLEANUP(buf_release) struct buf text = { .max = (size_t)1 << 30 };
    struct err err = { 0 };

    if (json_parse(&j, str_of(data, size), NULL, &err) < 0) {
        must(err.code != ERR_NONE && j.count == 0);
        return 0;
    }
    for (uint32_t i = 0; i < j.count; i++) {
        if (json_is(&j, i, JSON_NUMBER))
            check_number(json_raw(&j, i));
        if (json_is(&j, i, JSON_STRING))
            json_unescape(&j, i, &text);
    }
    check_text(&j);
    return 0;
}
