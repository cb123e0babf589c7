/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status - what a running recorder tells on stderr: sentences, or with --json one JSON
 * object a line. One write a line, so that threads and processes do not mix.
 * Where nobody reads, lines are left out: the sessions are not to wait for that.
 *
 *     {"event":"note","message":"…"}
 *     {"event":"listening","url":"http://127.0.0.1:8080/mcp"}
 *     {"event":"pack","path":"…","receipts":4,"root":"…"}
 *     {"calls":3,"complete":true,"event":"end","exit":0}
 *     {"event":"error","message":"…"}
 */
#ifndef CLI_STATUS_H
#define CLI_STATUS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/command.h"

struct pack_result;

#define STATUS_PATIENCE 1000 /* ms that the first line waits for its reader */

struct status {
    bool json;
    atomic_bool unheard; /* nobody took the last line */
};

/* Hooks: `ctx` is a struct status. */
void status_note(void *ctx, const char *sentence);
void status_pack(void *ctx, const struct pack_result *pack);

void status_listening(struct status *s, const char *url);
void status_error(struct status *s, const char *sentence);

/* The last line; nothing where sentences are wanted, which have said it all. */
void status_end(struct status *s, bool complete, uint64_t calls, enum exit_code code);

#endif
