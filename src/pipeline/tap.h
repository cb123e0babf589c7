/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tap - what a session records of the messages that cross it: events, calls, receipts.
 *
 *     tap_receive    a whole message came: its evidence is written before it goes on
 *     tap_forwarded  it went on: told with the next write
 *
 * The tap forwards nothing and decides nothing. It sees a message as it came, whatever is
 * done with it afterwards.
 */
#ifndef PIPELINE_TAP_H
#define PIPELINE_TAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/str.h"
#include "evidence/receipt.h"
#include "evidence/session.h"
#include "mcp/rpc.h"
#include "pipeline/correlate.h"
#include "pipeline/splice.h"
#include "json/json.h"

struct err;

#define TAP_CANCEL_GRACE 60000 /* ms in which a cancelled call may still be answered */
#define TAP_STATES       256   /* requestStates that are remembered */
#define TAP_OUTLINE      4     /* levels of a message that say what it is: a batch, too */
#define TAP_NODES_MAX    2000000 /* of the index of one message */
#define TAP_NODES_KEPT   65536   /* of an index, from message to message */
#define TAP_ANSWERS_MAX                                                                  \
    ((size_t)512 << 20) /* bytes of our answers to one message: a batch of many */
#define TAP_ID_MAX 4096 /* bytes of an id that we answer */

enum direction {
    TO_SERVER, /* c2s */
    TO_CLIENT, /* s2c */
};

struct tap;

/* What is to become of one element of a message to the server, said before anything is
 * written of it. Zero: it goes on, and no policy spoke. */
struct tap_verdict {
    bool refused; /* it must not go on; a request is answered with an error */
    const struct call_decision *decision; /* of a call; NULL: no policy */
    int code;                             /* of the error */
    str reason_code;
    str message; /* for a person */
};

struct tap_options {
    struct session *session; /* borrowed */
    bool store_arguments, store_results;
    bool passes;           /* messages go on also when their evidence cannot be written */
    str pepper;            /* borrowed; empty without */
    uint64_t call_timeout; /* ms; 0: none */
    uint32_t seed;

    /* A call has waited too long: answer it with error -31007. `id` is JSON text;
     * `receipt` is "" when it could not be written. */
    void (*on_timeout)(void *ctx, str id, struct exchange *x, const char *receipt);

    /* May this element go to the server? What it borrows lives until the next call. NULL:
     * all may. A message that is no JSON is RPC_INVALID at JSON_NONE. */
    void (*judge)(void *ctx, const struct tap *t, const struct rpc *m,
                  struct tap_verdict *out);

    /* The client's tools/list is answered: cut with t->splice what is not for it. Or
     * NULL. */
    void (*list)(void *ctx, struct tap *t, const struct rpc *m);
    void *ctx;
};

/* One element of a message, and what is to be said when it has gone on. */
struct passage {
    enum event_type type;
    uint32_t node;
    uint64_t index; /* in its batch */
    struct open_call *call;
    bool release;
    bool withheld; /* not for the other side: refused, or answered by us before */
};

/* What is to be said of a message that waits, when it has gone on. */
struct tap_sent {
    struct {
        struct event event;
        struct open_call *call;
        bool release;
    } * item;
    size_t count;
};

void tap_sent_release(struct tap_sent *s);

/* A call that was recorded and then refused, while the log does not say so yet. */
struct tap_refusal {
    struct tap_refusal *next;
    struct event event;
    struct open_call *call;
};

/* A task that a call became; its end is still to be seen. */
struct tap_task {
    struct tap_task *next;
    struct open_call *call;
    uint64_t serial; /* from 1 */
    size_t n;
    char id[];
};

/* The leg of a call that gave a requestState out. */
struct tap_state {
    struct digest state;
    char receipt[ID_MAX];
};

struct tap {
    struct tap_options options;
    struct correlate asked[2]; /* requests by their direction */
    struct json json;          /* of the message at hand */
    struct json
        *given;     /* an index that may be of the next one; may be swapped; or NULL */
    struct rpc rpc; /* of its element that was read last */
    struct message said; /* what events say of it; `is_said`: of `rpc` */
    bool is_said;
    str frame; /* without its line end */
    struct content_hash digest;
    enum direction direction;
    bool is_batch;
    size_t withheld; /* passages of the message that are */
    bool cut; /* something was cut out of it: `frame` and `digest` are of the rest */
    struct splice splice;       /* what else is to be cut */
    struct tap_verdict verdict; /* of the element at hand */
    bool unjudged;              /* an element must not go on, and could not be withheld */
    struct buf answers;         /* what we say to the client ourselves, one a line */
    struct buf replies;         /* the same to the server, for what its client said */
    bool own;                   /* a message answers only what its exchange asked */
    struct exchange *asker;     /* whose requests the message answers; NULL: not known */
    unsigned answered;          /* how many of them */
    uint64_t lists_open;        /* tools/list of the client that are not answered */
    uint64_t seq;               /* of the first event of the message */
    uint64_t upto; /* the log's size with all its events; 0: nothing was written */
    struct passage *passages;
    size_t passage_count, passage_cap;
    struct buf key, content;
    uint64_t index; /* of the element of the batch at hand */
    bool failing;   /* the evidence of the last message could not be written */
    struct tap_refusal *refusals;
    struct tap_task *tasks;
    uint64_t task_serial;
    struct tap_state *states; /* TAP_STATES of them; NULL: none yet */
    size_t state_next;
    struct {
        uint64_t asked, task; /* serials */
        size_t state;
    } gathered; /* the newest of each, at tap_gather() */
};

void tap_init(struct tap *t, const struct tap_options *options);
void tap_release(struct tap *t);

/* Give back what the next message would need, and nobody else. */
void tap_trim(struct tap *t);

/* Nothing is remembered that later messages need: another one would do as well. */
bool tap_is_blank(const struct tap *t);

/* Messages that came at once, and that go on at once: from here on to tap_write() their
 * evidence waits, to be written together. -1: nothing of it could be written, and what
 * was remembered for their sake is forgotten. Only where they go on all the same. */
void tap_gather(struct tap *t);
MUST_CHECK int tap_write(struct tap *t, struct err *err); /* safe without tap_gather() */
bool tap_is_gathering(const struct tap *t);

/* Record a message that came. `frame` may end in its line end. -1: its evidence could not
 * be written (and that is known to the log). */
MUST_CHECK int tap_receive(struct tap *t, enum direction d, str frame, struct exchange *x,
                           uint64_t now, struct err *err);

/* What of that message (`bytes` with its line end, as it was given) is for the other
 * side: all of it, or the rest when something is withheld or cut, which may be nothing.
 * Only what is asked for here is cut: not where its beginning has gone on already. On
 * failure nothing of it must go on. */
MUST_CHECK int tap_rest(struct tap *t, str bytes, str *rest, struct err *err);

/* Has this element been cut out, or should it have been? */
bool tap_is_withheld(const struct tap *t, uint32_t node);

/* The message of the last tap_receive() is none: it is no JSON. */
bool tap_is_no_json(const struct tap *t);

/* It has gone on; or it has not, since whoever was to have it is gone. */
void tap_forwarded(struct tap *t);
void tap_unheard(struct tap *t);

/* The same in two steps, for a message that waits while others come; on failure nothing
 * will be said of it. tap_say_sent() and tap_drop_sent() leave *s empty. */
MUST_CHECK int tap_take_sent(struct tap *t, struct tap_sent *s, struct err *err);
void tap_say_sent(struct tap *t, struct tap_sent *s);
void tap_drop_sent(struct tap *t, struct tap_sent *s);

/* The message of the last tap_receive() will not go on: no answer to it is awaited, and
 * its calls are denied, with reason evidence_failure: now, or when the log can be written
 * again. */
void tap_refused(struct tap *t);
void tap_refuse_sent(struct tap *t, struct tap_sent *s, enum direction d);

/* Calls whose time is over: at least once a second. */
void tap_tick(struct tap *t, uint64_t now);

/* This request of the client will not be answered: it is forgotten, and a call gets its
 * receipt, whose id is written to `receipt`; else that stays as it is. */
void tap_give_up(struct tap *t, struct pending *p, const char *reason,
                 char receipt[static ID_MAX]);

/* Whoever sent the requests of this exchange does not want their answers any more. */
void tap_cancel(struct tap *t, const struct exchange *x, uint64_t now);

/* No answer comes any more: cancelled calls are lost as what they are. */
void tap_settle(struct tap *t);

/* Does the client wait for an answer to something, not for news that have no end? */
bool tap_is_asked(const struct tap *t);

#endif
