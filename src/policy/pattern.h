/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern - a regular expression of deny_patterns. The only file that includes PCRE2.
 *
 * Searching is bounded by the number of steps over the whole text, by depth and by
 * memory, so that no pattern and no argument hold up the loop; whoever reaches a bound
 * has not been found harmless. One pattern is used by one thread at a time.
 */
#ifndef POLICY_PATTERN_H
#define POLICY_PATTERN_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/str.h"

struct err;
struct pattern;

#define PATTERN_STEPS_MAX 2000000 /* items of the pattern tried, in one search */
#define PATTERN_MATCH_MAX 1000000 /* PCRE2's own count, from one start */
#define PATTERN_DEPTH_MAX 10000
#define PATTERN_HEAP_KIB  32768

enum pattern_result {
    PATTERN_LIMIT, /* could not find out */
    PATTERN_FOUND,
    PATTERN_ABSENT,
};

/* ERR_FORMAT: what is wrong with the expression, and at which character. */
MUST_CHECK int pattern_new(struct pattern **out, str expression, bool ignore_case,
                           struct err *err);
void pattern_free(struct pattern *p);

/* Anywhere in `text`, which is valid UTF-8. */
enum pattern_result pattern_search(struct pattern *p, str text);

#endif
