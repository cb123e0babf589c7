/* SPDX-License-Identifier: Apache-2.0 */
/* What a session has while messages are under way, and gives back when it idles. */
#include <stdlib.h>

#include "base/err.h"
#include "pipeline/answer.h"
#include "pipeline/relay_internal.h"

#define FLUSH_AGAIN 1000 /* ms until what could not be written is tried again */

/* --- hooks of it --- */

static void on_flush(void *ctx)
{
    struct relay *r = ctx;
    struct err err;

    if (session_flush(r->session, &err) == 0)
        return;
    flow_failed(r, &err);
    if (r->desk)
        loop_timer_set(r->desk->flush, FLUSH_AGAIN, false);
}

static void on_call_timeout(void *ctx, str id, struct exchange *x, const char *receipt)
{
    CLEANUP(buf_release) struct buf answer = { 0 };
    struct relay *r = ctx;
    const struct answer a = { .id = id,
                              .code = -31007,
                              .message = STR("call timed out"),
                              .reason_code = STR("call_timeout"),
                              .receipt_id =
                                  receipt[0] ? str_from(receipt) : (str){ NULL, 0 } };

    answer_add(&answer, &a);
    flow_say(r, TO_CLIENT, x, buf_str(&answer));
}

static void on_judge(void *ctx, const struct tap *t, const struct rpc *m,
                     struct tap_verdict *out)
{
    struct relay *r = ctx;

    guard_judge(r->guard, t, m, out);
}

static void on_list(void *ctx, struct tap *t, const struct rpc *m)
{
    struct relay *r = ctx;

    if (r->upstream)
        upstream_learn(r->upstream, m);
    if (r->start.list)
        r->start.list(r->start.ctx, m);
    guard_list(r->guard, t, m);
}

/* --- taking and leaving it --- */

int relay_open_guard(struct relay *r, struct err *err)
{
    struct policy_file file = { 0 };
    const struct guard_options options = { .loop = r->loop,
                                           .log = r->o->log,
                                           .session = r->session,
                                           .file = r->o->policy ? &file : NULL,
                                           .server_id = r->o->server_id,
                                           .enforce = r->o->enforce,
                                           .pin = r->o->pin,
                                           .show_denied_tools = r->o->show_denied_tools,
                                           .is_http = relay_is_far(r),
                                           .told = r->o->told,
                                           .ready = flow_ready,
                                           .ready_ctx = r,
                                           .say = r->o->say,
                                           .say_ctx = r->o->say_ctx };

    if (r->o->policy && policy_file_copy(&file, r->o->policy, err) < 0)
        return -1;
    return guard_open(&r->guard, &options, err);
}

int relay_make_desk(struct relay *r, struct err *err)
{
    const struct tap_options tap = { .session = r->session,
                                     .store_arguments = r->o->store_arguments,
                                     .store_results = r->o->store_results,
                                     .passes = !r->o->block && !r->o->enforce,
                                     .pepper = r->o->pepper,
                                     .call_timeout = r->o->call_timeout,
                                     .seed = r->seed,
                                     .on_timeout = on_call_timeout,
                                     .judge = on_judge,
                                     .list = on_list,
                                     .ctx = r };
    const struct gate_options gate = { .loop = r->loop,
                                       .session = r->session,
                                       .one_by_one =
                                           log_durability_of(r->o->log) == LOG_STRICT,
                                       .release = flow_release,
                                       .empty = relay_on_gate_empty,
                                       .ctx = r };
    struct desk *k;

    if (!r->guard && relay_open_guard(r, err) < 0)
        return -1;
    k = calloc(1, sizeof(*k));
    if (!k)
        return err_set(err, ERR_NOMEM, "no memory for a message");
    if (loop_timer_new(&k->flush, r->loop, on_flush, r, err) < 0) {
        free(k);
        return -1;
    }
    tap_init(&k->tap, &tap);
    gate_init(&k->gate, &gate);
    for (int d = 0; d < 2; d++) {
        intake_init(&k->intake[d], log_dir(r->o->log), r->o->max_message);
        k->intake[d].may_lose = !r->o->block && !(d == TO_SERVER && r->o->enforce);
    }
    k->intake[TO_SERVER].yields = !r->o->enforce && relay_has_child(r);
    r->desk = k;
    return 0;
}

void relay_leave_desk(struct relay *r)
{
    struct desk *k = r->desk;

    if (!k)
        return;
    r->desk = NULL;
    loop_timer_free(k->flush);
    intake_release(&k->intake[0]);
    intake_release(&k->intake[1]);
    gate_release(&k->gate);
    buf_release(&k->line);
    tap_release(&k->tap);
    free(k);
}

static void clear_desk(struct desk *k)
{
    tap_trim(&k->tap);
    buf_release(&k->line);
    for (int d = 0; d < 2; d++) {
        if (k->intake[d].bytes == 0)
            buf_release(&k->intake[d].held);
    }
}

bool relay_trim(struct relay *r)
{
    struct desk *k = r->desk;
    bool blank;

    if (relay_holds(r) || session_is_gathering(r->session))
        return false;
    on_flush(r);
    if (k && tap_is_blank(&k->tap) && k->intake[0].bytes + k->intake[1].bytes == 0)
        relay_leave_desk(r);
    else if (k)
        clear_desk(k);
    session_trim(r->session);
    blank = r->guard && guard_trim(r->guard);
    if (blank && !r->desk) {
        guard_free(r->guard);
        r->guard = NULL;
    }
    return true;
}
