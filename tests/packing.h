/* SPDX-License-Identifier: Apache-2.0 */
/* packing - sessions to be packed, and what their packs are worth. */
#ifndef TESTS_PACKING_H
#define TESTS_PACKING_H

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "evidence/pack.h"
#include "evidence/verify.h"
#include "tests/recording.h"

static const struct session_ending well = { "client_eof", true, "shutdown", NULL };

__attribute__((unused)) static struct pack_request
request_for(const struct session *s, const struct session_cut *cut)
{
    return (struct pack_request){ .session = session_id(s),
                                  .receipts = session_receipts(s),
                                  .first = session_history(s)->first,
                                  .cut = *cut };
}

/* Three calls with stored content, one of them with characters that end lines. */
__attribute__((unused)) static void record_three(struct recording *r, struct session *s)
{
    struct open_call *c;

    c = recording_call(r, s, STR("1"), STR("a"), STR("{\"n\":1E21}"));
    recording_answer(r, s, c, false, STR("{\"t\":\"a\xe2\x80\xa8\xc2\x85z\"}"));
    session_release(s, c);
    c = recording_call(r, s, STR("\"two\""), STR("b"), (str){ NULL, 0 });
    recording_answer(r, s, c, true, (str){ NULL, 0 });
    session_release(s, c);
    c = recording_call(r, s, STR("3"), STR("c"), (str){ NULL, 0 });
    recording_deny(r, s, c);
    session_release(s, c);
}

__attribute__((unused)) static bool is_sound(const char *path)
{
    const struct verify_options options = { .clock = &clock_system };
    struct verify_result result = { 0 };
    struct err err = { 0 };
    bool sound = verify_pack(path, &options, &result, &err) == 0 &&
                 result.verdict == VERIFY_SOUND && result.has_log;

    for (size_t i = 0; i < result.findings.count; i++)
        printf("# %.*s\n", STR_ARG(result.findings.items[i].message));
    verify_result_release(&result);
    return sound;
}

__attribute__((unused)) static unsigned count_entries(const char *dir, const char *prefix)
{
    unsigned n = 0;
    const struct dirent *d;
    DIR *list = opendir(dir);

    while (list && (d = readdir(list)))
        n += strncmp(d->d_name, prefix, strlen(prefix)) == 0;
    if (list)
        closedir(list);
    return n;
}

#endif
