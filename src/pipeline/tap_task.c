/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks that calls became; declared in tap_internal.h. */
#include <stdlib.h>
#include <string.h>

#include "pipeline/tap_internal.h"

struct tap_task *tap_find_task(const struct tap *t, const struct rpc *m)
{
    str id = rpc_source(m, rpc_task(m));
    struct tap_task *task = id.p ? t->tasks : NULL;

    while (task && !str_equal(str_of(task->id, task->n), id))
        task = task->next;
    return task;
}

struct tap_task *tap_task_of(const struct tap *t, uint64_t serial)
{
    struct tap_task *task = t->tasks;

    while (task && task->serial != serial)
        task = task->next;
    return task;
}

/* The task that a request of the client is about; 0 for none. */
uint64_t tap_task_asked(const struct tap *t, const struct rpc *m)
{
    const struct tap_task *task =
        t->direction == TO_SERVER &&
                (m->method == RPC_TASKS_GET || m->method == RPC_TASKS_RESULT ||
                 m->method == RPC_TASKS_CANCEL)
            ? tap_find_task(t, m)
            : NULL;

    return task ? task->serial : 0;
}

/* The answer of tasks/result is the result; the others tell a status. */
bool tap_task_ended(const struct rpc *m, enum rpc_method method, uint32_t *inner,
                    bool *is_error)
{
    if (method != RPC_TASKS_RESULT)
        return rpc_task_ended(m, inner, is_error);
    *inner = m->error != JSON_NONE ? m->error : m->result;
    *is_error = rpc_is_error(m);
    return true;
}

void tap_forget_task(struct tap *t, struct tap_task *task)
{
    struct tap_task **at = &t->tasks;

    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    free(task);
}

void tap_remember_task(struct tap *t, const struct rpc *m, struct open_call *call)
{
    str id = rpc_source(m, rpc_task(m));
    struct tap_task *task = id.p ? calloc(1, sizeof(*task) + id.n) : NULL;

    if (!task)
        return; /* its end is then told as task_unobserved */
    task->call = call;
    task->serial = ++t->task_serial;
    task->n = id.n;
    memcpy(task->id, id.p, id.n);
    task->next = t->tasks;
    t->tasks = task;
}
