/* SPDX-License-Identifier: Apache-2.0 */
/* stdio - an endpoint over two descriptors, one message a line: our own stdin and stdout,
 * or the pipes of a server that we started. */
#ifndef TRANSPORT_STDIO_H
#define TRANSPORT_STDIO_H

#include "base/attr.h"
#include "transport/channel.h"
#include "transport/endpoint.h"

struct stdio {
    struct endpoint endpoint;
    struct channel in, out;
    bool inside; /* a line has begun */
};

/* `keep`: the descriptors are 0 and 1 and stay open. */
MUST_CHECK int stdio_open(struct stdio *s, struct loop *l, int in, int out, bool keep,
                          const struct endpoint_events *events, void *ctx,
                          struct err *err);

#endif
