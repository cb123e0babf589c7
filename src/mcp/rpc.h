/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc - a JSON-RPC message of MCP, as nodes of an indexed text: what it is and where its
 * parts stand. Nothing is copied, nothing is judged: unknown methods, versions and
 * members are as good as known ones.
 *
 * Reads all versions: the initialize era (2024-11-05 to 2025-11-25) and the stateless one
 * (2026-07-28). Which one a message is of shows in the message itself.
 */
#ifndef MCP_RPC_H
#define MCP_RPC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "json/json.h"

enum rpc_kind {
    RPC_REQUEST,      /* method and id */
    RPC_NOTIFICATION, /* method, no id; a tools/call without id is one, too */
    RPC_RESPONSE,     /* result or error */
    RPC_INVALID,      /* none of these, or ambiguous: two members of the same name */
};

const char *rpc_kind_name(enum rpc_kind kind); /* "request" … as events have it */

/* The methods whose messages mean something to us. */
enum rpc_method {
    RPC_OTHER,
    RPC_INITIALIZE,
    RPC_DISCOVER,
    RPC_TOOLS_CALL,
    RPC_TOOLS_LIST,
    RPC_CANCELLED,
    RPC_PROGRESS,
    RPC_TASKS_GET,
    RPC_TASKS_RESULT,
    RPC_TASKS_CANCEL,
    RPC_TASKS_NOTIFICATION,
    RPC_SUBSCRIPTIONS_LISTEN, /* a request that is not answered while it lasts */
};

/* Nodes are JSON_NONE where a part is absent. */
struct rpc {
    const struct json *json;
    uint32_t node; /* the object itself: the whole text, or an element of a batch */
    enum rpc_kind kind;
    enum rpc_method method;
    uint32_t method_node, id, params, result, error;
};

/* Read the object at `node`. Anything that is no object is RPC_INVALID. */
void rpc_read(struct rpc *m, const struct json *j, uint32_t node);

/* The source text of a string between its quotes (escapes kept), as events carry method
 * and tool; the whole source text of anything else. {NULL, 0} when absent. */
str rpc_source(const struct rpc *m, uint32_t node);

/* Has it, or have its params, a member that some parsers take for one of ours, though its
 * case is another? `Method` is `method` to Go, and the last one counts. */
bool rpc_has_lookalikes(const struct rpc *m);

/* Is this member's name `name` to some parser: in another case, or up to a NUL? */
bool rpc_may_be_name(const struct json *j, uint32_t key, str name);

/* To a server in C a text ends at its first NUL, and "name\\u0000x" is another "name". Is
 * one in a name of the envelope or in the method; in a tools/call also in any other name,
 * or in that of the tool? */
bool rpc_has_nul(const struct rpc *m);

/* In the name of a member, anywhere in the value. */
bool rpc_has_nul_name(const struct json *j, uint32_t node);

/* --- tools/call --- */

uint32_t rpc_tool(const struct rpc *m);      /* params.name */
uint32_t rpc_arguments(const struct rpc *m); /* params.arguments */

/* W3C trace id of params._meta.traceparent: 32 lower-case hex digits; {NULL, 0} if none.
 */
str rpc_trace(const struct rpc *m);

/* params.requestState of a request, or result.requestState of an answer. */
uint32_t rpc_request_state(const struct rpc *m);

/* --- its answer --- */

/* A JSON-RPC error, or a result with isError true. */
bool rpc_is_error(const struct rpc *m);

/* result.resultType ("input_required", "task", …); "task" for a 2025-11-25 result.task.
 * {NULL, 0} for an ordinary result. Source text. */
str rpc_result_type(const struct rpc *m);

/* The task that an answer created, or that a message is about; JSON_NONE if none:
 * result.taskId, result.task.taskId, params.taskId. */
uint32_t rpc_task(const struct rpc *m);

/* A task that ended, in the answer of tasks/get, in notifications/tasks: its status is
 * cancelled, or completed or failed with a result or an error: *inner (JSON_NONE if it
 * has none). In 2025-11-25 these come only with the answer of tasks/result. */
bool rpc_task_ended(const struct rpc *m, uint32_t *inner, bool *is_error);

/* --- notifications/cancelled --- */

uint32_t rpc_cancelled_id(const struct rpc *m); /* params.requestId */

/* --- what headers repeat (2026-07-28) --- */

uint32_t rpc_stated_version(const struct rpc *m); /* params._meta's protocolVersion */

/* The parameter that Mcp-Name repeats: params.name, .uri or .taskId, by the method;
 * JSON_NONE if none. */
uint32_t rpc_name(const struct rpc *m);

/* --- ids --- */

/* Append the form by which an id is known again: the canonical JSON of a string or
 * number, its raw text where it has none. `1` and `"1"` differ, "a" and "\u0061" do not.
 */
void rpc_add_id_key(struct buf *out, const struct json *j, uint32_t id);

#endif
