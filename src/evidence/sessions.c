/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/sessions.h"

#include <inttypes.h>

#include "base/err.h"
#include "evidence/segment.h"

#define PROGRESS_EVERY 65536 /* events */

void sessions_release(struct sessions *s)
{
    arena_release(&s->arena);
    map_release(&s->by_id);
    *s = (struct sessions){ 0 };
}

static void copy_id(char out[static ID_MAX], str id)
{
    size_t n = id.n < ID_MAX ? id.n : ID_MAX - 1;

    if (n)
        memcpy(out, id.p, n);
    out[n] = '\0';
}

static str member_text(struct sessions *s, const struct event_view *v, const char *name)
{
    CLEANUP(buf_release) struct buf text = { .max = EVENT_LINE_MAX };
    uint32_t node = json_member(v->json, JSON_ROOT, str_from(name));

    if (json_is(v->json, node, JSON_STRING))
        json_unescape(v->json, node, &text);
    return arena_dup(&s->arena, buf_str(&text));
}

static int begin_session(struct sessions *s, const struct event_view *v, uint64_t key,
                         struct err *err)
{
    struct sessions_entry *e = arena_new(&s->arena, struct sessions_entry);

    if (!e)
        return err_set(err, ERR_LIMIT, "the log has too many sessions to list");
    copy_id(e->id, v->session);
    copy_id(e->writer, v->writer);
    e->server_id = member_text(s, v, "server_id");
    e->first = e->part_from = v->seq;
    e->started_at = v->ts;
    if (s->last)
        s->last->next = e;
    else
        s->first = e;
    s->last = e;
    s->count++;
    return map_put(&s->by_id, key, e, err);
}

static int end_part(struct sessions *s, struct sessions_entry *e,
                    const struct event_view *v, struct err *err)
{
    struct sessions_part *p = arena_new(&s->arena, struct sessions_part);

    if (!p)
        return err_set(err, ERR_LIMIT, "the log has too many sessions to list");
    p->cut = (struct session_cut){ .from = e->part_from,
                                   .to = v->seq + 1,
                                   .part = ++e->part_count,
                                   .final = e->ended,
                                   .metadata_ts = v->ts };
    copy_id(p->cut.metadata_id, event_text(v, "receipt_id"));
    e->part_from = v->seq + 1;
    if (e->last)
        e->last->next = p;
    else
        e->parts = p;
    e->last = p;
    return 0;
}

static int take_event(struct sessions *s, const struct event_view *v, struct err *err)
{
    bool has_call = event_text(v, "call").n > 0;
    struct sessions_entry *e;
    uint64_t key;

    if (!id_number(&key, v->session))
        return 0;
    if (v->type == EVENT_SESSION_START && !map_get(&s->by_id, key) &&
        begin_session(s, v, key, err) < 0)
        return -1;
    e = map_get(&s->by_id, key);
    if (!e)
        return 0;
    e->events++;
    e->calls += v->type == EVENT_REQUEST_RECEIVED && has_call;
    if (v->type == EVENT_SESSION_END) {
        e->ended = true;
        e->ended_at = v->ts;
        event_bool(v, "complete", &e->complete);
    }
    return v->type == EVENT_RECEIPT && !has_call ? end_part(s, e, v, err) : 0;
}

static int read_all(struct sessions *s, struct segment_reader *reader,
                    const struct sessions_options *o, struct err *err)
{
    CLEANUP(json_release) struct json json = { 0 };
    enum segment_step step;
    str line;

    for (;;) {
        struct event_view v;

        if (segment_next(reader, &step, &line, err) < 0)
            return -1;
        if (step != SEGMENT_LINE)
            return 0;
        if (o->on_progress && reader->next.seq % PROGRESS_EVERY == 0)
            o->on_progress(o->ctx, reader->next.seq, 0);
        if (o->only && !memmem(line.p, line.n, o->only, strlen(o->only)))
            continue;
        if (event_parse(&v, &json, line, err) < 0) {
            err->code = ERR_DAMAGE;
            return err_wrap(err, "event %" PRIu64, reader->next.seq - 1);
        }
        if (v.session.n && (!o->only || str_is(v.session, o->only)) &&
            take_event(s, &v, err) < 0)
            return -1;
    }
}

int sessions_read(struct sessions *s, const char *audit_dir,
                  const struct sessions_options *options, struct err *err)
{
    CLEANUP(segment_close) struct segment_reader reader = { 0 };
    struct sessions read = { 0 };
    char path[FILE_PATH_MAX];

    if (path_join(path, audit_dir, "log", err) < 0 ||
        segment_open_seq(&reader, path, 0, err) < 0)
        return -1;
    arena_init(&read.arena, SESSIONS_MEMORY);
    if (read_all(&read, &reader, options, err) < 0) {
        sessions_release(&read);
        return -1;
    }
    *s = read;
    return 0;
}
