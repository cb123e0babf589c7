/* SPDX-License-Identifier: Apache-2.0 */
/* The client's side of a session over HTTP: what is said to it finds its request. */
#include <stdlib.h>

#include "pipeline/front_internal.h"

static struct seat *of(struct endpoint *e)
{
    return (struct seat *)e; /* its first member */
}

/* --- exchanges --- */

/* A number, not an address: a session may ask for one that is long over. */
static struct exchange *exchange_for(size_t slot, uint32_t generation)
{
    return (struct exchange *)(uintptr_t)((uint64_t)generation << 32 | (slot + 1));
}

struct visit *visit_of(struct front *f, const struct exchange *x)
{
    uint64_t n = (uint64_t)(uintptr_t)x;
    size_t slot = (uint32_t)n;

    if (slot == 0 || slot > f->slot_count)
        return NULL;
    return f->slots[slot - 1].generation == n >> 32 ? f->slots[slot - 1].visit : NULL;
}

static int make_slots(struct front *f, struct err *err)
{
    size_t count = f->slot_count ? f->slot_count * 2 : 64;
    struct slot *more = realloc(f->slots, count * sizeof(*more));

    if (!more)
        return err_set(err, ERR_NOMEM, "no memory for a request");
    for (size_t i = count; i-- > f->slot_count;) {
        more[i] = (struct slot){ .next_free = f->slot_free };
        f->slot_free = (uint32_t)i + 1;
    }
    f->slots = more;
    f->slot_count = count;
    return 0;
}

static int take_slot(struct visit *v, struct err *err)
{
    struct front *f = v->seat->front;
    struct slot *slot;

    if (f->slot_free == 0 && make_slots(f, err) < 0)
        return -1;
    slot = &f->slots[f->slot_free - 1];
    v->exchange = exchange_for(f->slot_free - 1, slot->generation);
    f->slot_free = slot->next_free;
    slot->visit = v;
    return 0;
}

static void leave_slot(const struct visit *v)
{
    struct front *f = v->seat->front;
    uint32_t at = (uint32_t)(uint64_t)(uintptr_t)v->exchange;
    struct slot *slot = &f->slots[at - 1];

    slot->visit = NULL;
    slot->generation++;
    slot->next_free = f->slot_free;
    f->slot_free = at;
}

/* --- visits --- */

static void note_accepts(struct visit *v)
{
    const struct http_head *h = v->request->head;
    struct http_list list = { 0 };
    str item;

    v->takes_json = v->takes_events = !http_head_find(h, "Accept", NULL).p;
    while (http_list_next(&list, h, "Accept", &item)) {
        str word = http_item_word(item);
        bool all = str_equal_nocase(word, STR("*/*"));

        v->takes_json = v->takes_json || all ||
                        str_equal_nocase(word, STR("application/json")) ||
                        str_equal_nocase(word, STR("application/*"));
        v->takes_events = v->takes_events || all ||
                          str_equal_nocase(word, STR("text/event-stream")) ||
                          str_equal_nocase(word, STR("text/*"));
    }
}

struct visit *visit_new(struct seat *s, struct http_request *r, enum visit_kind kind,
                        struct err *err)
{
    struct visit *v = malloc(sizeof(*v));

    if (!v) {
        err_set(err, ERR_NOMEM, "no memory for a request");
        return NULL;
    }
    *v = (struct visit){ .request = r,
                         .seat = s,
                         .kind = kind,
                         .spoke = loop_now(s->front->loop),
                         .tokens = { .max = JSON_MAX_BYTES - 1 } };
    if (take_slot(v, err) < 0) {
        free(v);
        return NULL;
    }
    note_accepts(v);
    r->owner = v;
    v->before = s->newest;
    *(s->newest ? &s->newest->next : &s->visits) = v;
    s->newest = v;
    s->posts += kind == VISIT_POST;
    if (s->visits == v)
        front_note_visits(s);
    s->trimmed = false;
    return v;
}

static void forget(struct seat *s, const struct visit *v)
{
    *(v->before ? &v->before->next : &s->visits) = v->next;
    *(v->next ? &v->next->before : &s->newest) = v->before;
    s->posts -= v->kind == VISIT_POST;
    s->waiting -= v->waits;
    s->queued -= v->queued;
    s->deserted |= v->kind == VISIT_POST && v->open > 0;
    s->last = loop_now(s->front->loop);
    if (s->stream == v)
        s->stream = NULL;
    if (s->speaking == v)
        s->speaking = NULL;
    if (!s->visits)
        front_note_visits(s);
    if (s->posts == 0)
        front_note_quiet(s);
}

void visit_end(struct visit *v)
{
    struct seat *s = v->seat;
    bool owed = v->queued > 0;

    forget(s, v);
    leave_slot(v);
    buf_release(&v->tokens);
    buf_release(&v->label);
    free(v);
    if (owed && s->queued == 0)
        front_soon(s);
}

static void count_queued(struct visit *v)
{
    size_t now = http_reply_queued(v->request);

    v->seat->queued += now - v->queued;
    v->queued = now;
}

void visit_drained(struct visit *v)
{
    struct seat *s = v->seat;

    count_queued(v);
    if (v->errand && v->queued == 0)
        far_read(v->errand, true);
    if (s->queued == 0 && s->side.events)
        s->side.events->on_drained(s->side.ctx);
}

/* --- answers --- */

static void begin_headers(struct visit *v, const char *type)
{
    struct front *f = v->seat->front;

    front_begin_headers(f, v->request->head);
    front_add_header(f, "Content-Type", str_from(type));
    if (v->seat->kind == SEAT_SESSION && v->seat->name.n)
        front_add_header(f, "Mcp-Session-Id", buf_str(&v->seat->name));
}

void visit_accept(struct visit *v)
{
    struct front *f = v->seat->front;
    struct http_request *r = v->request;

    begin_headers(v, "text/plain");
    visit_end(v);
    http_reply(r, 202, buf_str(&f->headers), STR("Accepted"));
}

void visit_begin_with(struct visit *v, unsigned status, str headers, uint64_t length)
{
    v->begun = v->raw = true;
    http_reply_begin(v->request, status, headers, length);
    http_request_forget(v->request);
}

/* The head is the server's where it has answered. */
void visit_begin(struct visit *v)
{
    struct front *f = v->seat->front;
    str headers = { NULL, 0 };
    uint64_t length;
    unsigned status = v->errand ? far_status(v->errand, &headers, &length) : 0;

    if (v->begun)
        return;
    if (!status) {
        begin_headers(v, "text/event-stream");
        front_add_header(f, "Cache-Control", STR("no-cache, no-transform"));
        front_add_header(f, "X-Accel-Buffering", STR("no"));
        headers = buf_str(&f->headers);
    }
    visit_begin_with(v, status ? status : 200, headers, HTTP_REPLY_CHUNKED);
    v->raw = false;
    if (v->kind == VISIT_STREAM)
        front_settle(v->seat);
}

/* A reader that stalls stops the answer that it does not read, and no other. */
void visit_pass(struct visit *v, str bytes)
{
    http_reply_add(v->request, bytes);
    v->spoke = loop_now(v->seat->front->loop);
    count_queued(v);
    if (v->errand && v->queued > RELAY_QUEUE_STOP)
        far_read(v->errand, false);
}

void visit_close(struct visit *v, bool whole)
{
    struct http_request *r = v->request;

    visit_end(v);
    if (whole)
        http_reply_end(r);
    else
        http_reply_abort(r);
}

void visit_label(struct visit *v, str id)
{
    buf_reset(&v->label);
    if (!id.p)
        return;
    v->label.max = SSE_ID_MAX + 1;
    buf_add_char(&v->label, ':');
    buf_add(&v->label, id);
}

void visit_retry(struct visit *v, uint32_t ms)
{
    CLEANUP(buf_release) struct buf out = { 0 };

    sse_put_retry(&out, ms);
    visit_pass(v, buf_str(&out));
}

/* The statuses by which a stateless client knows what its server is. */
static unsigned status_for(struct visit *v, str message)
{
    int code = v->stateless ? peek_error(&v->seat->front->said, message) : 0;

    if (code == -32601)
        return 404;
    return code == -32020 || code == -32021 || code == -32022 ? 400 : 200;
}

static str without_end(str bytes)
{
    while (bytes.n && (bytes.p[bytes.n - 1] == '\n' || bytes.p[bytes.n - 1] == '\r'))
        bytes.n--;
    return bytes;
}

static void send_json(struct visit *v, str message)
{
    struct front *f = v->seat->front;
    struct http_request *r = v->request;
    unsigned status = status_for(v, message);

    begin_headers(v, "application/json");
    visit_end(v);
    http_reply(r, status, buf_str(&f->headers), message);
}

/* The id of a message whose beginning is out follows it. */
static void end_event(struct visit *v, struct buf *out, bool began)
{
    if (began && v->label.n) {
        buf_add(out, STR("\nid: "));
        buf_add(out, str_skip(buf_str(&v->label), 1));
    }
    sse_close(&v->writer, out);
    buf_reset(&v->label);
}

static void send_event(struct visit *v, str bytes, bool end)
{
    CLEANUP(buf_release) struct buf out = { .max = 8 * bytes.n + 2 * SSE_ID_MAX };
    str id =
        end && v->label.n ? str_of(v->label.p + 1, v->label.n - 1) : (str){ NULL, 0 };
    bool began = v->inside;
    UNINITIALIZED struct err ignored;

    if (!began && sse_open(&v->writer, &out, STR("message"), id, &ignored) < 0)
        return;
    v->inside = !end;
    sse_add(&v->writer, &out, bytes);
    if (end)
        end_event(v, &out, began);
    visit_pass(v, buf_str(&out));
}

/* The server's own answer, and nothing but a message. */
static void send_body(struct visit *v, str bytes, bool end)
{
    struct http_request *r = v->request;
    uint64_t length;
    str headers;
    unsigned status = far_status(v->errand, &headers, &length);

    if (end && !v->begun) {
        http_reply(r, status, headers, bytes); /* the headers are the errand's */
        visit_end(v);
        return;
    }
    if (!v->begun)
        visit_begin_with(v, status, headers, length);
    visit_pass(v, bytes);
    if (end)
        visit_close(v, true);
}

static bool is_far(const struct visit *v)
{
    uint64_t length;
    str headers;

    return v->errand && far_status(v->errand, &headers, &length) && (!v->begun || v->raw);
}

static void send_to(struct visit *v, str bytes, bool end)
{
    bool last = end && v->kind == VISIT_POST && v->open == 0 && !v->errand;
    bool silent = v->errand && !v->begun; /* …as the server is, up to now */

    if (is_far(v)) {
        send_body(v, bytes, end);
        return;
    }
    if (end && (last || silent) && !v->begun && v->takes_json && !v->is_batch) {
        send_json(v, without_end(bytes));
        return;
    }
    visit_begin(v);
    send_event(v, end ? without_end(bytes) : bytes, end);
    if (last)
        visit_close(v, true);
}

void visit_keep_alive(struct visit *v, uint64_t now)
{
    if (now - v->spoke < FRONT_KEEP_ALIVE || v->inside || !v->takes_events || v->raw ||
        (!v->begun && v->seat->far.type))
        return; /* what the server is to say cannot be foreseen */
    visit_begin(v);
    visit_pass(v, STR(":\n\n"));
}

/* --- whom a message is for --- */

static bool has_token(const struct visit *v, str token)
{
    str rest = buf_str(&v->tokens), line;

    while (str_line(&rest, &line)) {
        if (str_equal(line, token))
            return true;
    }
    return false;
}

static struct visit *by_token(struct seat *s, str message)
{
    str token = peek_progress(&s->front->said, message);
    struct visit *v = token.n ? s->visits : NULL;

    while (v && !has_token(v, token))
        v = v->next;
    return v;
}

static struct visit *any_post(const struct seat *s)
{
    struct visit *v = s->visits;

    while (v && (v->kind != VISIT_POST || !v->takes_events || v->open == 0))
        v = v->next;
    return v;
}

/* What the server says by itself: of a request, if it says of which, else where the
 * client listens, else where it waits for something. The beginning of a message is taken
 * for that of the answer: see side_may_begin(). */
static struct visit *find_listener(struct seat *s, str message, bool end)
{
    struct visit *v = end && s->posts ? by_token(s, message) : NULL;

    if (!v && (end || s->kind == SEAT_LEGACY))
        v = s->stream;
    return v ? v : any_post(s);
}

static int keep_unheard(struct seat *s, str message, struct err *err)
{
    message = without_end(message);
    if (s->unheard.n + message.n + 1 > FRONT_UNHEARD_MAX) {
        front_say(s->front,
                  "a message of the server is lost: its client does not listen");
        return err_set(err, ERR_LIMIT, "the client does not listen");
    }
    s->unheard.max = FRONT_UNHEARD_MAX;
    for (size_t i = 0; i < message.n; i++)
        buf_add_char(&s->unheard,
                     message.p[i] == '\n' || message.p[i] == '\r' ? ' ' : message.p[i]);
    buf_add_char(&s->unheard, '\n');
    return buf_check(&s->unheard, "a message that nobody hears", err);
}

void visit_hear(struct seat *s)
{
    CLEANUP(buf_release) struct buf messages = s->unheard;
    str rest = buf_str(&messages), line;

    s->unheard = (struct buf){ 0 };
    while (s->stream && str_line(&rest, &line))
        send_to(s->stream, line, true);
}

/* --- the endpoint --- */

static void side_read(struct endpoint *e, bool on)
{
    struct seat *s = of(e);

    if (on && !s->reading)
        front_soon(s);
    s->reading = on;
}

static int side_send(struct endpoint *e, struct exchange *x, str bytes, bool end,
                     struct err *err)
{
    struct seat *s = of(e);
    struct visit *v = x ? visit_of(s->front, x) : s->speaking;

    if (!v && !x)
        v = find_listener(s, bytes, end);
    if (!v && !x && end && s->kind == SEAT_SESSION)
        return keep_unheard(s, bytes, err);
    if (!v)
        return err_set(err, ERR_PEER, "the client does not wait for it any more");
    if (!x)
        s->speaking = end ? NULL : v;
    send_to(v, bytes, end);
    return 0;
}

static void side_answers(struct endpoint *e, struct exchange *x, unsigned requests)
{
    struct visit *v = visit_of(of(e)->front, x);

    if (v)
        v->open -= requests < v->open ? requests : v->open;
}

/* Only where it can be for nobody else. */
static bool side_may_begin(const struct endpoint *e, const struct exchange *x)
{
    const struct seat *s = (const struct seat *)e;

    if (x)
        return true;
    if (s->speaking || s->kind == SEAT_LEGACY)
        return true;
    return s->posts == 1 && !s->deserted && any_post(s) != NULL;
}

static void side_cork(struct endpoint *e, bool on)
{
    (void)e; /* what is said goes to many */
    (void)on;
}

/* Where each answer has a connection of its own, each is stopped by itself. */
static size_t side_queued(const struct endpoint *e)
{
    const struct seat *s = (const struct seat *)e;

    return s->far.type ? 0 : s->queued;
}

static void side_cut(struct endpoint *e, struct exchange *x)
{
    struct seat *s = of(e);
    struct visit *v = x ? visit_of(s->front, x) : s->speaking;

    if (v && v->inside)
        visit_close(v, false);
}

static void side_take_label(struct endpoint *e, struct exchange *x, struct buf *out)
{
    struct visit *v = visit_of(of(e)->front, x);

    if (v)
        buf_add(out, buf_str(&v->label));
}

static void side_give_label(struct endpoint *e, struct exchange *x, str label)
{
    struct visit *v = visit_of(of(e)->front, x);

    if (v)
        visit_label(v, label.n ? str_of(label.p + 1, label.n - 1) : (str){ NULL, 0 });
}

/* Streams end; who waits for an answer has got an error by now. Who has cancelled gets an
 * answer without a message: a connection that breaks off is an error to some clients. */
static void side_finish(struct endpoint *e)
{
    struct seat *s = of(e);

    for (struct visit *v = s->visits, *next; v; v = next) {
        next = v->next;
        if (v->takes_events && !v->errand)
            visit_begin(v);
        visit_close(v, v->begun && !v->inside);
    }
}

/* They differ in what they are called. */
#define FRONT_SIDE(given)                                                                \
    {                                                                                    \
        .name = given, .read = side_read, .send = side_send, .cork = side_cork,          \
        .queued = side_queued, .finish = side_finish, .close = side_finish,              \
        .answers = side_answers, .may_begin = side_may_begin, .cut = side_cut,           \
        .take_label = side_take_label, .give_label = side_give_label,                    \
    }

const struct endpoint_type front_side = FRONT_SIDE("streamable-http");
const struct endpoint_type front_legacy_side = FRONT_SIDE("sse");
