/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that will not be answered. */
#include "base/err.h"
#include "pipeline/answer.h"
#include "pipeline/relay_internal.h"

void flow_lose(struct relay *r, struct pending *p, const char *reason,
               const struct err *why_lost)
{
    CLEANUP(buf_release) struct buf line = { .max = JSON_MAX_BYTES };
    CLEANUP(buf_release) struct buf id = { .max = JSON_MAX_BYTES };
    CLEANUP(buf_release) struct buf sentence = { 0 };
    struct exchange *x = p->exchange;
    char receipt[ID_MAX] = "";
    struct answer a = { .code = ANSWER_SERVER_LOST, .reason_code = STR("server_lost") };

    buf_add(&id, str_of(p->bytes, p->raw_n));
    tap_give_up(&r->desk->tap, p, reason, receipt);
    buf_printf(&sentence, "server lost: %s", why_lost->msg);
    a.id = buf_str(&id);
    a.message = buf_str(&sentence);
    a.receipt_id = receipt[0] ? str_from(receipt) : (str){ NULL, 0 };
    answer_add(&line, &a);
    if (!r->client_gone)
        flow_say(r, TO_CLIENT, x, buf_str(&line));
}

void flow_lose_all(struct relay *r, const char *reason)
{
    static const struct err why_lost = { ERR_PEER, "it has ended" };
    struct pending *p = relay_oldest(r), *next;

    for (; p; p = next) {
        next = p->newer;
        if (!p->answered && !p->cancelled)
            flow_lose(r, p, reason, &why_lost);
    }
}
