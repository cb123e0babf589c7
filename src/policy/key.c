/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/key.h"

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_alpha(char c)
{
    return is_upper(c) || (c >= 'a' && c <= 'z');
}

static bool is_alnum(char c)
{
    return is_alpha(c) || (c >= '0' && c <= '9');
}

/* Where the last word begins; `*end` is where it ends. webhookURL is webhook URL. */
static size_t last_word(str key, size_t *end)
{
    size_t i = key.n;

    while (i > 0 && !is_alpha(key.p[i - 1])) /* url2, too */
        i--;
    *end = i;
    while (i > 0 && is_alnum(key.p[i - 1])) {
        if (i < *end && is_upper(key.p[i]) && !is_upper(key.p[i - 1]))
            break;
        i--;
    }
    return i;
}

static bool is_singular(str word, str one)
{
    if (one.p[0] == '*')
        return str_ends(word, str_skip(one, 1));
    return str_equal(word, one);
}

static bool is_word(str word, str one)
{
    size_t n = one.n;

    if (is_singular(word, one))
        return true;
    if (str_ends(word, STR("s")) && is_singular(str_first(word, word.n - 1), one))
        return true;
    if (str_ends(word, STR("es")) && is_singular(str_first(word, word.n - 2), one))
        return true;
    return one.p[n - 1] == 'y' && str_ends(word, STR("ies")) &&
           is_singular(str_first(word, word.n - 3), str_first(one, n - 1));
}

bool key_ends_in(str key, const char *const *words)
{
    char lower[KEY_WORD_MAX];
    size_t end, from = last_word(key, &end);
    str word;

    if (end - from > sizeof(lower) || end == from)
        return false;
    for (size_t i = from; i < end; i++)
        lower[i - from] = is_upper(key.p[i]) ? (char)(key.p[i] | 0x20) : key.p[i];
    word = str_of(lower, end - from);
    for (; *words; words++) {
        if (is_word(word, str_from(*words)))
            return true;
    }
    return false;
}

bool key_is_name_of(str key, const char *const *words)
{
    static const char *const name[] = { "name", NULL };
    size_t end, from = last_word(key, &end);

    return key_ends_in(key, name) && key_ends_in(str_first(key, from), words);
}
