/* SPDX-License-Identifier: Apache-2.0 */
/* A line that parses is within its limit and in canonical form: writing it again gives
 * the same bytes. Foreign text of any bytes composes into a line that parses. */
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
#include "evidence/event.h"
#include "json/jcs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_line(str line)
{
    CLEANUP(json_release) struct json json = { 0 };
    CLEANUP(buf_release) struct buf again = { 0 };
    struct sink sink = buf_sink(&again);
    struct event_view v;
    struct err err;
    int64_t seq;

    if (event_parse(&v, &json, line, &err) < 0)
        return;
    must(line.n <= EVENT_LINE_MAX && v.type < EVENT_TYPE_COUNT);
    must(event_int(&v, "seq", &seq) && (uint64_t)seq == v.seq);
    must(str_is(event_text(&v, "type"), event_type_name(v.type)));
    must(jcs_write(&json, JSON_ROOT, JCS_RFC8785, &sink, &err) == 0);
    must(str_equal(buf_str(&again), line));
}

static void check_foreign(str bytes)
{
    CLEANUP(event_release) struct event e = { 0 };
    CLEANUP(json_release) struct json json = { 0 };
    CLEANUP(buf_release) struct buf line = { 0 };
    const struct event_place place = { .writer = STR("w_0123456789abcdef") };
    struct event_view v;
    struct err err;

    event_init(&e, EVENT_HEARTBEAT);
    event_add_foreign(&e, "tool", "tool_sha256", bytes);
    must(event_compose(&line, &e, &place, &err) == 0);
    must(event_parse(&v, &json, buf_str(&line), &err) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    str bytes = str_of(data, size);

    check_line(bytes);
    check_foreign(bytes);
    return 0;
}
