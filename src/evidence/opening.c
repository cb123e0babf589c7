/* SPDX-License-Identifier: Apache-2.0 */
/* How a session begins, or goes on where a dead writer stopped; declared in session.h. */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/utf8.h"
#include "evidence/session_internal.h"
#include "evidence/terms.h"

#define SESSION_HEX 8 /* digits of the session's id in the name of its receipts file */

static void compose_start(struct session *s, const struct session_options *o)
{
    struct event *e = &s->drafts->event;

    event_init(e, EVENT_SESSION_START);
    event_add_cstr(e, "server_id", o->server_id);
    event_add_cstr(e, "transport", o->transport);
    event_add_cstr(e, "client_transport", o->client_transport);
    event_add_cstr(e, "profile", o->profile);
    if (o->policy_hash)
        event_add_cstr(e, "policy_hash", o->policy_hash);
    if (o->investigation)
        event_add_bool(e, "investigation", true);
}

static int name_receipts(struct session *s, const char *id, struct err *err)
{
    char stamp[CLOCK_STAMP];
    char name[LIVE_NAME_MAX];

    clock_stamp(stamp, clock_now(log_clock(s->log)));
    snprintf(name, sizeof(name), "session_%.*s_%.*s.jsonl", CLOCK_STAMP, stamp,
             SESSION_HEX, id + strlen("mcp_"));
    return receipts_init(&s->receipts, log_dir(s->log), name, err);
}

static int remember_start(struct session *s, const char *id,
                          const struct session_options *o, int64_t ts, struct err *err)
{
    const struct receipt_session facts = {
        .id = str_from(id),
        .server_id = str_from(o->server_id),
        .transport = str_from(o->transport),
        .client_transport = str_from(o->client_transport),
        .profile = str_from(o->profile),
        .policy_hash = str_from(o->policy_hash),
        .proxy_version = STR(ASSAY_VERSION),
        .started_at = ts,
    };

    size_t room = facts.server_id.n + facts.transport.n + facts.client_transport.n +
                  facts.profile.n + facts.policy_hash.n + facts.proxy_version.n +
                  TERM_MAX; /* another transport may be found */

    return history_begin(&s->history, &facts, room, err);
}

/* Listed as living before it is begun: whoever dies here leaves nothing unlisted. */
static int start(struct session *s, const char *id, const struct session_options *o,
                 struct err *err)
{
    uint64_t seq = 0;

    if (session_draft(s, 1, err) < 0)
        return -1;
    compose_start(s, o);
    if (session_begin(s, 1, err) < 0)
        return -1;
    if (remember_start(s, id, o, log_time(s->log), err) < 0 ||
        log_note_session(s->log, id, log_next(s->log), s->receipts.name, err) < 0 ||
        session_add(s, &s->drafts->event, &seq, err) < 0)
        return session_give_up(s, 1, err);
    if (session_commit(s, NULL, err) < 0)
        return -1;
    s->history.first = s->history.part_from = seq;
    history_count(&s->history, EVENT_SESSION_START, false, seq);
    return 0;
}

static int check_texts(const struct session_options *o, struct err *err)
{
    const char *const texts[] = { o->server_id, o->transport, o->client_transport,
                                  o->profile, o->policy_hash };

    for (size_t i = 0; i < COUNT(texts); i++) {
        if (!utf8_valid(str_from(texts[i])))
            return err_set(err, ERR_FORMAT, "what a session is called must be UTF-8");
    }
    return 0;
}

/* What no verifier would accept must not begin. */
static int check_terms(const struct session_options *o, struct err *err)
{
    if (!term_is_transport(o->transport) || !term_is_transport(o->client_transport))
        return err_set(err, ERR_FORMAT,
                       "the transport of a session is stdio, sse or streamable-http");
    if (!term_is_profile(o->profile))
        return err_set(err, ERR_FORMAT, "the profile of a session is audit or guard");
    if (o->policy_hash && !term_is_policy_hash(o->policy_hash))
        return err_set(err, ERR_FORMAT,
                       "the policy hash of a session is 'sha256:' and 64 lower-case hex "
                       "digits");
    return 0;
}

int session_open(struct session **out, const struct session_options *options,
                 struct err *err)
{
    struct session *s = calloc(1, sizeof(*s));
    char id[ID_MAX];

    if (!s)
        return err_set(err, ERR_NOMEM, "no memory for a session");
    s->log = options->log;
    entropy_pool_init(&s->ids, log_entropy(options->log));
    s->pack_empty = options->pack_empty;
    s->lines_wait = options->flushed && log_durability_of(s->log) == LOG_WRITE &&
                    log_on_failure_of(s->log) == LOG_PASS;
    s->lost_before = log_lost_total(options->log);
    s->receipts.fd = -1;
    if (check_texts(options, err) < 0 || check_terms(options, err) < 0 ||
        session_new_id(s, id, "mcp_", err) < 0 || name_receipts(s, id, err) < 0 ||
        start(s, id, options, err) < 0) {
        session_free(s);
        return -1;
    }
    *out = s;
    return 0;
}

int session_resume(struct session **out, struct log *log, struct history *h,
                   const char *receipts, struct err *err)
{
    struct session *s = calloc(1, sizeof(*s));

    if (!s)
        return err_set(err, ERR_NOMEM, "no memory for a session");
    s->log = log;
    entropy_pool_init(&s->ids, log_entropy(log));
    s->resumed = true;
    s->lost_before = log_lost_total(log);
    s->receipts.fd = -1;
    if (receipts_init(&s->receipts, log_dir(log), receipts, err) < 0) {
        session_free(s);
        return -1;
    }
    s->history = *h;
    s->history.session.id = str_from(s->history.id);
    *h = (struct history){ 0 };
    *out = s;
    return 0;
}
