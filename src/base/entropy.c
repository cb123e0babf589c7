/* SPDX-License-Identifier: Apache-2.0 */
#include "base/entropy.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/codec.h"
#include "base/err.h"

static int system_fill(void *ctx, void *out, size_t n, struct err *err)
{
    uint8_t *to = out;

    (void)ctx;
    while (n > 0) {
        ssize_t got = getrandom(to, n, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(err, "getrandom");
        to += got;
        n -= (size_t)got;
    }
    return 0;
}

const struct entropy entropy_system = { system_fill, NULL };

int entropy_fill(const struct entropy *e, void *out, size_t n, struct err *err)
{
    return e->fill(e->ctx, out, n, err);
}

/* --- ahead --- */

#define AHEAD_BYTES 4096 /* with what is said about them; a page */

struct entropy_ahead {
    size_t left; /* of the bytes, at their end; 0 in a fork, where all is wiped */
    uint8_t bytes[AHEAD_BYTES - sizeof(size_t)];
};

void entropy_pool_init(struct entropy_pool *p, const struct entropy *source)
{
    void *page = mmap(NULL, AHEAD_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    *p = (struct entropy_pool){ .source = source };
    if (page == MAP_FAILED)
        return;
    if (madvise(page, AHEAD_BYTES, MADV_WIPEONFORK) < 0) {
        munmap(page, AHEAD_BYTES);
        return;
    }
    p->ahead = page;
}

void entropy_pool_release(struct entropy_pool *p)
{
    if (!p->ahead)
        return;
    explicit_bzero(p->ahead, AHEAD_BYTES);
    munmap(p->ahead, AHEAD_BYTES);
    p->ahead = NULL;
}

static int pool_fill(void *ctx, void *out, size_t n, struct err *err)
{
    const struct entropy_pool *p = ctx;
    struct entropy_ahead *a = p->ahead;
    uint8_t *from;

    if (!a || n > sizeof(a->bytes))
        return entropy_fill(p->source, out, n, err);
    if (a->left < n) {
        a->left = 0;
        if (entropy_fill(p->source, a->bytes, sizeof(a->bytes), err) < 0)
            return -1;
        a->left = sizeof(a->bytes);
    }
    from = a->bytes + sizeof(a->bytes) - a->left;
    memcpy(out, from, n);
    explicit_bzero(from, n);
    a->left -= n;
    return 0;
}

struct entropy entropy_pool_entropy(struct entropy_pool *p)
{
    return (struct entropy){ pool_fill, p };
}

int entropy_id(const struct entropy *e, char out[static ID_MAX], const char *prefix,
               struct err *err)
{
    size_t n = strlen(prefix);
    uint8_t random[ID_HEX / 2];

    assert(n + ID_HEX < ID_MAX);
    if (entropy_fill(e, random, sizeof(random), err) < 0)
        return -1;
    memcpy(out, prefix, n);
    hex_encode(out + n, random, sizeof(random));
    out[n + ID_HEX] = '\0';
    return 0;
}
