/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link - a connection to a host: its name is looked up, its addresses are tried one after
 * the other, a proxy is asked for the way, TLS is begun if asked for. Then bytes go both
 * ways. Or one that was accepted.
 */
#ifndef TRANSPORT_LINK_H
#define TRANSPORT_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "transport/channel.h"
#include "transport/http_head.h"
#include "transport/resolve.h"

struct http_proxy;
struct tls;
struct tls_identity;
struct tls_trust;

#define LINK_OPEN_WAIT    10000 /* ms until it is open, TLS and all */
#define LINK_ADDRESS_WAIT 3000  /* ms for an address, while there is another one */
#define LINK_SILENCE      30    /* s after which a peer is asked whether it is there */

/* Called from the loop. */
struct link_events {
    void (*on_open)(void *ctx);
    void (*on_bytes)(void *ctx, str bytes);
    void (*on_end)(void *ctx, const struct err *why); /* once; NULL: the peer's own end */
    void (*on_drained)(void *ctx);
};

struct link_options {
    struct loop *loop;
    struct resolver *resolver;
    struct tls_trust *trust; /* NULL: plain */
    const char *host;
    uint16_t port;
    const struct http_proxy *proxy; /* what to connect to instead; NULL: nobody. With TLS
                                       it is asked for a tunnel */
};

struct link {
    struct loop *loop;
    const struct link_events *events;
    void *ctx;
    struct channel channel;
    bool has_channel, open, closed, looking, reading;
    bool accepted;        /* the peer came to us */
    bool heard;           /* and has said something */
    bool lacks_tls;       /* though there is an identity: see link_accept() */
    bool ended, finished; /* it will say no more; neither shall we */
    struct tls *tls;
    struct link_opening *opening; /* until it is open; NULL for one that was accepted */
};

MUST_CHECK int link_open(struct link *l, const struct link_options *options,
                         const struct link_events *events, void *ctx, struct err *err);

/* The serving side of a connected descriptor, which is the link's from here on, whatever
 * the answer is. Without an identity it is plain and open at once (no on_open). Whoever
 * accepts limits the time that TLS may take. If the peer begins with a letter, as HTTP
 * does and TLS does not, the link becomes plain, and `lacks_tls`: that can be answered,
 * and nothing else should be.
 *
 * Here on_end(NULL) is the end of reading only: the peer may have closed no more than its
 * own direction, so that an answer can still be written. */
MUST_CHECK int link_accept(struct link *l, struct loop *loop, int fd,
                           struct tls_identity *identity,
                           const struct link_events *events, void *ctx, struct err *err);

void link_read(struct link *l, bool on); /* on from the beginning */

/* Once open. What is small goes out at the end of the loop's turn. */
MUST_CHECK int link_write(struct link *l, str bytes, struct err *err);
size_t link_queued(const struct link *l);
uint64_t link_taken(const struct link *l); /* bytes that left, of all, as they left */
void link_trim(struct link *l);            /* see channel_trim() */

/* The peer has reset it; or, if `half`, has closed its direction behind what is not read
 * yet. For links that are not being read. */
bool link_is_cut(const struct link *l, bool half);

/* No more will be written. The peer is told behind what is queued; reading goes on. */
void link_finish(struct link *l);

/* link_close() in such a way that the peer can take it for no regular end. */
void link_reset(struct link *l);

/* At once; nothing is called any more. The memory must outlive the present callback, and
 * a name that is still being looked up: see link_is_busy(). */
void link_close(struct link *l);
bool link_is_busy(const struct link *l);

#endif
