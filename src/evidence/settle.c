/* SPDX-License-Identifier: Apache-2.0 */
/* For those who hold messages until the disk has their evidence; declared in session.h.
 */
#include "base/err.h"
#include "evidence/session_internal.h"

int session_later_event(struct session *s, struct open_call *call, struct event *e,
                        bool release, struct err *err)
{
    struct later *l;
    struct event spare;

    l = session_next_later(s, err);
    if (!l)
        return -1;
    spare = l->event;
    l->event = *e;
    l->call = call;
    l->release = release;
    *e = (struct event){ 0 };
    event_release(&spare);
    return 0;
}

void session_wait_begin(struct session *s, uint64_t upto, struct session_wait *w)
{
    *w = (struct session_wait){ .log = s->log, .receipts = -1, .upto = upto };
    if (log_durability_of(s->log) == LOG_WRITE || !s->receipts.dirty)
        return;
    w->receipts = s->receipts.fd;
    s->receipts.dirty = false; /* a line that comes now is the next wait's */
}

int session_wait(const struct session_wait *w, struct err *err)
{
    if (w->receipts >= 0 && file_datasync(w->receipts, err) < 0)
        return err_wrap(err, "cannot bring receipts to disk");
    return log_settle(w->log, w->upto, err);
}

void session_wait_end(struct session *s, const struct session_wait *w, int result)
{
    if (result < 0 && w->receipts >= 0)
        s->receipts.dirty = true;
}
