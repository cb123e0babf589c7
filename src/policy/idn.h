/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idn - a host name in ASCII: what a URL parser makes of it before it is looked up.
 *
 * Characters that IDNA maps to ASCII (full-width, circled, superscript and mathematical
 * letters and digits, the dots of other scripts) are mapped, those that it ignores are
 * left out: `１２７。０。０。１` is 127.0.0.1. Labels with other characters become xn--
 * labels (RFC 3492) as they are written. Of IDNA's other mappings only those of the
 * Latin, Greek and Cyrillic capitals are known; a name that needs more is looked up in
 * vain.
 */
#ifndef POLICY_IDN_H
#define POLICY_IDN_H

#include <stddef.h>

#include "base/str.h"

#define IDN_MAX 512 /* bytes of a host, before and after; longer is none */

/* Lower-case ASCII into `out`; its length, or SIZE_MAX when this cannot be a host. Bytes
 * of ASCII that a host may not have stay as they are. */
size_t idn_to_ascii(char out[static IDN_MAX], str host);

#endif
