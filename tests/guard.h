/* SPDX-License-Identifier: Apache-2.0 */
/* guard - input that ends where memory ends: reading one byte too far is a crash. */
#ifndef TESTS_GUARD_H
#define TESTS_GUARD_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/str.h"

struct guard {
    char *map;
    size_t size;
    str bytes; /* the copy, its last byte before an inaccessible page */
};

static void guard_init(struct guard *g, str bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = (bytes.n + page - 1) / page * page;
    char *map;

    map = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
               0);
    if (map == MAP_FAILED || mprotect(map + room, page, PROT_NONE) < 0)
        abort();
    if (bytes.n)
        memcpy(map + room - bytes.n, bytes.p, bytes.n);
    *g = (struct guard){ map, room + page, str_of(map + room - bytes.n, bytes.n) };
}

static void guard_release(struct guard *g)
{
    if (g->map)
        munmap(g->map, g->size);
    *g = (struct guard){ 0 };
}

#endif
