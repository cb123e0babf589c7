/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oauth - what a server over HTTP says of who grants access to it, as a client of ours
 * must see it: a client refuses a protected resource that is not the one it asked, so
 * that the server's own place becomes ours. Tokens and everything else pass untouched.
 */
#ifndef PIPELINE_OAUTH_H
#define PIPELINE_OAUTH_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

#define OAUTH_METADATA_MAX ((size_t)64 << 10) /* of the description of a resource */

/* Two names of one place. */
struct oauth_places {
    str server, ours;           /* origins: "https://mcp.example.com" */
    str server_path, ours_path; /* of the endpoint: "/mcp" */
};

/* Where the server describes a resource that we are asked about. */
void oauth_add_path(struct buf *out, str asked, const struct oauth_places *p);

/* A value of WWW-Authenticate, with its resource_metadata at our place. */
void oauth_add_challenge(struct buf *out, str value, const struct oauth_places *p);

/* The description, with its `resource` at our place; as it is where there is none. */
void oauth_add_metadata(struct buf *out, str body, const struct oauth_places *p);

#endif
