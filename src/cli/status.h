/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status - what a running recorder tells on stderr: sentences, or with --json one JSON
 * object a line. One write a line, so that threads and processes do not mix.
 *
 *     {"event":"note","message":"…"}
 *     {"event":"listening","url":"http://127.0.0.1:8080/mcp"}
 *     {"event":"pack","path":"…","receipts":4,"root":"…"}
 *     {"calls":3,"complete":true,"event":"end","exit":0}
 *     {"event":"error","message":"…"}
 */
#ifndef CLI_STATUS_H
#define CLI_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/command.h"

struct pack_result;

struct status {
    bool json;
};

/* Hooks: `ctx` is a struct status. */
void status_note(void *ctx, const char *sentence);
void status_pack(void *ctx, const struct pack_result *pack);

void status_listening(const struct status *s, const char *url);
void status_error(const struct status *s, const char *sentence);

/* The last line; nothing where sentences are wanted, which have said it all. */
void status_end(const struct status *s, bool complete, uint64_t calls,
                enum exit_code code);

#endif
