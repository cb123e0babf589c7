/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/tap.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "pipeline/tap_internal.h"

static const str direction_names[] = { { "c2s", 3 }, { "s2c", 3 } };

void tap_init(struct tap *t, const struct tap_options *options)
{
    *t = (struct tap){ .options = *options };
    t->asked[TO_SERVER].seed = options->seed;
    t->asked[TO_CLIENT].seed = ~options->seed;
    t->key.max = JSON_MAX_BYTES;
    t->content.max = RECEIPT_MAX;
    t->answers.max = t->replies.max = TAP_ANSWERS_MAX;
}

void tap_release(struct tap *t)
{
    correlate_release(&t->asked[0]);
    correlate_release(&t->asked[1]);
    tap_forget_refusals(t);
    while (t->tasks) {
        struct tap_task *next = t->tasks->next;

        free(t->tasks);
        t->tasks = next;
    }
    tap_trim(t);
    free(t->states);
}

void tap_trim(struct tap *t)
{
    correlate_trim(&t->asked[0]);
    correlate_trim(&t->asked[1]);
    json_release(&t->json);
    splice_release(&t->splice);
    buf_release(&t->key);
    buf_release(&t->content);
    buf_release(&t->answers);
    buf_release(&t->replies);
    free(t->passages);
    t->passages = NULL;
    t->passage_count = t->passage_cap = 0;
}

bool tap_is_blank(const struct tap *t)
{
    return t->asked[0].count + t->asked[1].count == 0 && !t->refusals && !t->tasks &&
           !t->states && !t->failing;
}

bool tap_is_asked(const struct tap *t)
{
    const struct pending *p = t->asked[TO_SERVER].oldest;

    while (p && (p->answered || p->cancelled || p->method == RPC_SUBSCRIPTIONS_LISTEN))
        p = p->newer;
    return p != NULL;
}

/* Its events end at `upto`; the first of them is the message's. */
static void note_place(struct tap *t, uint64_t upto, unsigned events)
{
    if (t->upto == 0)
        t->seq = upto - events;
    t->upto = upto;
}

/* --- what an event says of a message --- */

const struct message *tap_describe(struct tap *t, const struct rpc *m, uint64_t index)
{
    if (t->is_said && m == &t->rpc)
        return &t->said;
    t->said = (struct message){ .dir = direction_names[t->direction],
                                .kind = str_from(rpc_kind_name(m->kind)),
                                .bytes = t->frame.n,
                                .digest = content_text(&t->digest),
                                .in_batch = t->is_batch,
                                .batch = index };
    t->is_said = m == &t->rpc && !t->is_batch;
    if (m->kind == RPC_INVALID)
        return &t->said;
    t->said.method = rpc_source(m, m->method_node);
    if (m->id != JSON_NONE)
        t->said.id = json_raw(m->json, m->id);
    if (m->method == RPC_TOOLS_CALL)
        t->said.tool = rpc_source(m, rpc_tool(m));
    return &t->said;
}

int tap_remember_passage(struct tap *t, enum event_type type, uint32_t node,
                         struct open_call *call, bool release, struct err *err)
{
    if (t->passage_count == t->passage_cap) {
        size_t cap = t->passage_cap ? t->passage_cap * 2 : 8;
        void *more = realloc(t->passages, cap * sizeof(*t->passages));

        if (!more)
            return err_set(err, ERR_NOMEM, "no memory for a batch");
        t->passages = more;
        t->passage_cap = cap;
    }
    t->passages[t->passage_count++] =
        (struct passage){ type, node, t->index, call, release, false };
    return 0;
}

int tap_put_event(struct tap *t, struct event *e, struct err *err)
{
    uint64_t upto;

    if (session_put(t->options.session, e, &upto, err) < 0)
        return -1;
    note_place(t, upto, 1);
    return 0;
}

/* Record an event that is of no call. */
static int put(struct tap *t, const struct rpc *m, uint64_t index,
               enum event_type received, enum event_type forwarded, struct err *err)
{
    CLEANUP(event_release) struct event e = { 0 };
    const struct message *message = tap_describe(t, m, index);

    if (tap_remember_passage(t, forwarded, m->node, NULL, false, err) < 0)
        return -1;
    message_event(&e, received, message);
    return tap_put_event(t, &e, err);
}

/* --- ids --- */

struct pending *tap_find_pending(struct tap *t, enum direction asked, uint32_t id,
                                 const struct exchange *x)
{
    struct pending *p;

    buf_reset(&t->key);
    rpc_add_id_key(&t->key, &t->json, id);
    p = correlate_find(&t->asked[asked], json_raw(&t->json, id), buf_str(&t->key), x);
    return p && x && asked == TO_SERVER && t->own && p->exchange != x ? NULL : p;
}

/* One that nobody waits for any more goes before its time, with its receipt. */
static void make_room(struct tap *t, enum direction asked)
{
    struct correlate *c = &t->asked[asked];
    struct pending *p = c->count >= CORRELATE_MAX ? correlate_spare(c) : NULL;

    if (!p)
        return;
    if (p->call)
        tap_lose(t, p, "cancelled");
    tap_forget_pending(t, asked, p);
}

static int add_pending(struct tap *t, const struct rpc *m, struct exchange *x,
                       uint64_t now, struct pending **out, struct err *err)
{
    make_room(t, t->direction);
    buf_reset(&t->key);
    rpc_add_id_key(&t->key, &t->json, m->id);
    if (correlate_add(&t->asked[t->direction], json_raw(&t->json, m->id),
                      buf_str(&t->key), out, err) < 0)
        return -1;
    (*out)->method = m->method;
    (*out)->exchange = x;
    (*out)->at = now;
    t->lists_open += m->method == RPC_TOOLS_LIST && t->direction == TO_SERVER;
    return 0;
}

void tap_forget_pending(struct tap *t, enum direction asked, struct pending *p)
{
    t->lists_open -= p->method == RPC_TOOLS_LIST && asked == TO_SERVER;
    correlate_remove(&t->asked[asked], p);
}

/* --- calls --- */

static str content_of(struct tap *t, uint32_t node, bool wanted)
{
    buf_reset(&t->content);
    if (!wanted || node == JSON_NONE || !content_add(&t->content, &t->json, node))
        return (str){ NULL, 0 };
    return buf_str(&t->content);
}

static int hash_of(struct tap *t, uint32_t node, struct content_hash *out,
                   struct err *err)
{
    if (node != JSON_NONE)
        return content_hash(out, &t->json, node, t->options.pepper, err);
    content_digest(out, STR("{}"), t->options.pepper); /* missing arguments */
    return 0;
}

/* A client may spell it otherwise than the server did. */
static struct digest state_of(struct tap *t, uint32_t node)
{
    buf_reset(&t->key);
    rpc_add_id_key(&t->key, &t->json, node);
    return digest_of(buf_str(&t->key));
}

/* The receipt of the leg that gave out this requestState; NULL when it is not known. */
static const char *leg_before(struct tap *t, const struct rpc *m)
{
    uint32_t node = rpc_request_state(m);
    struct digest d;

    if (node == JSON_NONE)
        return NULL;
    d = state_of(t, node);
    for (size_t i = 0; t->states && i < TAP_STATES; i++) {
        if (t->states[i].receipt[0] && digest_equal(&t->states[i].state, &d))
            return t->states[i].receipt;
    }
    return NULL;
}

static void remember_leg(struct tap *t, const struct rpc *m, const struct open_call *call)
{
    uint32_t node = rpc_request_state(m);
    size_t at = t->state_next % TAP_STATES;

    if (node != JSON_NONE && !t->states)
        t->states = calloc(TAP_STATES, sizeof(*t->states));
    if (node == JSON_NONE || !t->states)
        return;
    t->states[at].state = state_of(t, node);
    snprintf(t->states[at].receipt, ID_MAX, "%s", call->call.receipt_id);
    t->state_next++;
}

int tap_record_request(struct tap *t, const struct rpc *m, uint64_t index,
                       struct open_call **call, struct err *err)
{
    const struct message *message = tap_describe(t, m, index);
    uint32_t arguments = rpc_arguments(m);
    struct content_hash hash;
    struct call_request request;
    uint64_t upto;

    if (hash_of(t, arguments, &hash, err) < 0)
        return -1;
    request = (struct call_request){
        .arguments_hash = content_text(&hash),
        .raw_reason = hash.reason[0] ? str_from(hash.reason) : (str){ NULL, 0 },
        .trace = rpc_trace(m),
        .content = content_of(t, arguments, t->options.store_arguments),
        .parent = leg_before(t, m),
        .decision = t->verdict.decision,
    };
    if (session_request(t->options.session, message, &request, call, &upto, err) < 0)
        return -1;
    note_place(t, upto, 1);
    return 0;
}

/* A call without an id gets no answer: its receipt is due at once. */
static int take_call(struct tap *t, const struct rpc *m, uint64_t index,
                     struct exchange *x, uint64_t now, struct err *err)
{
    struct open_call *call = NULL;
    struct pending *p = NULL;

    if (m->kind == RPC_REQUEST && add_pending(t, m, x, now, &p, err) < 0)
        return -1;
    if (tap_record_request(t, m, index, &call, err) < 0) {
        if (p && !t->options.passes) /* else its answer must find whoever asked */
            correlate_remove(&t->asked[t->direction], p);
        return -1;
    }
    if (p) {
        p->call = call;
        return tap_remember_passage(t, EVENT_REQUEST_FORWARDED, m->node, call, false,
                                    err);
    }
    if (session_lose(t->options.session, call, "no_id", &t->upto, err) < 0)
        return -1;
    return tap_remember_passage(t, EVENT_REQUEST_FORWARDED, m->node, call, true, err);
}

/* The answer's event and the receipt's. */
static int respond(struct tap *t, struct open_call *call, const struct message *message,
                   const struct call_response *response, struct err *err)
{
    uint64_t upto;

    if (session_respond(t->options.session, call, message, response, &upto, err) < 0)
        return -1;
    note_place(t, upto, 2);
    return 0;
}

/* --- tasks --- */

/* The first sight of a task's end: one more receipt of its call. */
static int end_task(struct tap *t, const struct rpc *m, uint64_t index,
                    struct tap_task *task, uint32_t inner, bool is_error, struct err *err)
{
    const struct message *message = tap_describe(t, m, index);
    struct open_call *call = task->call;
    struct content_hash hash;
    struct call_response response;

    if (hash_of(t, inner, &hash, err) < 0)
        return -1;
    response = (struct call_response){
        .result_hash = content_text(&hash),
        .raw_reason = hash.reason[0] ? str_from(hash.reason) : (str){ NULL, 0 },
        .is_error = is_error,
        .content = content_of(t, inner, t->options.store_results),
    };
    if (respond(t, call, message, &response, err) < 0)
        return -1;
    tap_forget_task(t, task);
    return tap_remember_passage(t, EVENT_RESPONSE_SENT, m->node, call, true, err);
}

/* --- answers --- */

static int record_answer(struct tap *t, const struct rpc *m, uint64_t index,
                         struct open_call *call, str result_type, struct err *err)
{
    const struct message *message = tap_describe(t, m, index);
    uint32_t node = m->error != JSON_NONE ? m->error : m->result;
    struct content_hash hash;
    struct call_response response;

    if (hash_of(t, node, &hash, err) < 0)
        return -1;
    response = (struct call_response){
        .result_hash = content_text(&hash),
        .raw_reason = hash.reason[0] ? str_from(hash.reason) : (str){ NULL, 0 },
        .is_error = rpc_is_error(m),
        .result_type = result_type,
        .content = content_of(t, node, t->options.store_results),
    };
    return respond(t, call, message, &response, err);
}

static int answer_call(struct tap *t, const struct rpc *m, uint64_t index,
                       struct pending *p, struct err *err)
{
    struct open_call *call = p->call;
    str type = rpc_result_type(m);
    bool task = str_is(type, "task");

    if (record_answer(t, m, index, call, type, err) < 0) {
        tap_forget_pending(t, TO_SERVER, p);
        return -1;
    }
    tap_forget_pending(t, TO_SERVER, p);
    remember_leg(t, m, call);
    if (task)
        tap_remember_task(t, m, call);
    return tap_remember_passage(t, EVENT_RESPONSE_SENT, m->node, call, !task, err);
}

/* We have told the client that the call timed out; it must not hear of it twice. */
static int take_late(struct tap *t, const struct rpc *m, uint64_t index,
                     struct pending *p, struct err *err)
{
    CLEANUP(event_release) struct event e = { 0 };
    const struct message *message = tap_describe(t, m, index);

    correlate_remove(&t->asked[TO_SERVER], p);
    if (tap_remember_passage(t, EVENT_MESSAGE_FORWARDED, m->node, NULL, false, err) < 0)
        return -1;
    tap_withhold(t);
    message_event(&e, EVENT_RESPONSE_LATE, message);
    return tap_put_event(t, &e, err);
}

static int take_response(struct tap *t, const struct rpc *m, uint64_t index,
                         const struct exchange *x, struct err *err)
{
    enum direction asked = t->direction == TO_CLIENT ? TO_SERVER : TO_CLIENT;
    struct pending *p = m->id == JSON_NONE || json_is(&t->json, m->id, JSON_NULL)
                            ? NULL
                            : tap_find_pending(t, asked, m->id, x);
    struct tap_task *task;
    uint32_t inner = JSON_NONE;
    bool is_error = false, is_list;
    int r;

    if (!p) /* an answer to nothing that we know of */
        return put(t, m, index, EVENT_MESSAGE_RECEIVED, EVENT_MESSAGE_FORWARDED, err);
    if (p->answered)
        return take_late(t, m, index, p, err);
    t->asker = p->exchange;
    t->answered++;
    if (p->call)
        return answer_call(t, m, index, p, err);
    task = p->task ? tap_task_of(t, p->task) : NULL;
    if (task && !tap_task_ended(m, p->method, &inner, &is_error))
        task = NULL;
    is_list = p->method == RPC_TOOLS_LIST && asked == TO_SERVER;
    tap_forget_pending(t, asked, p);
    if (task)
        return end_task(t, m, index, task, inner, is_error, err);
    r = put(t, m, index, EVENT_RESPONSE_RECEIVED, EVENT_RESPONSE_SENT, err);
    if (is_list && t->options.list)
        t->options.list(t->options.ctx, t, m); /* whatever became of the evidence */
    return r;
}

/* --- requests and notifications --- */

static int take_request(struct tap *t, const struct rpc *m, uint64_t index,
                        struct exchange *x, uint64_t now, struct err *err)
{
    struct pending *p;

    if (m->method == RPC_TOOLS_CALL && t->direction == TO_SERVER)
        return take_call(t, m, index, x, now, err);
    if (add_pending(t, m, x, now, &p, err) < 0)
        return -1;
    p->task = tap_task_asked(t, m);
    return put(t, m, index, EVENT_REQUEST_RECEIVED, EVENT_REQUEST_FORWARDED, err);
}

static int take_cancellation(struct tap *t, const struct rpc *m, uint64_t index,
                             uint64_t now, struct err *err)
{
    CLEANUP(event_release) struct event e = { 0 };
    uint32_t id = rpc_cancelled_id(m);
    struct pending *p =
        id == JSON_NONE ? NULL : tap_find_pending(t, t->direction, id, NULL);
    const struct message *message = tap_describe(t, m, index);
    uint64_t upto;

    if (p && !p->cancelled) {
        p->cancelled = true;
        p->at = now; /* from here on it has TAP_CANCEL_GRACE */
    }
    if (!p || !p->call)
        return put(t, m, index, EVENT_NOTIFICATION_RECEIVED, EVENT_NOTIFICATION_FORWARDED,
                   err);
    if (tap_remember_passage(t, EVENT_NOTIFICATION_FORWARDED, m->node, NULL, false, err) <
        0)
        return -1;
    message_event(&e, EVENT_NOTIFICATION_RECEIVED, message);
    if (session_note(t->options.session, p->call, &e, &upto, err) < 0)
        return -1;
    note_place(t, upto, 1);
    return 0;
}

static int take_notification(struct tap *t, const struct rpc *m, uint64_t index,
                             uint64_t now, struct err *err)
{
    struct tap_task *task;
    uint32_t inner = JSON_NONE;
    bool is_error = false;

    if (m->method == RPC_TOOLS_CALL && t->direction == TO_SERVER)
        return take_call(t, m, index, NULL, now, err);
    if (m->method == RPC_CANCELLED)
        return take_cancellation(t, m, index, now, err);
    task = m->method == RPC_TASKS_NOTIFICATION ? tap_find_task(t, m) : NULL;
    if (task && rpc_task_ended(m, &inner, &is_error))
        return end_task(t, m, index, task, inner, is_error, err);
    return put(t, m, index, EVENT_NOTIFICATION_RECEIVED, EVENT_NOTIFICATION_FORWARDED,
               err);
}

static int take(struct tap *t, uint32_t node, uint64_t index, struct exchange *x,
                uint64_t now, struct err *err)
{
    const struct rpc *m = &t->rpc;

    rpc_read(&t->rpc, &t->json, node);
    t->is_said = false;
    if (tap_is_refused(t, m))
        return tap_refuse(t, m, index, err);
    switch (m->kind) {
    case RPC_REQUEST:
        return take_request(t, m, index, x, now, err);
    case RPC_NOTIFICATION:
        return take_notification(t, m, index, now, err);
    case RPC_RESPONSE:
        return take_response(t, m, index, x, err);
    case RPC_INVALID:
        break;
    }
    return put(t, m, index, EVENT_MESSAGE_RECEIVED, EVENT_MESSAGE_FORWARDED, err);
}

str tap_text(str frame)
{
    if (frame.n && frame.p[frame.n - 1] == '\n')
        frame.n--;
    return frame;
}

static int take_all(struct tap *t, struct exchange *x, uint64_t now, struct err *err)
{
    uint64_t index = 0;
    int r = 0;

    t->index = 0;
    if (!t->is_batch)
        return take(t, JSON_ROOT, 0, x, now, err);
    if (tap_write(t, err) < 0) /* of its elements there may be any number */
        return -1;
    json_each (&t->json, JSON_ROOT, at) {
        t->index = index;
        if (take(t, at, index++, x, now, err) < 0)
            r = -1; /* the others are recorded all the same */
    }
    return r;
}

/* Not JSON: a node that says so. */
static int take_invalid(struct tap *t, struct err *err)
{
    CLEANUP(event_release) struct event e = { 0 };
    struct rpc none = { .kind = RPC_INVALID, .node = JSON_NONE, .id = JSON_NONE };

    if (tap_is_refused(t, &none))
        return tap_refuse(t, &none, 0, err);
    if (tap_remember_passage(t, EVENT_MESSAGE_FORWARDED, JSON_NONE, NULL, false, err) < 0)
        return -1;
    message_event(&e, EVENT_MESSAGE_RECEIVED, tap_describe(t, &none, 0));
    return tap_put_event(t, &e, err);
}

/* What is too deep or too much for an index is a message all the same: as much of its
 * outline as can be had. */
static int parse(struct tap *t, struct err *bad)
{
    struct json_limits limits = { .max_nodes = TAP_NODES_MAX };

    if (t->json.cap > TAP_NODES_KEPT)
        json_release(&t->json);
    if (json_parse(&t->json, t->frame, &limits, bad) == 0)
        return 0;
    limits.opaque_depth = TAP_OUTLINE;
    for (; bad->code == ERR_LIMIT && limits.opaque_depth; limits.opaque_depth--) {
        if (json_parse(&t->json, t->frame, &limits, bad) == 0)
            return 0;
    }
    return -1;
}

static int record(struct tap *t, struct exchange *x, uint64_t now, struct err *err)
{
    UNINITIALIZED struct err bad; /* why it is no JSON: parse() looks at it then */

    if (!json_take(&t->json, t->given, t->frame, TAP_NODES_MAX) && parse(t, &bad) < 0)
        return take_invalid(t, err);
    t->is_batch =
        json_is(&t->json, JSON_ROOT, JSON_ARRAY) && json_count(&t->json, JSON_ROOT) > 0;
    return take_all(t, x, now, err);
}

int tap_receive(struct tap *t, enum direction d, str frame, struct exchange *x,
                uint64_t now, struct err *err)
{
    t->direction = d;
    t->frame = tap_text(frame);
    t->withheld = 0;
    t->cut = false;
    t->unjudged = false;
    t->verdict = (struct tap_verdict){ 0 };
    buf_reset(&t->answers);
    buf_reset(&t->replies);
    splice_begin(&t->splice, frame);
    t->passage_count = 0;
    t->asker = NULL;
    t->answered = 0;
    t->upto = 0;
    t->is_batch = false;
    t->rpc.json = NULL; /* nothing is read yet */
    content_digest(&t->digest, t->frame, t->options.pepper);
    t->failing = tap_make_room(t, err) < 0 || record(t, x, now, err) < 0;
    if (t->failing)
        return -1;
    tap_settle_refusals(t);
    return 0;
}
