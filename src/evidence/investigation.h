/* SPDX-License-Identifier: Apache-2.0 */
/*
 * investigation - whole messages, kept beside the log when somebody asked for it.
 *
 *     <audit directory>/investigation/session_<16 hex>.jsonl      one line a message
 *     <audit directory>/investigation/session_<16 hex>_<seq>.bin  one that is too long
 *
 *     {"bytes":71,"dir":"c2s","log_seq":12,"text":"…"}
 *     {"base64":"…","bytes":3,"dir":"c2s","log_seq":13}         not UTF-8
 *     {"bytes":70000000,"dir":"s2c","file":"session_…_14.bin","log_seq":14}
 *
 * The 16 hex are those of the session. A line belongs to the event at `log_seq`, whose
 * `digest` is that of the payload. Lines of a session ascend. The log itself never holds
 * a payload: these files can go, and the chain still verifies.
 */
#ifndef EVIDENCE_INVESTIGATION_H
#define EVIDENCE_INVESTIGATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/entropy.h"
#include "base/file.h"
#include "base/map.h"
#include "base/str.h"
#include "json/json.h"

struct err;
struct event_view;
struct log;

#define INVESTIGATION_INLINE_MAX ((size_t)64 << 20) /* longer ones get their own file */
#define INVESTIGATION_NAME_MAX   64                 /* a file's name with its NUL */

/* --- writing --- */

struct investigation {
    char *dir; /* <audit directory>/investigation */
    char session[ID_MAX];
    int fd; /* locked: forgetting has to wait for our end */
};

/* `session` is mcp_<16 hex>. Makes the directory and the file. */
MUST_CHECK int investigation_open(struct investigation *i, const char *audit_dir,
                                  const char *session, struct err *err);

/* Keep a message whose event stands at `log_seq`. On failure nothing of it is kept. */
MUST_CHECK int investigation_write(struct investigation *i, uint64_t log_seq,
                                   const char *dir, str message, struct err *err);
void investigation_close(struct investigation *i); /* safe on a zeroed or closed one */

/* Append payloads_forgotten to the log and delete what is kept of this session; *files
 * (may be NULL) is how many that were. ERR_NOTFOUND when nothing is kept, ERR_REFUSED
 * while the session is recorded. Cut short, it can be run again. */
MUST_CHECK int investigation_forget(struct log *log, const char *session, uint64_t *files,
                                    struct err *err);

/* The names: "session_<16 hex>.jsonl", and with `own` "session_<16 hex>_<seq>.bin". */
void investigation_name(char out[static INVESTIGATION_NAME_MAX], const char *session);
void investigation_own_name(char out[static INVESTIGATION_NAME_MAX], const char *session,
                            uint64_t log_seq);

/* --- checking: logcheck.h walks the log and shows every event --- */

struct investigation_check {
    char dir[FILE_PATH_MAX];
    str pepper; /* borrowed; empty when there is none */
    void (*on_finding)(void *ctx, const char *sentence);
    void *ctx;
    struct map sessions; /* key of its id → struct kept */
    struct json json;
    struct buf payload;
    uint64_t compared;  /* payloads that are what was recorded */
    uint64_t forgotten; /* sessions */
};

MUST_CHECK int investigation_check_init(struct investigation_check *c,
                                        const char *audit_dir, str pepper,
                                        struct err *err);
MUST_CHECK int investigation_check_event(struct investigation_check *c,
                                         const struct event_view *v, struct err *err);

/* After the last event: what is missing, and what is there and should not be. */
MUST_CHECK int investigation_check_end(struct investigation_check *c, struct err *err);
void investigation_check_release(struct investigation_check *c);

#endif
