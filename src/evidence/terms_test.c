/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/terms.h"

#include <stddef.h>

#include "base/str.h"
#include "tests/tap.h"

#define HEX64 "4791aaa760a131484e3c971c4f9b171ad1ef2f6fb9c2e4858fdad6d8fc8f6c0f"
#define TEN   "abcdefghij"

static const struct {
    const char *list;
    bool (*is)(const char *word);
    const char *word;
    bool good;
} cases[] = {
    { "transport", term_is_transport, "stdio", true },
    { "transport", term_is_transport, "sse", true },
    { "transport", term_is_transport, "streamable-http", true },
    { "transport", term_is_transport, "http", false },
    { "transport", term_is_transport, "", false },
    { "transport", term_is_transport, NULL, false },
    { "profile", term_is_profile, "audit", true },
    { "profile", term_is_profile, "guard", true },
    { "profile", term_is_profile, "Guard", false },
    { "profile", term_is_profile, "escrow", false },
    { "policy hash", term_is_policy_hash, "sha256:" HEX64, true },
    { "policy hash", term_is_policy_hash, "sha256:" HEX64 "0", false },
    { "policy hash", term_is_policy_hash, "sha256:00", false },
    { "policy hash", term_is_policy_hash, "sha256:", false },
    { "policy hash", term_is_policy_hash, HEX64, false },
    { "policy hash", term_is_policy_hash, "xx", false },
    { "policy hash", term_is_policy_hash, NULL, false },
    { "loss", term_is_loss, "call_timeout", true },
    { "loss", term_is_loss, "task_unobserved", true },
    { "loss", term_is_loss, "bored", false },
    { "loss", term_is_loss, "", false },
    { "end", term_is_proper_end, "client_eof", true },
    { "end", term_is_proper_end, "signal", true },
    { "end", term_is_proper_end, "sigint", true },
    { "end", term_is_proper_end, "sigterm", true },
    { "end", term_is_proper_end, "sigsegv", false },
    { "end", term_is_proper_end, "server_exit", true },
    { "end", term_is_proper_end, "recorder_lost", false },
    { "reason", term_is_reason, "recorder_lost", true },
    { "reason", term_is_reason, TEN TEN TEN "ab", true },
    { "reason", term_is_reason, TEN TEN TEN "abc", false },
    { "reason", term_is_reason, "2x", false },
    { "reason", term_is_reason, "two words", false },
    { "reason", term_is_reason, "", false },
    { "reason", term_is_reason, NULL, false },
};

int main(void)
{
    for (size_t i = 0; i < COUNT(cases); i++)
        ok(cases[i].is(cases[i].word) == cases[i].good, "'%s' is %s %s",
           cases[i].word ? cases[i].word : "nothing", cases[i].good ? "a" : "no",
           cases[i].list);
    return tap_done();
}
