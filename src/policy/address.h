/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address - an IP address: which spellings mean one, and whether it is out there.
 *
 * Parsers disagree on spellings: 010.0.0.1 is 8.0.0.1 to some and 10.0.0.1 to others. So
 * a spelling is read in every way in which somebody reads it, and the worst counts.
 */
#ifndef POLICY_ADDRESS_H
#define POLICY_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

#define ADDRESS_TEXT_MAX 256 /* bytes of a spelling; longer is none */

struct address {
    bool v6;
    uint8_t bytes[16]; /* network order; IPv4: the first four */
};

static inline struct address address_v4(const void *four)
{
    struct address a = { .v6 = false };

    memcpy(a.bytes, four, 4);
    return a;
}

static inline struct address address_v6(const void *sixteen)
{
    struct address a = { .v6 = true };

    memcpy(a.bytes, sixteen, 16);
    return a;
}

/* NULL for a public address; else what it is, to follow "is": "a loopback address". IPv4
 * inside IPv6 (mapped, NAT64, 6to4) is judged as IPv4. */
const char *address_private(const struct address *a);

enum address_spelling {
    ADDRESS_NONE,    /* not an address at all: perhaps a name */
    ADDRESS_PUBLIC,  /* every reading is public */
    ADDRESS_PRIVATE, /* some reading is not; *what says why */
    ADDRESS_BROKEN,  /* meant as one (the last label is a number, brackets), but wrong */
};

/* The host part of a URL, or less: 127.1, 0x7f.1, 2130706433, [::1], ::1, with dots at
 * the end. No port. */
enum address_spelling address_read(str host, const char **what);

#endif
