/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/terms.h"

#include <stddef.h>
#include <string.h>

#include "base/codec.h"
#include "base/str.h"
#include "evidence/crypto.h"

static bool is_listed(const char *word, const char *const *list, size_t count)
{
    for (size_t i = 0; word && i < count; i++) {
        if (strcmp(word, list[i]) == 0)
            return true;
    }
    return false;
}

bool term_is_transport(const char *word)
{
    static const char *const list[] = { "stdio", "sse", "streamable-http" };

    return is_listed(word, list, COUNT(list));
}

bool term_is_profile(const char *word)
{
    static const char *const list[] = { "audit", "guard" };

    return is_listed(word, list, COUNT(list));
}

bool term_is_policy_hash(const char *word)
{
    static const char prefix[] = "sha256:";
    const size_t n = sizeof(prefix) - 1;
    struct digest ignored;

    return word && strncmp(word, prefix, n) == 0 &&
           digest_from_hex(&ignored, str_from(word + n));
}

bool term_is_loss(const char *word)
{
    static const char *const list[] = { "call_timeout", "cancelled",      "server_exit",
                                        "client_gone",  "shutdown",       "recorder_lost",
                                        "no_id",        "task_unobserved" };

    return is_listed(word, list, COUNT(list));
}

bool term_is_reason(const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    size_t n = word ? strlen(word) : 0;

    return n > 0 && n <= TERM_MAX && word[0] >= 'a' && word[0] <= 'z' &&
           strspn(word, letters) == n;
}

bool term_is_proper_end(const char *word)
{
    static const char *const list[] = { "client_eof", "signal",      "sigint",
                                        "sigterm",    "server_exit", "idle" };

    return is_listed(word, list, COUNT(list));
}
