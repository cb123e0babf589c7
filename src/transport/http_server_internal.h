/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_server_internal - what http_server.c (listening, time), http_served.c (reading
 * requests) and http_reply.c (answering) share, and nobody else sees.
 */
#ifndef TRANSPORT_HTTP_SERVER_INTERNAL_H
#define TRANSPORT_HTTP_SERVER_INTERNAL_H

#include <netinet/in.h>

#include "transport/http_body.h"
#include "transport/http_server.h"
#include "transport/link.h"

#define HTTP_DATE_TEXT 29                 /* "Sun, 06 Nov 1994 08:49:37 GMT" */
#define JOIN_MAX       ((size_t)32 << 10) /* bytes that are copied to be one write */

/* A connection. It is freed by attend() only, outside of whatever uses it. */
struct served {
    struct http_request request; /* first: what the owner holds is this */
    struct http_server *server;
    struct served *prev, *next; /* all */
    struct served *next_due;
    struct link link;
    struct http_head *head; /* NULL: none is being read, or held */
    struct http_body frame; /* where the body ends */
    struct buf body;
    struct buf in;        /* what came and waits for its turn */
    uint64_t until;       /* loop time; what it waits for is in the flags; 0: nothing */
    uint64_t stall_until; /* 0: nothing is queued */
    uint64_t stall_taken; /* then */
    uint64_t rate;        /* bytes of the body since the wait began */
    uint64_t left;        /* of the reply's announced length */
    char peer[INET6_ADDRSTRLEN];

    /* the connection */
    bool due;       /* attend() will look at it */
    bool dead;      /* its link is closed */
    bool lingering; /* all is answered; what still comes is passed over */
    bool eof;       /* the client will send no more */
    bool serving;   /* serve() is below us */

    /* the request */
    bool started;     /* its first byte has come */
    bool open;        /* the owner has it */
    bool in_body;     /* its body is still to come */
    bool passing;     /* ...and is passed over */
    bool keep;        /* another one may follow */
    bool is_head;     /* its method is HEAD */
    bool is_old;      /* HTTP/1.0 */
    bool waits_100;   /* it will not send its body before we say so */
    bool forgotten;   /* http_request_forget() */
    bool begun;       /* the head of the reply is out */
    bool chunked;     /* the reply: in chunks… */
    bool until_close; /* …or without an end of its own */
    bool bodiless;    /* …or without content, whatever is added */
};

struct http_listener {
    struct http_server *server;
    int fd;
    struct loop_watch *watch;
};

struct http_server {
    struct http_server_options options;
    struct http_server_limits limits;
    struct http_listener listeners[HTTP_SERVER_ADDRESSES];
    size_t listener_count;
    uint16_t port;
    struct loop_timer *tick;  /* runs while there is something to wait for */
    struct loop_chore attend; /* at the end of this turn */
    struct served *all, *due;
    size_t count, open_requests;
    size_t bodies;          /* bytes */
    uint64_t pause_until;   /* no descriptor was left; loop time */
    uint64_t plain_until;   /* a client without TLS was told of; loop time */
    bool paused, finishing; /* nobody is accepted */
    bool said;              /* that no descriptor is left */
    struct buf scratch;     /* what is written next */
    int64_t date_second;
    char date[HTTP_DATE_TEXT];
};

/* --- http_server.c --- */

void served_attend(struct served *c); /* look at it at the end of this turn */
void served_die(struct served *c);    /* cut it; the owner hears of it in time */

/* --- http_served.c --- */

extern const struct link_events served_events;

void served_resume(struct served *c); /* go on with what waits */
void served_expire(struct served *c); /* its wait is over */

/* Tell that no more is written and wait for the client's end. */
void served_linger(struct served *c);

/* The answer is whole. */
void served_answered(struct served *c);
void served_drop_body(struct served *c);

/* --- http_reply.c --- */

void served_send(struct served *c, str bytes);

#endif
