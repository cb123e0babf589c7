/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/pattern.h"

#include <stdlib.h>

#include "base/err.h"
#include "tests/tap.h"

static enum pattern_result search(const char *expression, bool ignore_case, str text)
{
    struct pattern *p = NULL;
    struct err err = { 0 };
    enum pattern_result result;

    if (pattern_new(&p, str_from(expression), ignore_case, &err) < 0) {
        printf("# %s\n", err.msg);
        return PATTERN_LIMIT;
    }
    result = pattern_search(p, text);
    pattern_free(p);
    return result;
}

static const struct {
    const char *expression;
    bool ignore_case;
    const char *text;
    enum pattern_result want;
} cases[] = {
    { "rm -rf", false, "{\"cmd\":\"rm -rf /\"}", PATTERN_FOUND },
    { "^rm", false, "{\"cmd\":\"rm -rf /\"}", PATTERN_ABSENT },
    { "SECRET", false, "secret", PATTERN_ABSENT },
    { "SECRET", true, "secret", PATTERN_FOUND },
    { "(?i)SECRET", false, "secret", PATTERN_FOUND },
    { "", false, "", PATTERN_FOUND },
    { "x", false, "", PATTERN_ABSENT },
    { "^.$", false, "\xc3\xa9", PATTERN_FOUND },
    { "(a)(b)(c)\\1", false, "abca", PATTERN_FOUND },
    { "(a+)+$", false, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", PATTERN_LIMIT },
    { "(?R)?x(?R)", false, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxy", PATTERN_LIMIT },
};

/* From every start anew: few steps each, too many together. */
static void test_steps_are_counted_together(void)
{
    size_t n = 100000;
    char *text = malloc(n);

    if (!text)
        return;
    memset(text, 'a', n);
    ok(search("a{0,200}b", false, str_of(text, 2000)) == PATTERN_ABSENT, "a few starts");
    ok(search("a.{0,200}[bc]", false, str_of(text, n)) == PATTERN_LIMIT, "many starts");
    ok(search("secret", false, str_of(text, n)) == PATTERN_ABSENT,
       "an ordinary pattern over the same text");
    free(text);
}

static void test_errors(void)
{
    static const char *const bad[] = { "(", "[a", "*", "a{2,1}", "(?<x", "\\C" };

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct pattern *p = NULL;
        struct err err = { 0 };

        ok(pattern_new(&p, str_from(bad[i]), false, &err) < 0 && err.code == ERR_FORMAT &&
               !p,
           "%s: %s", bad[i], err.msg);
    }
}

int main(void)
{
    for (size_t i = 0; i < COUNT(cases); i++)
        ok(search(cases[i].expression, cases[i].ignore_case, str_from(cases[i].text)) ==
               cases[i].want,
           "%s in %s", cases[i].expression, cases[i].text);
    test_steps_are_counted_together();
    test_errors();
    return tap_done();
}
