/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pinboard - the pinned tool definitions of one server, as files of the audit directory:
 *
 *     pins/<server>/pins.json       what was pinned: name, hash (policy/pin.h)
 *     pins/<server>/offered.json    what the server offers instead, until it is accepted
 *     pins/<server>/<sha256>.json   every definition that was seen, canonical
 *
 * A server whose id is no plain file name goes by the hash of it: id_<sha256>.
 */
#ifndef PIPELINE_PINBOARD_H
#define PIPELINE_PINBOARD_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/file.h"
#include "base/str.h"
#include "policy/pin.h"
#include "json/json.h"

struct err;

#define PINBOARD_DIR "pins"
#define PINBOARD_MAX ((size_t)32 << 20) /* bytes of one of its files */

struct pinboard {
    char *dir;           /* NULL while it is not open */
    struct pins pins;    /* as they were pinned */
    struct pins offered; /* what differs from them, or did */
    bool found;          /* there were pins before */
};

/* Nothing is made: a server that was never seen has an empty board. */
MUST_CHECK int pinboard_open(struct pinboard *b, const char *audit_dir,
                             const char *server_id, struct err *err);

/* The same for a directory of pins/ by its name there, as file_each() finds it. */
MUST_CHECK int pinboard_open_dir(struct pinboard *b, const char *audit_dir,
                                 const char *name, struct err *err);
void pinboard_release(struct pinboard *b); /* safe on a zeroed one */

/* Read pins.json again: a person may have accepted something. */
MUST_CHECK int pinboard_refresh(struct pinboard *b, struct err *err);

MUST_CHECK int pinboard_save_pins(const struct pinboard *b, struct err *err);
MUST_CHECK int pinboard_save_offers(const struct pinboard *b, struct err *err);

/* Keep the definition at `tool` under its hash. */
MUST_CHECK int pinboard_keep(const struct pinboard *b, const struct json *j,
                             uint32_t tool, const struct pin *p, struct err *err);

/* Is what the server offers under this name something else than what was pinned? */
bool pinboard_differs(const struct pinboard *b, str tool);

#endif
