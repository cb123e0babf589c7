/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink - where a writer's bytes go: a buffer, a hash, a file.
 *
 * Writing cannot fail from the writer's side; a sink that can fail remembers it
 * (buf.failed) and its owner looks once at the end.
 */
#ifndef BASE_SINK_H
#define BASE_SINK_H

#include "base/str.h"

struct sink {
    void (*write)(void *ctx, str bytes);
    void *ctx;
};

static inline void sink_write(const struct sink *s, str bytes)
{
    s->write(s->ctx, bytes);
}

#endif
