/* SPDX-License-Identifier: Apache-2.0 */
/* The sessions behind a listener: their names, their places, their ends. */
#include <stdlib.h>

#include "base/codec.h"
#include "mcp/rpc.h"
#include "pipeline/front_internal.h"
#include "pipeline/share.h"

#define TRIM_AFTER 1000 /* ms */

/* --- names and places --- */

/* Names come from strangers: where one stands cannot be foreseen. */
static struct seat **chain_of(struct front *f, str name)
{
    uint32_t hash = f->seed ^ 2166136261u;

    for (size_t i = 0; i < name.n; i++)
        hash = (hash ^ (uint8_t)name.p[i]) * 16777619u;
    return &f->named[(hash ^ hash >> 15) % FRONT_NAMES];
}

struct seat *front_find(struct front *f, str name)
{
    struct seat *s = *chain_of(f, name);

    while (s && (s->state != SEAT_OPEN || !str_equal(buf_str(&s->name), name)))
        s = s->next_named;
    return s;
}

static void unname(struct seat *s)
{
    struct seat **at = chain_of(s->front, buf_str(&s->name));

    while (*at && *at != s)
        at = &(*at)->next_named;
    if (*at)
        *at = s->next_named;
    s->next_named = NULL;
}

void front_name_seat(struct seat *s, str name)
{
    struct seat **chain;

    unname(s);
    s->kind = s->kind == SEAT_GROUP ? SEAT_SESSION : s->kind;
    buf_release(&s->name);
    s->name.max = name.n; /* no more than it needs: there are many */
    buf_add(&s->name, name);
    chain = chain_of(s->front, buf_str(&s->name));
    s->next_named = *chain;
    *chain = s;
}

struct seat *front_find_group(struct front *f, const struct digest *owner)
{
    struct seat *s = f->seats;

    while (s && (s->state != SEAT_OPEN || s->kind != SEAT_GROUP ||
                 !digest_equal(&s->owner, owner)))
        s = s->next;
    return s;
}

static bool has_child(const struct seat *s)
{
    return s->front->relay.argv && (!s->member || s->own_share);
}

static void leave_idle(struct seat *s)
{
    struct front *f = s->front;

    if (!s->is_idle)
        return;
    *(s->before_idle ? &s->before_idle->next_idle : &f->idle_newest) = s->next_idle;
    *(s->next_idle ? &s->next_idle->before_idle : &f->idle_oldest) = s->before_idle;
    s->is_idle = false;
    f->idle_seats--;
}

static void join_idle(struct seat *s)
{
    struct front *f = s->front;

    s->before_idle = NULL;
    s->next_idle = f->idle_newest;
    *(f->idle_newest ? &f->idle_newest->before_idle : &f->idle_oldest) = s;
    f->idle_newest = s;
    s->is_idle = true;
    f->idle_seats++;
}

void front_note_visits(struct seat *s)
{
    s->trimmed = false;
    leave_idle(s);
    if (!s->visits && s->state == SEAT_OPEN)
        join_idle(s);
    if (s->front->idle_seats > FRONT_IDLE_MAX)
        front_end_seat(s->front->idle_oldest, "idle");
}

/* --- what messages need, between them --- */

static void leave_warm(struct seat *s)
{
    struct front *f = s->front;
    struct seat *before = NULL;

    if (!s->is_warm)
        return;
    for (struct seat *at = f->warm_oldest; at != s; at = at->next_warm)
        before = at;
    *(before ? &before->next_warm : &f->warm_oldest) = s->next_warm;
    if (!s->next_warm)
        f->warm_newest = before;
    s->next_warm = NULL;
    s->is_warm = false;
    f->warm_seats--;
}

void front_settle(struct seat *s)
{
    s->settles = true;
    front_soon(s);
}

/* What idle sessions give back is there for the others: many that come one after the
 * other do not leave holes behind, and those few that speak keep what they need. */
void front_note_quiet(struct seat *s)
{
    struct front *f = s->front;

    if (s->is_warm || s->state != SEAT_OPEN)
        return;
    *(f->warm_newest ? &f->warm_newest->next_warm : &f->warm_oldest) = s;
    f->warm_newest = s;
    s->is_warm = true;
    if (++f->warm_seats <= FRONT_WARM_MAX)
        return;
    s = f->warm_oldest;
    leave_warm(s);
    front_settle(s);
}

static void trim(struct seat *s)
{
    s->trimmed = relay_trim(s->relay);
    if (s->trimmed)
        leave_warm(s);
}

/* Unless it is asked for something again. */
static void settle(struct seat *s)
{
    s->settles = false;
    if (s->posts == 0 && !relay_is_busy(s->relay))
        trim(s);
}

/* --- beginning --- */

/* The one that has idled longest makes room. */
static bool make_room(struct front *f, bool child)
{
    struct seat *s = f->idle_oldest;

    if (child ? f->child_count < FRONT_CHILDREN_MAX : f->seat_count < FRONT_SESSIONS_MAX)
        return true;
    while (child && s && !has_child(s))
        s = s->before_idle;
    if (s)
        front_end_seat(s, "idle");
    return s != NULL;
}

static void on_over(void *ctx)
{
    struct seat *s = ctx;

    s->state = SEAT_OVER;
    front_soon(s);
}

static void on_list(void *ctx, const struct rpc *m)
{
    const struct seat *s = ctx;

    if (m->result != JSON_NONE)
        mirror_learn(&s->front->marks, m->json,
                     json_member(m->json, m->result, STR("tools")));
}

/* From here on no client's request is sent to it as if it were a newer one. */
static void on_found(void *ctx)
{
    const struct seat *s = ctx;

    s->front->is_old = true;
}

void front_end_seat(struct seat *s, const char *reason)
{
    if (s->state != SEAT_OPEN)
        return;
    s->state = SEAT_ENDING;
    leave_idle(s);
    relay_stop(s->relay, reason);
}

static void on_lost(void *ctx, struct exchange *x, str id, const struct err *why)
{
    relay_lose(ctx, x, id, why); /* who has taken the endpoint over */
}

static void on_server_ended(void *ctx, const struct share_end *end)
{
    relay_note_server_end(ctx, end->reason, end->status);
}

static void free_seat(struct seat *s)
{
    leave_idle(s);
    leave_warm(s);
    unname(s);
    relay_free(s->relay);
    share_free(s->own_share);
    buf_release(&s->name);
    buf_release(&s->unheard);
    free(s);
}

/* HTTP on both sides, and the same kind of it. */
static bool is_far(const struct seat *s)
{
    return front_is_far(s->front) && s->kind != SEAT_LEGACY && !s->front->is_asking;
}

static int name_seat(struct seat *s, struct err *err)
{
    const struct entropy *e = log_entropy(s->front->relay.log);
    uint8_t bytes[FRONT_SESSION_ID / 2];
    char text[FRONT_SESSION_ID + 1];

    if (s->kind == SEAT_GROUP || is_far(s))
        return 0;
    if (entropy_fill(e, bytes, sizeof(bytes), err) < 0)
        return -1;
    hex_encode(text, bytes, sizeof(bytes));
    front_name_seat(s, str_of(text, FRONT_SESSION_ID));
    return buf_check(&s->name, "a session's name", err);
}

/* A server for many has ids of many; one for one client hears that client's own. */
static int join_share(struct seat *s, struct err *err)
{
    struct front *f = s->front;
    const struct share_options options = { .loop = f->loop,
                                           .argv = f->relay.argv,
                                           .say = f->relay.say,
                                           .ctx = f->relay.say_ctx };
    const struct share_member_options member = { .lost = on_lost,
                                                 .ended = on_server_ended };

    if (!f->relay.argv || (!f->share && s->kind != SEAT_GROUP))
        return 0;
    if (!f->share && share_open(&s->own_share, &options, err) < 0)
        return -1;
    return share_join(f->share ? f->share : s->own_share, &member, &s->member, err);
}

static int begin_seat(struct seat *s, struct err *err)
{
    struct front *f = s->front;
    struct relay_start start = { .loop = f->loop,
                                 .steward = &f->steward,
                                 .turn = &f->turn,
                                 .client = &s->side,
                                 .list = on_list,
                                 .found = on_found,
                                 .over = on_over,
                                 .ctx = s };

    if (name_seat(s, err) < 0 || join_share(s, err) < 0)
        return -1;
    start.server = s->member;
    if (is_far(s)) {
        s->far.type = &front_far;
        start.server = &s->far;
        start.server_is_far = true;
    }
    return relay_open(&s->relay, &f->relay, &start, err);
}

struct seat *front_seat(struct front *f, enum seat_kind kind, struct err *err)
{
    struct seat *s;

    if (!make_room(f, false) || (f->relay.argv && !f->share && !make_room(f, true))) {
        err_set(err, ERR_LIMIT, "there are too many sessions");
        return NULL;
    }
    s = calloc(1, sizeof(*s));
    if (!s) {
        err_set(err, ERR_NOMEM, "no memory for a session");
        return NULL;
    }
    s->side.type = kind == SEAT_LEGACY ? &front_legacy_side : &front_side;
    s->front = f;
    s->kind = kind;
    s->last = loop_now(f->loop);
    if (begin_seat(s, err) < 0) {
        front_say(f, "no session can be begun: %s", err->msg);
        free_seat(s);
        return NULL;
    }
    s->next = f->seats;
    if (f->seats)
        f->seats->before = s;
    f->seats = s;
    f->seat_count++;
    f->child_count += has_child(s);
    f->outcome.sessions++;
    join_idle(s);
    return s;
}

/* --- the end of a session --- */

static void remove_seat(struct seat *s)
{
    struct front *f = s->front;

    *(s->before ? &s->before->next : &f->seats) = s->next;
    if (s->next)
        s->next->before = s->before;
    f->seat_count--;
    f->child_count -= has_child(s);
    free_seat(s);
}

void front_look(struct seat *s)
{
    if (s->state == SEAT_OVER)
        front_seal(s);
    if (s->state == SEAT_OPEN)
        front_hand_on(s);
    if (s->state == SEAT_OPEN && s->queued == 0)
        s->side.events->on_drained(s->side.ctx);
    if (s->state <= SEAT_ENDING)
        far_go_on(s);
    if (s->state == SEAT_OPEN && s->settles)
        settle(s);
    if (s->state == SEAT_DONE && !s->is_due)
        remove_seat(s);
}

void front_tick_seat(struct seat *s, uint64_t now)
{
    uint64_t wait = s->kind == SEAT_GROUP ? FRONT_IDLE_GROUP : FRONT_IDLE_SESSION;

    if (s->state == SEAT_OPEN || s->state == SEAT_ENDING)
        relay_tick(s->relay);
    if (s->undecided)
        front_soon(s);
    for (struct visit *v = s->visits, *next; v; v = next) {
        next = v->next;
        visit_keep_alive(v, now);
    }
    if (relay_is_busy(s->relay))
        wait = FRONT_IDLE_SESSION; /* what nobody waits for may still come */
    if (!s->trimmed && now - s->last >= TRIM_AFTER && s->state == SEAT_OPEN)
        trim(s);
    if (s->is_idle && now - s->last >= wait)
        front_end_seat(s, "idle");
}
