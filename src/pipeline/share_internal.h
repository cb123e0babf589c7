/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of share know of each other. */
#ifndef PIPELINE_SHARE_INTERNAL_H
#define PIPELINE_SHARE_INTERNAL_H

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "mcp/rpc.h"
#include "pipeline/share.h"
#include "pipeline/share_line.h"
#include "pipeline/share_rewrite.h"
#include "pipeline/splice.h"
#include "transport/child.h"
#include "transport/loop.h"
#include "transport/stdio.h"
#include "json/json.h"

#define SHARE_NUMBER_TEXT 24
#define SHARE_BUCKETS     4096

/* A request that went to the server (or waits to). */
struct ask {
    struct ask *older, *newer;
    struct ask *before, *after; /* of its bucket, while it is open */
    uint32_t bucket;
    uint64_t number;       /* its id there, and its progress token */
    struct member *member; /* NULL: nobody's any more, or our own */
    struct exchange *exchange;
    bool is_initialize, is_listen;
    bool has_token;
    bool is_ours;   /* initialize said again, and the like */
    bool held;      /* not sent yet: the server is not there */
    bool cancelled; /* by the member; an answer may still come */
    bool answered;  /* kept for the progress of its task, or to be freed soon */
    uint32_t number_n, id_n, key_n, token_n;
    char text[SHARE_NUMBER_TEXT];
    char bytes[]; /* id and token as the member wrote them, the id's key */
};

/* A request of the server that a member is to answer. */
struct asked {
    struct asked *next;
    struct member *member;
    size_t raw_n, key_n;
    char bytes[];
};

struct subscription {
    struct subscription *next;
    size_t n;
    char uri[]; /* JSON text, canonical */
};

enum parcel_kind {
    PARCEL_MESSAGE,
    PARCEL_LOST,
    PARCEL_END, /* its bytes are a share_end */
};

/* Something for a member. */
struct parcel {
    struct parcel *next;
    enum parcel_kind kind;
    struct exchange *exchange;
    const struct err *why; /* constant */
    size_t n;
    char bytes[];
};

struct member {
    struct endpoint endpoint; /* first */
    struct share *share;
    struct member *older, *newer;
    void (*lost)(void *ctx, struct exchange *x, str id, const struct err *why);
    void (*end)(void *ctx, const struct share_end *end); /* or NULL */
    struct buf partial; /* a message that is not complete yet */
    struct parcel *first, *last;
    size_t waiting; /* bytes of parcels */
    size_t open;    /* asks that are neither cancelled nor answered */
    struct subscription *subscriptions;
    size_t subscribed;
    const struct err *cut; /* off, why */
    bool reading, finishing, ended, drained, corked, closed, said_no_json;
};

enum share_phase {
    SHARE_RUNNING,
    SHARE_WAKING,  /* started again: waits for the answer to our initialize */
    SHARE_ENDING,  /* it exited, or reads no more: its last words */
    SHARE_DOWN,    /* a pause before the next start */
    SHARE_LEAVING, /* EOF was sent */
    SHARE_TERMINATING,
    SHARE_OVER,
};

struct share {
    struct share_options o;
    enum share_phase phase;
    struct child child;
    int status;        /* as from waitpid(2), of one that exited */
    bool silent;       /* its stdout is at its end */
    struct stdio side; /* endpoint.type is NULL when there is none */
    struct loop_timer *deadline, *wake, *stall;
    uint64_t started, pause; /* ms */
    struct share_line line;  /* of the server */
    struct json json;
    struct splice splice;
    struct buf key, scratch;
    struct member *oldest, *newest;
    struct ask *first_ask, *last_ask;
    struct ask *dead; /* by `newer`; the message at hand may still need their texts */
    struct map asks;  /* by number */
    struct bucket {
        struct ask *first, *last;
    } buckets[SHARE_BUCKETS]; /* by member and id: what is open */
    struct asked *asked;
    size_t asked_count;
    uint64_t number;       /* of the last request */
    uint64_t hello_number; /* of the initialize that is remembered; 0: none */
    bool hello_ok;         /* it was answered with a result */
    struct buf hello, initialized;
    struct buf held;
    unsigned corks;
    bool busy;     /* delivering */
    bool said_bad; /* of this life: a line that is no message */
    bool awake;    /* initialize was answered again */
    bool full;     /* the server is not read: a member does not read */
    void (*gone)(void *ctx);
    void *gone_ctx;
};

extern const struct err share_why_ended, share_why_start, share_why_held, share_why_open,
    share_why_queue, share_why_large, share_why_slow, share_why_memory,
    share_why_ambiguous, share_why_batch;

void share_say(const struct share *s, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* --- share_book.c: what is open --- */

/* The form by which an id is known again, until the next call. */
str share_key(struct share *s, const struct json *j, uint32_t id);

struct ask *share_ask_add(struct share *s, struct member *m, struct exchange *x, str id,
                          str key, str token); /* NULL: no room */
struct ask *share_ask_get(const struct share *s, uint64_t number);
struct ask *share_ask_find(const struct share *s, const struct member *m, str id,
                           str key); /* the oldest that is open */
void share_ask_close(struct share *s, struct ask *a,
                     bool answered);                 /* it is open no more */
void share_ask_free(struct share *s, struct ask *a); /* its texts live until… */
void share_trim(struct share *s); /* …this, which is due after each message */
str share_ask_number(const struct ask *a);
str share_ask_id(const struct ask *a);
str share_ask_token(const struct ask *a);
struct ask *share_ask_newest(const struct share *s);

/* Nobody waits for it any more. */
void share_ask_cancel(struct share *s, struct ask *a); /* an answer may still come */
void share_ask_forget(struct share *s, struct ask *a); /* …but is nobody's then */

/* All that were sent, or all that are held, will not be answered. */
void share_ask_lose(struct share *s, bool held, const struct err *why);

int share_asked_add(struct share *s, struct member *m, str raw, str key);
struct asked *share_asked_find(const struct share *s, const struct member *m,
                               str key);                            /* m NULL: of any */
bool share_asked_of(const struct share *s, const struct member *m); /* any? */
void share_asked_free(struct share *s, struct asked *a);
void share_asked_clear(struct share *s);
str share_asked_raw(const struct asked *a);

bool share_subscribe(struct member *m, str uri); /* false: no room */
bool share_unsubscribe(struct member *m, str uri);
bool share_is_subscribed(const struct member *m, str uri,
                         bool exactly); /* else also to one above it */

/* --- share_send.c: to the server --- */

bool share_to_server(struct share *s, struct member *m, struct exchange *x,
                     str text); /* false: nothing of it goes there */
void share_send_cancel(struct share *s, const struct ask *a);
void share_send_resource(struct share *s, bool subscribe, str uri);
void share_refuse(struct share *s, str id, str message); /* a request of the server's */
bool share_send_hello(struct share *s); /* initialize again; false: not needed */
void share_release_held(struct share *s);

/* --- share_route.c: from the server --- */

void share_from_server(struct share *s, str text);
void share_from_server_long(struct share *s, str outline);

/* --- share_member.c --- */

void share_put(struct member *m, enum parcel_kind kind, struct exchange *x, str bytes,
               const struct err *why);
void share_wake(struct share *s);    /* deliver soon */
void share_deliver(struct share *s); /* from the loop only */
void share_member_free(struct member *m);
void share_on_wake(void *ctx);
void share_on_stall(void *ctx);
void share_drained(struct share *s); /* all that was sent is out */
struct member *share_newest_member(const struct share *s);

/* --- share.c --- */

void share_awake(struct share *s); /* what was held goes */
void share_set_reading(struct share *s);
void share_hear_out(struct share *s); /* the server is at its end */

#endif
