/* SPDX-License-Identifier: Apache-2.0 */
/* front_internal - what the files of front share. Nobody else includes it. */
#ifndef PIPELINE_FRONT_INTERNAL_H
#define PIPELINE_FRONT_INTERNAL_H

#include "base/buf.h"
#include "base/err.h"
#include "evidence/crypto.h"
#include "pipeline/front.h"
#include "pipeline/mirror.h"
#include "pipeline/peek.h"
#include "pipeline/steward.h"
#include "pipeline/turn.h"
#include "transport/endpoint.h"
#include "transport/http_server.h"
#include "transport/loop.h"
#include "transport/sse.h"

#define SAY_AGAIN   10000 /* ms between two sentences of a kind, for a person */
#define FRONT_NAMES 4096  /* chains of sessions by name */

#define FRONT_PACKINGS    2 /* workers that build packs at once: 40 descriptors each */
#define FRONT_PACK_EVENTS 20000 /* packed together: some 300 bytes of memory each */

struct errand;
struct front;
struct http_conn;
struct resolver;
struct seal;
struct seat;
struct share;
struct tls_trust;

enum visit_kind {
    VISIT_POST,   /* a message, and the answers to it */
    VISIT_STREAM, /* GET: what the server says by itself */
    VISIT_LEGACY, /* GET /sse: all that the server says */
};

/* An HTTP request that is being served. It is known to the session by its exchange, which
 * may outlive it: see visit_of(). */
struct visit {
    struct visit *next, *before; /* of its seat's */
    struct http_request *request;
    struct seat *seat;
    struct exchange *exchange;
    enum visit_kind kind;
    bool stateless;
    bool waits;                    /* its message is not handed on yet */
    bool takes_json, takes_events; /* as it says it accepts */
    bool is_batch, is_delete, is_initialize;
    bool begun;  /* the head of the answer is out */
    bool raw;    /* …and its body is no events */
    bool inside; /* the beginning of a message is out */
    struct sse_writer writer;
    unsigned open;         /* requests in it that are not answered */
    struct errand *errand; /* HTTP on both sides: what is asked of the server for it */
    struct buf label;      /* ':' and the id of the event at hand; empty: it has none */
    struct buf tokens;     /* of progress, as peek.h has them */
    size_t queued;         /* bytes, as its seat knows */
    uint64_t spoke;        /* loop time */
};

enum seat_kind {
    SEAT_SESSION, /* has a name: Mcp-Session-Id */
    SEAT_GROUP,   /* has none: requests of one identity */
    SEAT_LEGACY,  /* lives as long as its stream */
};

enum seat_state {
    SEAT_OPEN,
    SEAT_ENDING,  /* takes no more */
    SEAT_OVER,    /* nothing more will be said */
    SEAT_SEALING, /* workers write its end and its pack */
    SEAT_DONE,
};

/* A session, and its place among the others. */
struct seat {
    struct endpoint side; /* the client's; first */
    struct seat *next, *before;
    struct seat *next_named;
    struct seat *next_due;
    struct seat *next_idle, *before_idle; /* while it has no visit */
    struct seat *next_warm;               /* the one that became so after it */
    struct front *front;
    enum seat_kind kind;
    enum seat_state state;
    bool is_due, is_idle, is_warm, trimmed;
    bool settles; /* a stream has begun: perhaps nothing else will be asked for long */
    bool far_paused, far_finishing, far_ended;
    bool leaving;        /* the server knows it no more */
    bool undecided;      /* whether a message of a visit got to the server */
    bool reading;        /* else requests wait */
    bool deserted;       /* a client left before its answer, which may still come */
    struct buf name;     /* Mcp-Session-Id */
    struct digest owner; /* who sends its requests */
    struct relay *relay;
    struct endpoint *member; /* of the shared server; NULL: it has its own */
    struct share *own_share; /* a server of its own whose ids are rewritten */
    struct endpoint far;     /* HTTP on both sides: the server's */
    struct errand *errands;
    size_t far_sending;            /* errands whose request is not out */
    struct visit *visits, *newest; /* in their order */
    struct visit *stream;          /* GET */
    struct visit *speaking;        /* the beginning of a message went there */
    size_t posts;                  /* visits that are VISIT_POST */
    size_t waiting;                /* visits that wait for the session to read */
    size_t queued;                 /* bytes of all visits */
    struct buf unheard;            /* messages, one a line, for who does not listen yet */
    uint64_t last;                 /* loop time of the last visit's end */
};

struct slot {
    uint32_t generation;
    uint32_t next_free; /* …and one; 0: none */
    struct visit *visit;
};

struct front {
    const struct front_options *o;
    struct relay_options relay;       /* of every session that begins */
    struct policy_file policy;        /* in force */
    bool is_reloading;                /* each session would say so */
    uint64_t said_refused, said_lost; /* loop time */
    struct loop *loop;
    struct loop_timer *tick, *dead;
    struct loop_chore soon;
    struct loop_signal *signals[3];
    struct steward steward;
    struct turn turn;
    struct http_server *server;
    struct share *share;       /* with --share-child */
    struct resolver *resolver; /* HTTP on both sides: of the server's name… */
    struct tls_trust *trust;   /* …whom to believe… */
    struct http_conn *idle;    /* …the connections to it that nobody uses… */
    struct http_conn *closing; /* …and those that are of no use */
    size_t idle_count;
    struct errand *dead_errands;
    size_t unsent;  /* bytes of requests that it does not take */
    bool is_old;    /* …which speaks HTTP+SSE, as a session found out… */
    bool is_asking; /* …and the one that is begun is to find that out… */
    bool is_new; /* …or does not: one client's bad request does not change it for all */
    struct seat *seats;
    struct seat *due; /* to be looked at */
    struct seat *idle_newest, *idle_oldest;
    size_t idle_seats;
    struct seat *warm_oldest, *warm_newest;
    size_t warm_seats;
    struct seat *named[FRONT_NAMES]; /* by their names' hashes */
    uint32_t seed;
    size_t seat_count, child_count;
    struct seal *unpacked, *unpacked_newest; /* ended, and wait for their packs */
    size_t packings;                         /* workers that build some */
    struct slot *slots;
    size_t slot_count;
    uint32_t slot_free;       /* the first, and one; 0: none */
    struct peek peek;         /* of the message that came */
    struct peek said;         /* of one that goes out, also while another is at hand */
    struct json *handed;      /* the index of the message that is handed on; or NULL */
    struct mirror marks;      /* arguments that tools want in headers, too */
    struct buf headers, body; /* of the answer at hand */
    struct buf request;       /* to the server, at hand */
    struct buf known_as;      /* the last Host that was ours */
    char url[300];
    struct front_outcome outcome;
    bool stopping, stopped;
    uint64_t stop_by; /* loop time; 0: there are sessions */
};

/* HTTP on both sides, of the same kind. */
static inline bool front_is_far(const struct front *f)
{
    return f->relay.upstream && !f->is_old;
}

/* --- front.c: the process --- */

void front_soon(struct seat *s); /* look at it, from the loop */
void front_say(const struct front *f, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* --- front_seat.c: sessions --- */

struct seat *front_find(struct front *f, str name);
struct seat *front_find_group(struct front *f, const struct digest *owner);

/* NULL: *err says why. */
struct seat *front_seat(struct front *f, enum seat_kind kind, struct err *err);
void front_name_seat(struct seat *s, str name);
void front_end_seat(struct seat *s, const char *reason);
void front_look(struct seat *s);                    /* something happened to it */
void front_tick_seat(struct seat *s, uint64_t now); /* about once a second */

/* It has a visit, or none any more. */
void front_note_visits(struct seat *s);

/* The last of its messages has been answered: it may be long to the next one. */
void front_note_quiet(struct seat *s);
void front_settle(struct seat *s); /* …as it is where only a stream is asked for */

/* --- front_seal.c: ends --- */

void front_seal(struct seat *s); /* it is over; SEAT_DONE after a while */

/* --- front_visit.c: the client's endpoint --- */

extern const struct endpoint_type front_side, front_legacy_side;

struct visit *visit_new(struct seat *s, struct http_request *r, enum visit_kind kind,
                        struct err *err);
struct visit *visit_of(struct front *f, const struct exchange *x); /* NULL: it is over */
void visit_end(struct visit *v);    /* its answer is whole, or its client is gone */
void visit_accept(struct visit *v); /* 202 */
void visit_begin(struct visit *v);  /* the head of a stream of events */
void visit_begin_with(struct visit *v, unsigned status, str headers, uint64_t length);
void visit_pass(struct visit *v, str bytes); /* as they are */
void visit_label(struct visit *v, str id);   /* of the event that comes; NULL: none */
void visit_retry(struct visit *v, uint32_t ms);
void visit_close(struct visit *v, bool whole); /* the end of what has begun */
void visit_keep_alive(struct visit *v, uint64_t now);
void visit_drained(struct visit *v);
void visit_hear(struct seat *s); /* what nobody heard goes out, if somebody listens */

/* --- front_far.c: HTTP on both sides --- */

extern const struct endpoint_type front_far;

/* Ask the server what the visit asks us. When that fails, the client has been answered,
 * and the visit may be gone. */
int far_send(struct visit *v, str body, struct err *err);
void far_read(struct errand *x, bool on); /* what its answer says */
void far_abandon(struct errand *x);       /* its client is gone */
void far_go_on(struct seat *s);
void far_bury(struct front *f);  /* errands that are over */
void far_sweep(struct front *f); /* connections of no use */
void far_close(struct front *f); /* all of them */

/* What the server answered with. */
unsigned far_status(const struct errand *x, str *headers, uint64_t *length);

/* --- front_route.c: which way a request takes --- */

extern const struct http_server_events front_events;

/* The server does not know what it was asked: it may be of the older kind. The request is
 * taken anew, for a session that finds out. */
void front_fall_back(struct visit *v);

/* What waited for the session to read goes on. */
void front_hand_on(struct seat *s);

/* --- front_request.c: what may come in --- */

/* Hooks of the server. */
bool front_on_head(void *ctx, struct http_request *r);
void front_on_refusal(void *ctx, const struct http_head *head, unsigned status,
                      const char *why, struct buf *headers, struct buf *body);

bool front_is_path(const struct http_request *r, const char *path);
bool front_is_method(const struct http_request *r, const char *method);

/* Headers that every answer to this request has (CORS), into f->headers, emptied before.
 */
void front_begin_headers(struct front *f, const struct http_head *head);
void front_add_header(struct front *f, const char *name, str value);

/* An error of ours, with a JSON-RPC body. `id` is JSON text; empty: null. */
void front_refuse(struct front *f, struct http_request *r, unsigned status, int code,
                  str id, const char *fmt, ...) PRINTF_LIKE(6, 7);

#endif
