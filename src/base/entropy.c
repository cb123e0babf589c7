/* SPDX-License-Identifier: Apache-2.0 */
#include "base/entropy.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
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
