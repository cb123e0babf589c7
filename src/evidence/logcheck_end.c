/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a log's check: signatures, keys and derived files that should be there. */
#include <inttypes.h>
#include <time.h>

#include "base/err.h"
#include "evidence/head.h"
#include "evidence/logcheck_internal.h"

#define SIGN_WITHIN 10000 /* ms, by when an event must be signed */

static void check_end(struct walk *w)
{
    uint64_t size = w->range.size, most = w->newest.size;
    bool sound = w->out->serious == 0; /* behind damage, nothing more is known */

    for (; w->have_next; logcheck_next_checkpoint(w)) {
        if (w->next.size > most)
            most = w->next.size;
    }
    if (size < most)
        logcheck_find(w, LOGCHECK_SHORT,
                      "%" PRIu64 " event%s signed, %" PRIu64
                      " could be checked: the rest was cut off or lies behind the damage",
                      most, most == 1 ? " was" : "s were", size);
    if (w->out->remembered && w->remembered.size > size && sound)
        logcheck_find(w, LOGCHECK_ROLLBACK,
                      "this machine signed %" PRIu64 " event%s of this log, %" PRIu64
                      " %s here: it was rolled back, restored or copied",
                      w->remembered.size, plural(w->remembered.size), size,
                      size == 1 ? "is" : "are");
}

/* A recorder signs within a second of writing; what is older should be signed. */
static void check_signed(struct walk *w)
{
    uint64_t size = w->range.size, unsigned_events = size - w->out->signed_size;
    char ts[CLOCK_TEXT];

    if (w->out->serious || size == 0)
        return;
    if (w->out->signed_size == 0) {
        logcheck_find(w, LOGCHECK_UNSIGNED,
                      "no signature covers the log's %" PRIu64
                      " event%s: anyone may have written %s",
                      size, plural(size), size == 1 ? "it" : "them");
        return;
    }
    if (unsigned_events == 0 || !w->options->clock ||
        clock_now(w->options->clock) - w->last_ts < SIGN_WITHIN)
        return;
    clock_format(ts, w->last_ts);
    if (unsigned_events == 1)
        logcheck_find(w, LOGCHECK_PENDING,
                      "the last event, of %.*s, is not signed: its recorder died, or "
                      "somebody added it; the next recorder signs what it finds",
                      CLOCK_TEXT, ts);
    else
        logcheck_find(w, LOGCHECK_PENDING,
                      "the last %" PRIu64
                      " events, up to %.*s, are not signed: their recorder died, or "
                      "somebody added them; the next recorder signs what it finds",
                      unsigned_events, CLOCK_TEXT, ts);
}

/* One of the two places that a signature is kept in is gone. */
static void check_places(struct walk *w)
{
    bool listed = w->list.bytes.n > 0;

    if (w->newest.size == 0 && listed && w->out->signed_size > 0)
        logcheck_find(w, LOGCHECK_MISSING,
                      "'checkpoint' is missing; the list of checkpoints is there");
    if (w->newest.size > 0 && !listed)
        logcheck_find(w, LOGCHECK_MISSING,
                      "'checkpoints' is missing: only the newest checkpoint is there");
}

/* What is wrong with the head; NULL when nothing is. It may be ahead of us, as the log
 * may have grown since, but never behind a checkpoint. */
static const char *head_fault(const struct walk *w, const struct head *head)
{
    struct head_state s;

    if (!head_read(head, &s))
        return "is garbled";
    if (s.size < w->newest.size)
        return "is older than the newest checkpoint";
    if (s.size == w->range.size && !digest_equal(&s.last, &w->last))
        return "differs from the events";
    return NULL;
}

/* The head is derived; a wrong one costs nothing but should be known. */
static void check_head(struct walk *w)
{
    const struct timespec pause = { 0, 1000000 };
    struct head head = { .fd = -1 };
    struct err ignored;
    char path[FILE_PATH_MAX];
    const char *fault;
    unsigned looks = 0;

    if (path_join(path, w->log_dir, "head", &ignored) < 0 ||
        head_open_to_read(&head, path, &ignored) < 0)
        return;
    /* We take no lock: a writer may be in the middle of it. */
    while ((fault = head_fault(w, &head)) && looks++ < TAIL_LOOKS)
        nanosleep(&pause, NULL);
    if (fault)
        logcheck_find(w, LOGCHECK_HEAD, "the head %s; the next writer makes it anew",
                      fault);
    head_close(&head);
}

static void check_keys(struct walk *w)
{
    for (size_t i = 0; i < w->origin.count && w->out->serious == 0; i++) {
        if (!w->key_known[i] && w->range.size > 0)
            logcheck_find(w, LOGCHECK_CHECKPOINT,
                          "'origin' lists a key that no event of the log names");
    }
}

/* The keys that signed a note are good when one of them was. False when none was. */
static bool hand_over(const struct walk *w, str bytes, bool good[static ORIGIN_KEYS_MAX])
{
    bool by[ORIGIN_KEYS_MAX] = { false };
    bool any = false, vouched = false;
    struct err ignored;
    struct note note;

    if (note_parse(&note, bytes, &ignored) < 0)
        return true; /* said already */
    for (size_t i = 0; i < w->origin.count; i++) {
        by[i] = note_verify(&note, &w->origin.keys[i], 1) == NOTE_SIGNED;
        any |= by[i];
        vouched |= by[i] && good[i];
    }
    for (size_t i = 0; vouched && i < w->origin.count; i++)
        good[i] |= by[i];
    return vouched || !any;
}

/* The first checkpoint of a new key is signed by the one before it, too. Else anyone
 * could write a log of this name that goes over to a key of their own. */
static void check_succession(struct walk *w)
{
    CLEANUP(buf_release) struct buf newest = { .max = NOTE_MAX };
    const struct note_key *keys = w->origin.keys;
    bool good[ORIGIN_KEYS_MAX] = { false };
    str rest = w->list.bytes, note;
    struct checkpoint c;
    struct err ignored;
    bool handed = true;

    if (w->origin.count < 2)
        return;
    for (size_t i = 0; i < w->origin.count; i++)
        good[i] = note_key_equal(&keys[i], &keys[w->origin.count - 1]);
    while (handed && origin_next_note(&rest, &note))
        handed = hand_over(w, note, good);
    if (handed && origin_checkpoint(&w->origin, w->log_dir, &c, &newest, &ignored) == 0 &&
        newest.n)
        handed = hand_over(w, buf_str(&newest), good);
    if (!handed)
        logcheck_find(w, LOGCHECK_CHECKPOINT,
                      "a new key signed the log, and no signature of a key before it "
                      "shows that the log was handed over");
}

void logcheck_end(struct walk *w)
{
    check_end(w);
    check_signed(w);
    check_places(w);
    check_keys(w);
    check_succession(w);
    check_head(w);
}
