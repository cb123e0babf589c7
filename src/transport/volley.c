/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/volley.h"

#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <sys/socket.h>

struct volley {
    struct io_uring ring;
    bool open;    /* false: there is none, and it is not tried again */
    bool refused; /* it is there, but does not send */
};

static struct volley *make(void)
{
    struct volley *v = calloc(1, sizeof(*v));

    if (v)
        v->open = io_uring_queue_init(VOLLEY_MAX, &v->ring, 0) == 0;
    return v;
}

static void close_ring(struct volley *v)
{
    if (v->open)
        io_uring_queue_exit(&v->ring);
    v->open = false;
}

void volley_free(struct volley *v)
{
    if (v)
        close_ring(v);
    free(v);
}

/* Who would have to wait is told so: none of them outlives the call that sends it. */
static void load(struct volley *v, struct volley_shot *shots, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct io_uring_sqe *e = io_uring_get_sqe(&v->ring);

        assert(e); /* the ring is empty between two volleys */
        io_uring_prep_send(e, shots[i].fd, shots[i].bytes.p, shots[i].bytes.n,
                           MSG_DONTWAIT | MSG_NOSIGNAL);
        io_uring_sqe_set_data(e, &shots[i]);
        shots[i].result = -EIO; /* until we hear of it */
    }
}

/* An older kernel, or one that is told to, has a ring that does not know how to send. No
 * stream says this of itself; if one did, it says so again to who asks it alone. */
static bool is_refusal(int result)
{
    return result == -EINVAL || result == -EACCES || result == -EPERM ||
           result == -EOPNOTSUPP || result == -ENOSYS;
}

/* How many have been heard of. */
static unsigned collect(struct volley *v)
{
    struct io_uring_cqe *e;
    unsigned head, count = 0;

    io_uring_for_each_cqe(&v->ring, head, e)
    {
        struct volley_shot *shot = io_uring_cqe_get_data(e);

        v->refused = v->refused || is_refusal(e->res);
        shot->result = is_refusal(e->res) ? -EAGAIN : e->res;
        count++;
    }
    io_uring_cq_advance(&v->ring, count);
    return count;
}

/* The ring has failed. What it did not take was not sent; of what it took and did not
 * tell of nobody knows, so that connection is lost. */
static void give_up(struct volley *v, struct volley_shot *shots, size_t count)
{
    for (size_t left = io_uring_sq_ready(&v->ring); left; left--)
        shots[count - left].result = -EAGAIN;
    close_ring(v);
}

bool volley_fire(struct volley **out, struct volley_shot *shots, size_t count)
{
    struct volley *v = *out ? *out : (*out = make());
    size_t heard = 0;
    int r = 0;

    assert(count <= VOLLEY_MAX);
    if (!v || !v->open)
        return false;
    load(v, shots, count);
    while (heard < count && (r >= 0 || r == -EINTR)) {
        r = io_uring_submit_and_wait(&v->ring, (unsigned)(count - heard));
        heard += collect(v);
    }
    if (heard < count)
        give_up(v, shots, count);
    else if (v->refused)
        close_ring(v);
    return true;
}
