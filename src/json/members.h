/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members - does an object have two members of the same name?
 *
 * For json.c. A few names are compared pairwise. More are sorted by a hash of their
 * decoded contents, and those with the same hash by the contents themselves, so that the
 * time is n log n at worst whatever names someone makes up.
 */
#ifndef JSON_MEMBERS_H
#define JSON_MEMBERS_H

#include <stdint.h>

#include "base/attr.h"
#include "json/json.h"

struct err;

#define MEMBERS_PAIRWISE 24

/* Working memory, kept from object to object. All zero is empty. */
struct members {
    uint64_t *keys; /* hash above, node below; twice as many as `cap` */
    uint32_t cap;
};

/* 1 or 0; -1 with ERR_NOMEM. */
MUST_CHECK int members_repeat(struct members *m, const struct json *j, uint32_t object,
                              struct err *err);
void members_release(struct members *m);

#endif
