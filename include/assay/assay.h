/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libassay - record what MCP tools did, and prove it.
 *
 *     struct assay_error e;
 *     struct assay_log *log;
 *     struct assay_session *session;
 *     struct assay_call *call;
 *     struct assay_pack pack;
 *
 *     assay_log_open(&log, &(struct assay_log_options){ .dir = "audit" }, &e);
 *     assay_session_begin(&session, log, &(struct assay_session_options){ 0 }, &e);
 *     assay_call_request(&call, session, request, request_length, &e);   // then send it
 *     assay_call_response(call, response, response_length, &e);          // then use it
 *     assay_session_end(session, "client_eof", 1, &pack, &e);
 *     assay_log_close(log, &e);
 *
 * Everything that can fail returns 0 or -1 and takes a struct assay_error last, which
 * is untouched on success. Outputs are written only on success.
 *
 * Evidence before effect: when assay_call_request() returns 0 the request is in the log
 * and may be sent; when assay_call_response() returns 0 the answer and its receipt are in
 * the log and the answer may be used. When they return -1, neither may be done:
 *
 * - what was passed in was wrong, or the moment was (ASSAY_FORMAT, ASSAY_REFUSED, and
 *   ASSAY_LIMIT for a message too large): nothing was recorded, and nothing is missing;
 * - or evidence could not be written (most often ASSAY_SYSTEM, ASSAY_TIMEOUT): once it
 *   can be again, a `gap` event says first how much is missing, and the session is not
 *   complete.
 *
 * A handle is used by one thread at a time; several sessions of one log may be used by
 * several threads. Text is UTF-8. Pointers that are passed in are borrowed for the call.
 * The formats on disk are described in docs/log.md, docs/receipt.md and docs/pack.md.
 */
#ifndef ASSAY_ASSAY_H
#define ASSAY_ASSAY_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define ASSAY_API __attribute__((visibility("default")))
#else
#define ASSAY_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- errors --- */

enum assay_code {
    ASSAY_OK = 0,
    ASSAY_NO_MEMORY,
    ASSAY_LIMIT,   /* one of our limits: a message too large, too many of something */
    ASSAY_FORMAT,  /* what was passed in is not what it must be */
    ASSAY_REFUSED, /* right call, wrong moment */
    ASSAY_NOT_FOUND,
    ASSAY_EXISTS,
    ASSAY_DAMAGE,  /* evidence on disk is not what was written */
    ASSAY_TIMEOUT, /* another process holds the log */
    ASSAY_SYSTEM   /* the operating system said no */
};

struct assay_error {
    int code;          /* enum assay_code */
    char message[508]; /* one sentence */
};

ASSAY_API const char *assay_version(void); /* "0.1.0" */

/* --- the log --- */

struct assay_log;

enum assay_durability {
    ASSAY_WRITE = 0, /* evidence is in the kernel: survives the death of the process */
    ASSAY_GROUP,     /* on disk, many waiters share one sync */
    ASSAY_STRICT     /* on disk, a sync for each */
};

/* All zero but `dir` is a good start. */
struct assay_log_options {
    const char *dir;  /* the audit directory; made if it is not there */
    const char *home; /* where the keys are; NULL: $ASSAY_HOME, else ~/.assay */
    int durability;   /* enum assay_durability */

    /* Called with a sentence that a person should read: a key was made, a torn tail was
     * repaired. May be NULL. */
    void (*say)(void *context, const char *sentence);
    void *say_context;
};

/* Open the log of an audit directory, or begin one, with the active signing key. Many
 * processes may have it open; after a fork() the new one opens it for itself. */
ASSAY_API int assay_log_open(struct assay_log **out,
                             const struct assay_log_options *options,
                             struct assay_error *error);

/* Sync, sign a last checkpoint, and free the handle, whatever happens. Sessions must have
 * been ended or freed before; one that was freed without its end can be finished by
 * assay_log_recover() from then on. */
ASSAY_API int assay_log_close(struct assay_log *log, struct assay_error *error);

/* Sync and sign a checkpoint of everything so far. */
ASSAY_API int assay_log_checkpoint(struct assay_log *log, struct assay_error *error);

/* Finish the sessions of processes that died. *packs (may be NULL) is how many packs that
 * made. */
ASSAY_API int assay_log_recover(struct assay_log *log, uint64_t *packs,
                                struct assay_error *error);

/* --- a session --- */

struct assay_session;

/* All zero is a good start. Strings may be NULL. */
struct assay_session_options {
    const char *server_id;   /* "unknown" */
    const char *transport;   /* "stdio"; or "sse", "streamable-http" */
    const char *profile;     /* "audit"; or "guard" */
    const char *policy_hash; /* "sha256:" and 64 lower-case hex digits; or none */
    int store_arguments;     /* keep the arguments of calls in their receipts, readable */
    int store_results;       /* and their results */
    int pack_empty;          /* pack even when there was no call */
};

/* ASSAY_FORMAT when one of the strings is not as said above. */
ASSAY_API int assay_session_begin(struct assay_session **out, struct assay_log *log,
                                  const struct assay_session_options *options,
                                  struct assay_error *error);

ASSAY_API const char *assay_session_id(const struct assay_session *session);

/* Append an event that is not of a call. `type` is one of those in docs/log.md, except
 * those that other functions here write; `members` is a JSON object with its members
 * (strings, integers, booleans, arrays of strings; names of letters, digits and '_').
 * What does not belong to the type's form is refused. */
ASSAY_API int assay_session_event(struct assay_session *session, const char *type,
                                  const char *members, size_t length,
                                  struct assay_error *error);

/* A pack that was made. */
struct assay_pack {
    char path[4096]; /* "" when there was no call, and so no pack */
    char root[65];   /* pack_root_sha256 */
    uint64_t receipts;
    uint64_t events;
};

/* End the session: calls without an answer are recorded as lost, the session is sealed,
 * its pack built and verified. Frees the handle and the calls on success; after a failure
 * it may be tried again, and nothing else may be recorded once it was sealed.
 *
 * `reason` is one of the proper ends, "client_eof" (also for NULL), "signal", "sigint",
 * "sigterm", "server_exit", or a word of your own for an end that is none: a-z, 0-9 and
 * _, a letter first, up to 32 bytes. `clean` says that it ended as it should (a server:
 * with exit code 0); only a proper end can be clean, and only a clean one is complete. */
ASSAY_API int assay_session_end(struct assay_session *session, const char *reason,
                                int clean, struct assay_pack *pack,
                                struct assay_error *error);

/* Free without ending, as if the process had died. */
ASSAY_API void assay_session_free(struct assay_session *session);

/* --- a call --- */

struct assay_call;

/* Record a tools/call request, as the JSON-RPC message that it is. Valid until
 * assay_call_free() or the end of its session. */
ASSAY_API int assay_call_request(struct assay_call **out, struct assay_session *session,
                                 const char *message, size_t length,
                                 struct assay_error *error);

/* The request was handed to the server. Optional, as is assay_call_delivered(); either is
 * said once, and ASSAY_REFUSED when it was said before. */
ASSAY_API int assay_call_forwarded(struct assay_call *call, struct assay_error *error);

/* Record its answer, a JSON-RPC message with `result` or `error` and the id of the
 * request, and emit the receipt. After an answer that created a task, the task's result
 * may follow as a second one, under whatever id it came. */
ASSAY_API int assay_call_response(struct assay_call *call, const char *message,
                                  size_t length, struct assay_error *error);

/* The answer was handed to the client. Answers without this count as undelivered. */
ASSAY_API int assay_call_delivered(struct assay_call *call, struct assay_error *error);

/* There will be no answer: "call_timeout", "cancelled", "server_exit", "client_gone",
 * "shutdown" (also for NULL), "no_id" (the request had none), "task_unobserved" (nobody
 * saw the task end), "recorder_lost". Emits the receipt. */
ASSAY_API int assay_call_lost(struct assay_call *call, const char *reason,
                              struct assay_error *error);

/* mtc_<16 hex>, or "" while there is no receipt. */
ASSAY_API const char *assay_call_receipt(const struct assay_call *call);

ASSAY_API void assay_call_free(struct assay_call *call);

/* --- verification --- */

enum assay_verdict {
    ASSAY_SOUND = 0, /* nothing was changed since it was signed */
    ASSAY_UNSOUND    /* it was; `message` of the result says where */
};

struct assay_verification {
    int verdict;          /* enum assay_verdict */
    int has_log;          /* the pack proves that its events stand in the log */
    int session_complete; /* the session says that its record is complete; 0 of a part */
    uint64_t receipts;
    uint64_t findings;  /* how many things are wrong */
    char signer[65];    /* fingerprint of the key that signed; is it one you know? */
    char message[1024]; /* the first thing that is wrong; "" when nothing is */
};

/* Verify a pack. -1 only when that could not be found out. */
ASSAY_API int assay_verify_pack(const char *dir, struct assay_verification *result,
                                struct assay_error *error);

#ifdef __cplusplus
}
#endif

#endif
