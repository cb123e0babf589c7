/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/schema.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/clock.h"
#include "evidence/finding.h"

#define PLACE_MAX 400
#define TEXT_MAX  ((size_t)8 << 20) /* a string of a manifest, which has 8 MiB itself */

struct check {
    const struct json *j;
    const struct schema_faults *faults;
    char place[PLACE_MAX]; /* grows and shrinks as we walk */
    size_t n;
};

static void fault(struct check *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void fault(struct check *c, const char *fmt, ...)
{
    char what[QUOTED_MAX + 400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    c->faults->add(c->faults->ctx, c->place, what);
}

/* Step into a member; returns the length to go back to. */
static size_t enter(struct check *c, const char *name)
{
    size_t back = c->n;
    int n = snprintf(c->place + c->n, sizeof(c->place) - c->n, "/%s", name);

    c->n += n < 0 ? 0 : (size_t)n;
    if (c->n >= sizeof(c->place))
        c->n = sizeof(c->place) - 1;
    return back;
}

static void leave(struct check *c, size_t back)
{
    c->n = back;
    c->place[back] = '\0';
}

static const char *kind_name(enum json_kind kind)
{
    static const char *const names[] = {
        [JSON_NULL] = "null",     [JSON_FALSE] = "false",   [JSON_TRUE] = "true",
        [JSON_NUMBER] = "number", [JSON_STRING] = "string", [JSON_ARRAY] = "array",
        [JSON_OBJECT] = "object",
    };

    return names[kind];
}

static bool all_of(str s, bool (*good)(char c))
{
    for (size_t i = 0; i < s.n; i++) {
        if (!good(s.p[i]))
            return false;
    }
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f');
}

static bool is_version(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '-';
}

static bool is_release(str s)
{
    unsigned dots = 0, digits = 0;

    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '.' && digits) {
            dots++;
            digits = 0;
        } else if (is_digit(s.p[i])) {
            digits++;
        } else {
            return false;
        }
    }
    return dots == 2 && digits;
}

static bool is_one_of(str s, const char *const *values)
{
    for (; *values; values++) {
        if (str_is(s, *values))
            return true;
    }
    return false;
}

/* What a string of this kind must be, or NULL when it is. */
static const char *text_fault(const struct rule *r, str s)
{
    int64_t ms;

    switch (r->kind) {
    case RULE_NAME:
    case RULE_NAMES:
        return s.n ? NULL : "a string that is not empty";
    case RULE_VERSION:
        return s.n && all_of(s, is_version)
                   ? NULL
                   : "a version of letters, digits, '.', '_', '-'";
    case RULE_RELEASE:
        return is_release(s) ? NULL : "a version like 0.1.0";
    case RULE_HEX40:
        return s.n == 40 && all_of(s, is_hex) ? NULL : "40 lower-case hex digits";
    case RULE_HEX64:
        return s.n == 64 && all_of(s, is_hex) ? NULL : "64 lower-case hex digits";
    case RULE_TIME:
        return clock_parse(&ms, s) && !str_starts(s, STR("0000"))
                   ? NULL
                   : "a time like 2026-03-15T11:30:00Z";
    case RULE_ENUM:
        return is_one_of(s, r->values) ? NULL : "";
    case RULE_TEXT:
    case RULE_COUNT:
    case RULE_POSITIVE:
    case RULE_OBJECT:
    case RULE_OBJECTS:
        break;
    }
    return NULL;
}

static void wrong_value(struct check *c, const struct rule *r, const char *want, str got)
{
    char list[300] = "one of";
    size_t n = strlen(list);

    if (r->kind == RULE_ENUM) {
        for (const char *const *v = r->values; *v && n < sizeof(list); v++)
            n += (size_t)snprintf(list + n, sizeof(list) - n, "%s '%s'",
                                  v == r->values ? "" : ",", *v);
        want = list;
    }
    fault(c, "expected %s, found '%s'", want, quoted(got).text);
}

static void check_text(struct check *c, const struct rule *r, uint32_t node)
{
    CLEANUP(buf_release) struct buf text = { .max = TEXT_MAX };
    const char *want;

    if (!json_is(c->j, node, JSON_STRING)) {
        fault(c, "expected a string, found %s", kind_name(json_kind_of(c->j, node)));
        return;
    }
    json_unescape(c->j, node, &text);
    if (text.failed) {
        fault(c, "the string is too long");
        return;
    }
    want = text_fault(r, buf_str(&text));
    if (want)
        wrong_value(c, r, want, buf_str(&text));
}

static void check_integer(struct check *c, const struct rule *r, uint32_t node)
{
    int64_t value, least = r->kind == RULE_POSITIVE;

    if (!json_is(c->j, node, JSON_NUMBER))
        fault(c, "expected an integer, found %s", kind_name(json_kind_of(c->j, node)));
    else if (!json_int(c->j, node, &value))
        fault(c, "expected an integer within 2^53 and without fraction, found %s",
              quoted(json_raw(c->j, node)).text);
    else if (value < least)
        fault(c, "expected %d or more, found %lld", (int)least, (long long)value);
}

static void check_object(struct check *c, const struct shape *shape, uint32_t node);

static void check_array(struct check *c, const struct rule *r, uint32_t node)
{
    unsigned index = 0;

    if (!json_is(c->j, node, JSON_ARRAY)) {
        fault(c, "expected an array, found %s", kind_name(json_kind_of(c->j, node)));
        return;
    }
    if (json_count(c->j, node) < r->least)
        fault(c, "expected at least %u entries, found %u", r->least,
              json_count(c->j, node));
    json_each (c->j, node, at) {
        char name[16];
        size_t back;

        snprintf(name, sizeof(name), "%u", index++);
        back = enter(c, name);
        if (r->kind == RULE_OBJECTS)
            check_object(c, r->shape, at);
        else
            check_text(c, r, at);
        leave(c, back);
    }
}

static void check_value(struct check *c, const struct rule *r, uint32_t node)
{
    if (r->nullable && json_is(c->j, node, JSON_NULL))
        return;
    switch (r->kind) {
    case RULE_COUNT:
    case RULE_POSITIVE:
        check_integer(c, r, node);
        break;
    case RULE_OBJECT:
        check_object(c, r->shape, node);
        break;
    case RULE_OBJECTS:
    case RULE_NAMES:
        check_array(c, r, node);
        break;
    case RULE_TEXT:
    case RULE_NAME:
    case RULE_VERSION:
    case RULE_RELEASE:
    case RULE_HEX40:
    case RULE_HEX64:
    case RULE_TIME:
    case RULE_ENUM:
        check_text(c, r, node);
        break;
    }
}

static bool is_known(const struct check *c, const struct shape *shape, uint32_t name)
{
    for (size_t i = 0; i < shape->count; i++) {
        if (json_string_is(c->j, name, str_from(shape->rules[i].name)))
            return true;
    }
    return false;
}

static void check_object(struct check *c, const struct shape *shape, uint32_t node)
{
    if (!json_is(c->j, node, JSON_OBJECT)) {
        fault(c, "expected an object, found %s", kind_name(json_kind_of(c->j, node)));
        return;
    }
    for (size_t i = 0; i < shape->count; i++) {
        const struct rule *r = &shape->rules[i];
        uint32_t value = json_member(c->j, node, str_from(r->name));
        size_t back = enter(c, r->name);

        if (value != JSON_NONE)
            check_value(c, r, value);
        else if (!r->optional)
            fault(c, "%s lacks the required member '%s'", shape->what, r->name);
        leave(c, back);
    }
    json_each (c->j, node, name) {
        if (!is_known(c, shape, name))
            fault(c, "%s may not have a member %s", shape->what,
                  quoted(json_raw(c->j, name)).text);
    }
}

void schema_check(const struct json *j, uint32_t node, const struct shape *shape,
                  const struct schema_faults *faults)
{
    struct check c = { .j = j, .faults = faults };

    check_object(&c, shape, node);
}
