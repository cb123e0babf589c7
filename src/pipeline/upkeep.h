/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upkeep - what a session needs beside its messages: heartbeats, and packs of its parts
 * while it goes on.
 *
 * All that waits for the disk is done by workers; here is only asked for. Whatever is
 * told through the hooks comes from the loop's thread.
 */
#ifndef PIPELINE_UPKEEP_H
#define PIPELINE_UPKEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "evidence/log.h"
#include "evidence/pack.h"
#include "evidence/session.h"

struct err;
struct loop;

#define UPKEEP_HEARTBEAT 60000 /* ms without events */

struct upkeep_options {
    struct loop *loop;
    struct log *log;
    struct session *session;         /* borrowed, as all of these */
    uint64_t pack_ms, pack_receipts; /* a part after these; 0: never */
    void (*say)(void *ctx, const char *sentence);
    void (*packed)(void *ctx, const struct pack_result *pack);
    void *hook_ctx;
    void (*idle)(void *ctx); /* a part's pack is done */
    void *idle_ctx;
};

struct upkeep_part {
    struct pack_request request;
    struct pack_past past;
    char root[2 * DIGEST_SIZE + 1]; /* of the newest that has its pack; "" before */
};

struct upkeep {
    struct upkeep_options options;
    uint64_t last_event; /* ms */

    uint64_t part_began;       /* ms */
    uint64_t receipts_at_part; /* when it began */
    bool cut;                  /* a part was ended, its pack is not made */
    bool packing;              /* …but under way */
    struct upkeep_part *part;  /* the newest; NULL: none was ended yet */
};

void upkeep_init(struct upkeep *u, const struct upkeep_options *options, uint64_t now);

void upkeep_release(struct upkeep *u); /* safe on a zeroed one; not while u->packing */

/* A message was recorded. */
void upkeep_event(struct upkeep *u, uint64_t now);

/* About once a second. */
void upkeep_tick(struct upkeep *u, uint64_t now);

/* pack_root_sha256 of the part before, for session_end(); NULL without one. Not while
 * u->packing. A part whose pack failed is tried once more. */
MUST_CHECK int upkeep_last_part(struct upkeep *u, const char **root, struct err *err);
struct pack_past *upkeep_past(struct upkeep *u); /* for the last pack; NULL: none */

#endif
