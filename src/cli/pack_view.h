/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_view - what a pack says about itself, for people and for machines.
 *
 * Nothing here is checked beyond its form: verify_pack() does that, and whoever prints
 * a view says whether it was asked.
 */
#ifndef CLI_PACK_VIEW_H
#define CLI_PACK_VIEW_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/file.h"
#include "evidence/finding.h"
#include "evidence/manifest.h"
#include "json/json.h"
#include "json/pretty.h"

struct err;
struct verify_result;

struct pack_view {
    char path[FILE_PATH_MAX];
    struct manifest manifest;
    struct findings findings;
    struct mapping receipts; /* receipt_pack.jsonl */
    struct json metadata;    /* the last receipt, when it is a session_metadata */
    bool has_metadata;
    str only; /* borrowed, set by the caller: the one receipt that is shown. Empty: all */
};

/* ERR_NOTFOUND when it is no pack; ERR_DAMAGE when its manifest has not the right form.
 */
MUST_CHECK int pack_view_open(struct pack_view *v, const char *path, struct err *err);
void pack_view_release(struct pack_view *v);

enum pack_match {
    PACK_NO,
    PACK_WHOLE,   /* it is the id of the pack, or of its session */
    PACK_RECEIPT, /* ...of a receipt in it */
};

/* What has this id to do with the pack? */
enum pack_match pack_view_match(const struct pack_view *v, str id);

/* One line of `packs list`. */
void pack_view_print_line(const struct pack_view *v);

/* The facts, with what the check found, then a line for each receipt. */
void pack_view_print(const struct pack_view *v, const struct verify_result *r);

/* The same as members of an open object; `receipts`: with all of them. */
void pack_view_members(const struct pack_view *v, struct pretty *p, bool receipts);

#endif
