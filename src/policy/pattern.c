/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

#include "base/err.h"

#define STEPS_USED_UP (-1000) /* below every code of PCRE2 */

struct pattern {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
    uint32_t steps; /* of the search that is going on */
};

/* PCRE2's match limit counts anew at every start in the text. This one does not: it is
 * called before each item of the pattern. */
static int count_step(pcre2_callout_block *block, void *ctx)
{
    struct pattern *p = ctx;

    (void)block;
    return ++p->steps > PATTERN_STEPS_MAX ? STEPS_USED_UP : 0;
}

static int prepare(struct pattern *p, struct err *err)
{
    p->data = pcre2_match_data_create(1, NULL);
    p->context = pcre2_match_context_create(NULL);
    if (!p->data || !p->context)
        return err_set(err, ERR_NOMEM, "out of memory");
    pcre2_set_match_limit(p->context, PATTERN_MATCH_MAX);
    pcre2_set_depth_limit(p->context, PATTERN_DEPTH_MAX);
    pcre2_set_heap_limit(p->context, PATTERN_HEAP_KIB);
    pcre2_set_callout(p->context, count_step, p);
    return 0;
}

static int compile(struct pattern *p, str expression, bool ignore_case, struct err *err)
{
    uint32_t options = PCRE2_UTF | PCRE2_AUTO_CALLOUT | PCRE2_NEVER_BACKSLASH_C |
                       (ignore_case ? PCRE2_CASELESS : 0);
    PCRE2_SIZE at = 0;
    int code = 0;
    char said[128] = "";

    p->code =
        pcre2_compile((PCRE2_SPTR)expression.p, expression.n, options, &code, &at, NULL);
    if (p->code)
        return 0;
    pcre2_get_error_message(code, (PCRE2_UCHAR *)said, sizeof(said));
    return err_set(err, ERR_FORMAT, "not a regular expression: %s (at its character %zu)",
                   said, at);
}

int pattern_new(struct pattern **out, str expression, bool ignore_case, struct err *err)
{
    struct pattern *p = calloc(1, sizeof(*p));

    if (!p)
        return err_set(err, ERR_NOMEM, "out of memory");
    if (compile(p, expression, ignore_case, err) < 0 || prepare(p, err) < 0) {
        pattern_free(p);
        return -1;
    }
    *out = p;
    return 0;
}

void pattern_free(struct pattern *p)
{
    if (!p)
        return;
    pcre2_match_context_free(p->context);
    pcre2_match_data_free(p->data);
    pcre2_code_free(p->code);
    free(p);
}

enum pattern_result pattern_search(struct pattern *p, str text)
{
    int found;

    p->steps = 0;
    found = pcre2_match(p->code, (PCRE2_SPTR)(text.n ? text.p : ""), text.n, 0,
                        PCRE2_NO_UTF_CHECK, p->data, p->context);
    if (found >= 0)
        return PATTERN_FOUND;
    return found == PCRE2_ERROR_NOMATCH ? PATTERN_ABSENT : PATTERN_LIMIT;
}
