/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host - which hosts a text would lead to, and whether one of them is not out there
 * (deny_private_hosts).
 *
 * URL parsers disagree, so every host that somebody could read in a text is a candidate:
 * what stands behind `://` anywhere; the value of a host key, with or without scheme; a
 * text that is an address or localhost as a whole; what stands before and behind every @;
 * what a URL leads to that ends only at white space, or with the text, or that is read
 * without its tabs and line breaks.
 * White space around a text, also that of Unicode, is none of it. Addresses are judged
 * here. Names are collected, to be looked up by the caller.
 */
#ifndef POLICY_HOST_H
#define POLICY_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"

#define HOST_NAMES_MAX 16  /* of one call; more are refused */
#define HOST_NAME_MAX  253 /* bytes, without the dot at the end (RFC 1035) */
#define HOST_LABEL_MAX 63

/* What is found over all texts of a call. */
struct host_look {
    struct arena *arena; /* names are copied into it */
    str names[HOST_NAMES_MAX];
    size_t name_count;
    str found; /* the host that was refused: borrowed from text, arena or nothing */
};

/* NULL when nothing in `text` is refused; else the reason, a static sentence without any
 * of the text. `is_host`: it is the value of a host key. */
const char *host_refuse(struct host_look *look, str text, bool is_host);

/* Is this the usual name of an argument with a host (url, base_uri, endpoint, …)? */
bool host_is_key(str key);

#endif
