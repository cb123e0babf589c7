/* SPDX-License-Identifier: Apache-2.0 */
/* Expectations are those of Python's fnmatch.fnmatchcase, except for an open '['. */
#include "policy/glob.h"

#include "tests/tap.h"

static const struct {
    const char *pattern, *text;
    bool match;
} cases[] = {
    { "a", "a", true },
    { "a", "A", false },
    { "a", "ab", false },
    { "", "", true },
    { "", "a", false },
    { "*", "", true },
    { "*", "anything/at.all", true },
    { "read_*", "read_file", true },
    { "read_*", "read_", true },
    { "read_*", "unread_file", false },
    { "*_file", "read_file", true },
    { "*_file", "read_files", false },
    { "*a*b*", "xxaxxbxx", true },
    { "*a*b*", "xxbxxaxx", false },
    { "a*a*a", "aaa", true },
    { "a*a*a", "aa", false },
    { "?", "a", true },
    { "?", "", false },
    { "?", "\xc3\xa9", true },
    { "??", "\xc3\xa9", false },
    { "?", "\xff", true },
    { "[abc]x", "bx", true },
    { "[abc]x", "dx", false },
    { "[a-c]x", "cx", true },
    { "[!a-c]x", "cx", false },
    { "[!a-c]x", "dx", true },
    { "[]x]", "]", true },
    { "[!]]", "]", false },
    { "[a-]", "-", true },
    { "[*]", "*", true },
    { "[*]", "x", false },
    { "[?]", "?", true },
    { "[\xc3\xa0-\xc3\xaf]", "\xc3\xa9", true },
    { "\\*", "\\x", true },
    { "a\\", "a\\", true },
    { "*.txt", ".txt", true },
    { "**", "x", true },
    { "**/.env", "/workspace/.env", true },
    { "**/.env", ".env", false },
    { "a*b?c", "aXXbYc", true },
    { "a*b?c", "aXXbc", false },
};

static const struct {
    const char *pattern;
    bool valid;
    size_t start, end;
} forms[] = {
    { "abc", true, 3, 3 },   { "ab*", true, 2, 0 },   { "*ab", true, 0, 2 },
    { "a[b]c", true, 1, 1 }, { "a[bc", false, 1, 2 }, { "[]", false, 0, 0 },
    { "[]]", true, 0, 0 },   { "[!]", false, 0, 0 },  { "a?b", true, 1, 1 },
    { "a]b", true, 3, 1 },   { "", true, 0, 0 },
};

/* Time grows with pattern times text, not exponentially. */
static void test_many_stars(void)
{
    char pattern[401], text[4001];

    for (size_t i = 0; i < 400; i += 2) {
        pattern[i] = 'a';
        pattern[i + 1] = '*';
    }
    pattern[399] = 'b';
    memset(text, 'a', 4000);
    ok(!glob_match(str_of(pattern, 400), str_of(text, 4000)),
       "many stars come to an end");
}

int main(void)
{
    for (size_t i = 0; i < COUNT(cases); i++)
        ok(glob_match(str_from(cases[i].pattern), str_from(cases[i].text)) ==
               cases[i].match,
           "'%s' %s '%s'", cases[i].pattern, cases[i].match ? "matches" : "leaves",
           cases[i].text);
    for (size_t i = 0; i < COUNT(forms); i++) {
        str p = str_from(forms[i].pattern);

        ok(glob_valid(p) == forms[i].valid, "'%s' is %svalid", forms[i].pattern,
           forms[i].valid ? "" : "not ");
        if (forms[i].valid)
            ok(glob_literal(p) == forms[i].start && glob_literal_end(p) == forms[i].end,
               "'%s' has its literal ends", forms[i].pattern);
    }
    test_many_stars();
    return tap_done();
}
