/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"
#include "evidence/log_internal.h"

const char *log_dir(const struct log *log)
{
    return log->dir;
}

const char *log_writer(const struct log *log)
{
    return log->writer;
}

const char *log_origin(const struct log *log)
{
    return log->origin.name;
}

uint64_t log_written(const struct log *log)
{
    return atomic_load_explicit(&log->written, memory_order_relaxed);
}

const struct clock *log_clock(const struct log *log)
{
    return &log->clock;
}

const struct entropy *log_entropy(const struct log *log)
{
    return &log->entropy;
}

enum log_durability log_durability_of(const struct log *log)
{
    return log->durability;
}

enum log_on_failure log_on_failure_of(const struct log *log)
{
    return log->on_failure;
}

void log_tell(const struct log *log, const char *fmt, ...)
{
    char sentence[512];
    va_list ap;

    if (!log->say)
        return;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof(sentence), fmt, ap);
    va_end(ap);
    log->say(log->say_ctx, sentence);
}

/* --- the end of the log --- */

int log_open_segment(struct log *log, uint64_t first, bool create, struct err *err)
{
    char path[FILE_PATH_MAX];
    int flags = O_RDWR | O_APPEND | O_NOFOLLOW | (create ? O_CREAT : 0);
    int fd;

    if (segment_path(path, log->log_dir, first, err) < 0)
        return -1;
    fd = file_open(path, flags, log->file_mode, err);
    if (fd < 0)
        return -1;
    file_close(&log->segment_fd);
    log->segment_fd = fd;
    log->segment = first;
    log->segment_is_last = false;
    return 0;
}

/* Is there no segment that goes on where this one ends? A head that was rewound, or that
 * the others no longer have, may say just that of a segment that is long closed. */
static bool is_last_segment(const struct log *log)
{
    char path[FILE_PATH_MAX];
    struct err ignored;

    if (log->state.segment == log->state.size)
        return true;
    return segment_path(path, log->log_dir, log->state.size, &ignored) == 0 &&
           access(path, F_OK) < 0 && errno == ENOENT;
}

/* Does the segment end where the head says, and is it still in its directory? Its times
 * are not asked for: the kernel would have to make the next write's a new one. */
static bool segment_agrees(struct log *log)
{
    UNINITIALIZED struct statx st;

    if (statx(log->segment_fd, "", AT_EMPTY_PATH, STATX_SIZE | STATX_NLINK | STATX_MODE,
              &st) < 0 ||
        st.stx_nlink == 0 || st.stx_size != log->state.offset)
        return false;
    if (!log->segment_is_last || !log->can_mark || (st.stx_mode & LOG_CLOSED))
        log->segment_is_last = is_last_segment(log);
    return log->segment_is_last;
}

static int mark_closed(const struct log *log, struct err *err)
{
    if (log->can_mark && fchmod(log->segment_fd, log->file_mode | LOG_CLOSED) < 0)
        return err_errno(err, "cannot close the segment");
    return 0;
}

/* Files are looked at now and then, though nobody else should have touched them: that one
 * is gone is no secret for long, and what is written meanwhile is in those that were
 * opened. */
static bool look_is_due(const struct log *log)
{
    return (uint64_t)(log_monotonic() - log->looked) >= LOG_LOOK_AFTER;
}

static int look_at_place(struct log *log, struct err *err)
{
    if (!look_is_due(log))
        return 0;
    if (log_check_place(log, err) < 0)
        return -1;
    log->looked = log_monotonic();
    return 0;
}

int log_load(struct log *log, struct err *err)
{
    uint64_t suspect;
    UNINITIALIZED struct err ignored;

    log->current = false;
    if (look_at_place(log, err) < 0 ||
        (head_suspect(&log->head, &suspect) && log_reseat(log, err) < 0))
        return -1;
    if (!head_is_as_left(&log->head) && !head_read(&log->head, &log->state))
        return log_recover(log, err);
    if ((log->segment_fd < 0 || log->segment != log->state.segment) &&
        log_open_segment(log, log->state.segment, false, &ignored) < 0)
        return log_recover(log, err);
    return segment_agrees(log) ? 0 : log_recover(log, err);
}

/* --- loss --- */

/* Messages name paths, and those may be any bytes; an event holds UTF-8. */
static void put_reason(char *out, size_t size, str said)
{
    size_t n = 0;

    while (said.n) {
        uint32_t c;
        size_t width = utf8_next(said, &c);
        str next = width ? str_first(said, width) : STR("?");

        if (n + next.n >= size)
            break;
        memcpy(out + n, next.p, next.n);
        n += next.n;
        said = str_skip(said, width ? width : 1);
    }
    out[n] = '\0';
}

void log_lost(struct log *log, uint64_t events, const char *reason)
{
    int64_t now = clock_now(&log->clock);

    pthread_mutex_lock(&log->loss_mutex);
    if (log->loss.events == 0)
        log->loss.from = now;
    log->loss.to = now;
    log->loss.events += events;
    log->lost_total += events;
    put_reason(log->loss.reason, sizeof(log->loss.reason), str_from(reason));
    pthread_mutex_unlock(&log->loss_mutex);
}

uint64_t log_lost_total(const struct log *log)
{
    return log->lost_total;
}

/* How many lost events have no `gap` event yet? The batch is to tell of them. */
static uint64_t take_gap(struct log *log)
{
    uint64_t told = log->gap.events, fresh;

    if (log->lost_total == log->told_total)
        return 0;
    pthread_mutex_lock(&log->loss_mutex);
    fresh = log->loss.events - told;
    if (fresh)
        log->gap = log->loss;
    pthread_mutex_unlock(&log->loss_mutex);
    return fresh;
}

static int put_gap(struct log *log, uint64_t lost, struct err *err)
{
    CLEANUP(event_release) struct event e = { 0 };
    char from[CLOCK_TEXT], to[CLOCK_TEXT];

    clock_format(from, log->gap.from);
    clock_format(to, log->gap.to);
    event_init(&e, EVENT_GAP);
    event_add_int(&e, "lost", (int64_t)lost);
    event_add_cstr(&e, "reason", log->gap.reason);
    event_add_text(&e, "from_ts", str_of(from, sizeof(from)));
    event_add_text(&e, "to_ts", str_of(to, sizeof(to)));
    return log_put(log, &e, NULL, err);
}

/* The gap event stands in the log: that loss is told. */
static void settle_gap(struct log *log)
{
    if (log->gap.events == 0)
        return;
    pthread_mutex_lock(&log->loss_mutex);
    log->loss.events -= log->gap.events;
    pthread_mutex_unlock(&log->loss_mutex);
    log->told_total += log->gap.events;
    log_tell(log, "evidence of %" PRIu64 " event%s was lost (%s); a gap is recorded",
             log->gap.events, plural(log->gap.events), log->gap.reason);
    log->gap.events = 0;
}

int log_add_repair(struct log *log, const struct repair *r, struct err *err)
{
    if (log->repair_count == REPAIRS_MAX)
        return err_set(err, ERR_LIMIT, "too many repairs at once");
    log->repairs[log->repair_count++] = *r;
    return 0;
}

static int put_repairs(struct log *log, struct err *err)
{
    CLEANUP(event_release) struct event e = { 0 };

    for (unsigned i = 0; i < log->repair_count; i++) {
        const struct repair *r = &log->repairs[i];

        event_init(&e, EVENT_REPAIR);
        event_add_int(&e, "offset", (int64_t)r->offset);
        event_add_int(&e, "bytes", (int64_t)r->bytes);
        event_add_digest(&e, "sha256", &r->sha256);
        event_add_cstr(&e, "reason", r->reason);
        if (log_put(log, &e, NULL, err) < 0)
            return -1;
    }
    return 0;
}

/* --- begin, put, commit --- */

/* What must be told before the caller's events. */
static int put_own(struct log *log, struct err *err)
{
    uint64_t lost;

    if (!log->gathered.some && log->repair_count && put_repairs(log, err) < 0)
        return -1;
    lost = take_gap(log);
    return lost ? put_gap(log, lost, err) : 0;
}

/* Where nothing may pass without evidence, a segment that is gone is seen at once. */
static bool must_load(const struct log *log)
{
    uint64_t suspect;

    return !log->current || log->on_failure == LOG_BLOCK ||
           head_suspect(&log->head, &suspect) || look_is_due(log);
}

/* An empty batch at the end of the log. */
static int begin_batch(struct log *log, struct err *err)
{
    if (must_load(log) && log_load(log, err) < 0)
        return -1;
    log->current = false; /* until the batch is written */
    buf_reset(&log->batch);
    log->batch.max = LOG_BATCH_MAX;
    log->gap.events = 0;
    log->next = log->state;
    return 0;
}

void log_set_gatherer(struct log *log, void (*write)(void *ctx), void *ctx)
{
    log->gatherer.write = write;
    log->gatherer.ctx = ctx;
}

void *log_gatherer(const struct log *log)
{
    return log->gatherer.ctx;
}

int log_begin(struct log *log, struct err *err)
{
    if (log_is_held(log) && log->gathered.some)
        log->gatherer.write(log->gatherer.ctx);
    return log_begin_more(log, err);
}

int log_begin_more(struct log *log, struct err *err)
{
    if (log_lock(log, err) < 0)
        return -1;
    log->time = clock_now(&log->clock);
    if (log->gathered.some)
        log->batch.max = log->gathered.bytes + LOG_BATCH_MAX;
    else if (begin_batch(log, err) < 0) {
        log_unlock(log);
        return -1;
    }
    if (put_own(log, err) < 0) {
        log_abort(log);
        return -1;
    }
    log->batch_events = 0; /* what follows is the caller's */
    return 0;
}

uint64_t log_next(const struct log *log)
{
    assert(log->locked);
    return log->next.size;
}

int64_t log_time(const struct log *log)
{
    assert(log->locked);
    return log->time;
}

int log_put(struct log *log, const struct event *e, uint64_t *seq, struct err *err)
{
    struct event_place place = { log->next.size, log->next.last, log->time,
                                 str_of(log->writer, strlen("w_") + ID_HEX) };
    size_t start = log->batch.n;
    struct digest leaf;

    assert(log->locked);
    if (event_compose(&log->batch, e, &place, err) < 0) {
        log->batch.n = start;
        log->batch.failed = false;
        return -1;
    }
    leaf = tree_leaf(str_skip(buf_str(&log->batch), start));
    buf_add_char(&log->batch, '\n');
    if (buf_check(&log->batch, "the batch of events", err) < 0) {
        log->batch.n = start;
        log->batch.failed = false;
        return -1;
    }
    leaves_put(&log->leaves, place.seq, &place.prev, &leaf);
    log->next.last = leaf;
    log->next.size++;
    log->batch_events++;
    if (seq)
        *seq = place.seq;
    return 0;
}

/* The head first: a writer that dies between the two leaves a head that is mended, not a
 * segment that begins where another one goes on. */
static int begin_segment(struct log *log, uint64_t first, struct err *err)
{
    if (mark_closed(log, err) < 0)
        return -1;
    log->state.segment = first;
    log->state.offset = 0;
    head_write(&log->head, &log->state);
    if (log_open_segment(log, first, true, err) < 0)
        return err_wrap(err, "cannot begin a new segment");
    if (lseek(log->segment_fd, 0, SEEK_END) != 0)
        return err_set(err, ERR_DAMAGE, "segment %020" PRIu64 ".jsonl is already there",
                       first);
    return 0;
}

/* The batch does not fit: it opens the next segment. No fsync here; log_sync() knows. */
static int rotate(struct log *log, struct err *err)
{
    const struct head_state old = log->state;

    if (begin_segment(log, old.size, err) == 0)
        return 0;
    log->state = old;
    head_write(&log->head, &old);
    return -1;
}

/* A short write is undone by its writer. If even that fails, the next one who takes the
 * lock finds a torn tail. */
static int undo_write(struct log *log, struct err *err)
{
    struct err undo;

    if (file_set_size(log->segment_fd, log->state.offset, &undo) < 0)
        err_wrap(err, "a short write could not be undone");
    return -1;
}

static int write_batch(struct log *log, struct err *err)
{
    size_t written;

    if (log->state.offset && log->state.offset + log->batch.n > log->segment_max &&
        rotate(log, err) < 0)
        return -1;
    if (file_write(log->segment_fd, buf_str(&log->batch), &written, err) < 0) {
        err_wrap(err, "cannot write to the log");
        return written ? undo_write(log, err) : -1;
    }
    log->next.segment = log->state.segment;
    log->next.offset = log->state.offset + log->batch.n;
    head_write(&log->head, &log->next);
    return 0;
}

/* Only whoever has the mutex writes it. */
static void count_written(struct log *log, uint64_t events)
{
    uint64_t before = atomic_load_explicit(&log->written, memory_order_relaxed);

    atomic_store_explicit(&log->written, before + events, memory_order_relaxed);
}

int log_commit(struct log *log, uint64_t *upto, struct err *err)
{
    int r = log->batch.n ? write_batch(log, err) : 0;
    uint64_t size = log->next.size, events = log->batch_events;

    if (log->gathered.some)
        events += log->gathered.events;
    log->gathered.some = false;
    if (r == 0) {
        log->repair_count = 0;
        settle_gap(log);
        count_written(log, size - log->state.size);
        log->state = log->next;
        log->current = true;
    }
    log_unlock(log);
    if (r < 0)
        log_lost(log, events, err->msg);
    else if (upto)
        *upto = size;
    return r;
}

/* Back to what was gathered before, or to nothing. */
void log_abort(struct log *log)
{
    log->gap.events = 0;
    log->batch_events = 0;
    if (log->gathered.some) {
        log->batch.n = log->gathered.bytes;
        log->gap.events = log->gathered.gap_events;
        log->next = log->gathered.next;
    }
    log_unlock(log);
}

void log_gather(struct log *log, uint64_t *upto)
{
    assert(log->locked && log_is_held(log) && log->gatherer.write);
    log->gathered.events =
        log->batch_events + (log->gathered.some ? log->gathered.events : 0);
    log->gathered.some = true;
    log->gathered.bytes = log->batch.n;
    log->gathered.gap_events = log->gap.events;
    log->gathered.next = log->next;
    if (upto)
        *upto = log->next.size;
    log_unlock(log);
}

int log_write(struct log *log, struct err *err)
{
    if (!log->gathered.some)
        return 0;
    if (log_lock(log, err) < 0) /* it is ours since it was gathered */
        return -1;
    log->batch_events = 0;
    return log_commit(log, NULL, err);
}

void log_drop(struct log *log, const char *reason)
{
    if (log->gathered.some)
        log_lost(log, log->gathered.events, reason);
    log->gathered.some = false;
}

size_t log_gathered(const struct log *log)
{
    return log->gathered.some ? log->gathered.bytes : 0;
}

static int put_all(struct log *log, const struct event *const *events, size_t count,
                   struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (log_put(log, events[i], NULL, err) < 0)
            return -1;
    }
    return 0;
}

int log_append(struct log *log, const struct event *const *events, size_t count,
               uint64_t *upto, struct err *err)
{
    if (log_begin(log, err) < 0) {
        log_lost(log, count, err->msg);
        return -1;
    }
    if (put_all(log, events, count, err) < 0) {
        log_abort(log);
        log_lost(log, count, err->msg);
        return -1;
    }
    return log_commit(log, upto, err);
}

int log_note_session(struct log *log, const char *session, uint64_t first_seq,
                     const char *receipts_file, struct err *err)
{
    return live_begin_session(&log->live, session, first_seq, receipts_file, err);
}

int log_forget_session(struct log *log, const char *session, struct err *err)
{
    return live_end_session(&log->live, session, err);
}
