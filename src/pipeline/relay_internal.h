/* SPDX-License-Identifier: Apache-2.0 */
/* relay_internal - what the files of the relay and flow.c share. Nobody else includes it.
 */
#ifndef PIPELINE_RELAY_INTERNAL_H
#define PIPELINE_RELAY_INTERNAL_H

#include <signal.h>

#include "evidence/investigation.h"
#include "pipeline/gate.h"
#include "pipeline/guard.h"
#include "pipeline/intake.h"
#include "pipeline/relay.h"
#include "pipeline/steward.h"
#include "pipeline/tap.h"
#include "pipeline/turn.h"
#include "pipeline/upkeep.h"
#include "pipeline/upstream.h"
#include "transport/child.h"
#include "transport/loop.h"
#include "transport/stdio.h"

/* Where the end stands. Only ever moves down this list. */
enum phase {
    RUNNING,
    DRAINING,    /* no more from the client; answers are awaited */
    LEAVING,     /* the server should go: EOF was sent */
    TERMINATING, /* SIGTERM was sent; over HTTP: nothing is waited for but the deletion */
    FLUSHING,    /* the server is gone: the client gets the last of what it said */
    OVER,
};

/* A message that comes in pieces, of an exchange. */
struct stream {
    struct stream *next;
    struct exchange *exchange;
    struct intake intake;
};

/* What messages need while they are under way: there from the first one on, and not while
 * the session idles among many. */
struct desk {
    struct tap tap;
    struct intake intake[2];
    struct gate gate;         /* with a durability above `write` */
    struct buf line;          /* a message that came without a line end, with one */
    struct loop_timer *flush; /* events wait for the next write */
};

/* A server that we start. */
struct local {
    struct child child;
    struct stdio side;
};

struct relay {
    const struct relay_options *o;
    struct relay_start start;
    struct loop *loop;
    struct endpoint *side[2];  /* by where a message goes: TO_SERVER is the server */
    struct stdio *client_side; /* our stdin and stdout, or NULL */
    struct stream *streams;    /* to the client, where messages belong to exchanges */
    struct local *local;       /* a server that we start, or… */
    struct upstream *upstream; /* …one over HTTP, or NULL */
    struct session *session;
    struct desk *desk; /* NULL: nothing is under way */
    uint32_t seed;     /* of the tap */
    struct upkeep upkeep;
    struct guard *guard;         /* the policy and the pins; NULL: neither is needed */
    struct investigation kept;   /* with --investigation */
    bool failing;                /* evidence could not be written the last time */
    struct loop_timer *deadline; /* NULL: the end has not begun */
    uint64_t until;              /* loop time: the same for relay_tick(); 0: none */
    enum phase phase;
    bool client_ended, server_ended, server_exited;
    int server_status;
    bool signalled; /* a signal began the end */
    int signal_number;
    bool ended_server; /* we sent it a signal */
    bool cut;          /* a message was cut: the session is not complete */
    bool dropped;      /* the same, of one exchange: the others go on */
    bool client_gone;
    bool undelivered;       /* the client did not read it all */
    uint64_t drain_ends;    /* loop time: nothing is sent to the client after it */
    const char *open_calls; /* why calls that are open now will not be answered */
    bool client_end_waits, server_end_waits; /* for the gate */
    const char *reason;                      /* a literal; NULL: none yet */
    bool clean;
    uint64_t events; /* of the session, as the steward knows */
    bool in_turn;
    struct relay *next_in_turn; /* whose messages share a write with ours */
    bool said_over;
    bool said_noise; /* the server wrote what is no message */
};

/* Is the server a process of this session? Else nobody's exit ends it. */
static inline bool relay_has_child(const struct relay *r)
{
    return r->o->argv && !r->start.server;
}

/* The server is not on this machine, as far as we know. */
static inline bool relay_is_far(const struct relay *r)
{
    return r->o->upstream || r->start.server_is_far;
}

/* Does something wait for the disk? How many bytes for that side? */
static inline bool relay_is_gated(const struct relay *r)
{
    return r->desk && !gate_is_empty(&r->desk->gate);
}

static inline size_t relay_gated(const struct relay *r, enum direction d)
{
    return r->desk ? r->desk->gate.bytes[d] : 0;
}

/* The oldest request of the client that is not answered; NULL: none. */
static inline struct pending *relay_oldest(const struct relay *r)
{
    return r->desk ? r->desk->tap.asked[TO_SERVER].oldest : NULL;
}

/* --- relay.c: the course of the session --- */

void relay_say(const struct relay *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
void relay_why(struct relay *r, const char *reason, bool clean); /* the first counts */
void relay_drain(struct relay *r);    /* no more from the client; answers are awaited */
void relay_flush_on(struct relay *r); /* is the client owed nothing any more? */
void relay_leave(struct relay *r);    /* nobody is waited for but the server itself */
void relay_go_on(struct relay *r);    /* nothing waits for the disk or for a name */
void relay_on_gate_empty(void *ctx);  /* hook of the gate */

/* --- relay_desk.c: what is there while messages are --- */

MUST_CHECK int relay_open_guard(struct relay *r, struct err *err);
MUST_CHECK int relay_make_desk(struct relay *r, struct err *err); /* with a guard */
void relay_leave_desk(struct relay *r);

/* Before anything of a message is looked at. */
MUST_CHECK static inline int relay_sit(struct relay *r, struct err *err)
{
    return r->desk ? 0 : relay_make_desk(r, err);
}

/* --- relay_end.c: its end --- */

void relay_no_more_answers(struct relay *r, const char *reason); /* the first counts */
void relay_set_deadline(struct relay *r, uint64_t ms);
void relay_terminate(struct relay *r, int number, uint64_t grace);
void relay_kill_now(struct relay *r);
void relay_begin_flush(struct relay *r); /* the server is gone */
void relay_over(struct relay *r);
void relay_try_stop(struct relay *r);
void relay_on_deadline(void *ctx); /* hook of the timer */

/* --- flow.c: what crosses it --- */

/* Bytes of a message came for that side; `end`: its last. */
void flow_span(struct relay *r, enum direction d, struct exchange *x, str bytes,
               bool end);

/* *sent is false when that side, or the exchange, is gone. */
void flow_send(struct relay *r, enum direction d, struct exchange *x, str bytes, bool end,
               bool *sent);

/* Say something ourselves, one message a line, each the answer to a request. */
void flow_say(struct relay *r, enum direction d, struct exchange *x, str lines);

/* All that was sent to that side is out. */
void flow_drained(struct relay *r, enum direction d);

void flow_leave_if_drained(struct relay *r);

/* Evidence could not be written: said once, until it can be again. */
void flow_failed(struct relay *r, const struct err *why);

/* Are answers awaited, that the end should wait for? */
bool flow_is_open(const struct relay *r);

/* The message that comes for that side has no end. */
void flow_cut(struct relay *r, enum direction d, struct exchange *x,
              const struct err *why);

/* The same for one of an exchange: the session goes on. */
void flow_drop(struct relay *r, const struct exchange *x, const struct err *why);
void flow_forget(struct relay *r, const struct exchange *x);

/* Hook of the guard. */
void flow_ready(void *ctx, struct aside *a);

/* Hook of the gate. */
void flow_release(void *ctx, struct held *held, const struct err *why);

/* --- flow_many.c: what came at once --- */

/* Around messages of one read; what they leave goes out after the second. */
void flow_many(struct relay *r, bool begin);

/* Before a message is recorded: perhaps together with those of other sessions. */
void flow_join(struct relay *r);

/* --- flow_lose.c: what is not answered --- */

/* This request of the client will not be answered: it is told so, with error -31006, and
 * a call gets its receipt, which says for what reason. */
void flow_lose(struct relay *r, struct pending *p, const char *reason,
               const struct err *why);
void flow_lose_all(struct relay *r, const char *reason);

#endif
