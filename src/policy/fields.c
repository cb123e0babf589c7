/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/fields.h"

#include <stdarg.h>
#include <stdio.h>

#include "policy/glob.h"

#define SHOWN 48 /* bytes of a foreign key or text in a message */

static int shown(str s)
{
    return (int)(s.n < SHOWN ? s.n : SHOWN);
}

int fields_refuse(struct loading *l, unsigned line, const char *fmt, ...)
{
    char sentence[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    return err_set(l->err, ERR_FORMAT, "%s:%u: %s", l->name, line, sentence);
}

int fields_expected(struct loading *l, const struct yaml *value, const char *expected)
{
    const char *colon = value->key.n ? ": " : "";

    if (value->kind != YAML_TEXT || yaml_is_null(value))
        return fields_refuse(l, value->line, "%.*s%sexpected %s, found %s",
                             shown(value->key), value->key.p ? value->key.p : "", colon,
                             expected, yaml_kind_name(value));
    return fields_refuse(l, value->line, "%.*s%sexpected %s, found '%.*s'",
                         shown(value->key), value->key.p ? value->key.p : "", colon,
                         expected, shown(value->text), value->text.p);
}

static int unknown_key(struct loading *l, const struct yaml *value, const char *what,
                       const struct field *rows)
{
    char keys[256];
    size_t n = 0;

    for (; rows->key && n < sizeof(keys) - 1; rows++) {
        int more = snprintf(keys + n, sizeof(keys) - n, "%s%s", n ? ", " : "", rows->key);

        n += more > 0 ? (size_t)more : 0;
    }
    return fields_refuse(l, value->key_line,
                         "unknown key '%.*s' in %s; expected one of: %s",
                         shown(value->key), value->key.p, what, keys);
}

int fields_read(struct loading *l, const struct yaml *map, const char *what,
                const struct field *rows, void *into)
{
    if (map->kind != YAML_MAP)
        return fields_expected(l, map, "a map of keys and values");
    for (const struct yaml *y = map->first; y; y = y->next) {
        const struct field *f = rows;

        while (f->key && !str_is(y->key, f->key))
            f++;
        if (!f->key)
            return unknown_key(l, y, what, rows);
        if (f->read(l, y, into) < 0)
            return -1;
    }
    return 0;
}

int fields_bool(struct loading *l, const struct yaml *value, void *into)
{
    return yaml_is_bool(value, into) ? 0 : fields_expected(l, value, "true or false");
}

int fields_limit(struct loading *l, const struct yaml *value, void *into)
{
    struct policy_limit *limit = into;
    uint64_t number;

    if (!yaml_is_u64(value, &number))
        return fields_expected(l, value, "a whole number, 0 or more");
    if (number > POLICY_COUNT_MAX)
        return fields_expected(l, value, "a number up to 9007199254740991");
    *limit = (struct policy_limit){ number, true };
    return 0;
}

int fields_string(struct loading *l, const struct yaml *value, void *into)
{
    if (!yaml_is_string(value))
        return fields_expected(l, value, "a text (in quotes if it looks like a number)");
    *(str *)into = value->text;
    return 0;
}

static int read_name(struct loading *l, const struct yaml *value, str *into)
{
    if (!yaml_is_string(value))
        return fields_expected(l, value, "a name (in quotes if it looks like a number)");
    if (value->text.n == 0)
        return fields_refuse(l, value->line, "expected a name, found an empty text");
    if (value->text.n > POLICY_NAME_MAX)
        return fields_refuse(l, value->line, "expected at most %d bytes, found %zu",
                             POLICY_NAME_MAX, value->text.n);
    *into = value->text;
    return 0;
}

int fields_names(struct loading *l, const struct yaml *value, void *into)
{
    struct policy_names *names = into;
    size_t i = 0;
    str *at;

    if (value->kind != YAML_LIST)
        return fields_expected(l, value, "a list, such as [a, b]");
    at = arena_alloc(&l->policy->arena, value->count * sizeof(*at));
    if (!at)
        return err_set(l->err, ERR_NOMEM, "out of memory");
    for (const struct yaml *y = value->first; y; y = y->next) {
        if (read_name(l, y, &at[i++]) < 0)
            return -1;
    }
    *names = (struct policy_names){ at, i };
    return 0;
}

int fields_globs(struct loading *l, const struct yaml *value, void *into)
{
    if (fields_names(l, value, into) < 0)
        return -1;
    for (const struct yaml *y = value->first; y; y = y->next) {
        if (!glob_valid(y->text))
            return fields_expected(l, y, "a ']' for every '['");
    }
    return 0;
}

str fields_text(struct loading *l, const char *fmt, ...)
{
    char text[POLICY_NAME_MAX + 128];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return n > 0 && (size_t)n < sizeof(text)
               ? arena_dup(&l->policy->arena, str_of(text, (size_t)n))
               : (str){ NULL, 0 };
}
