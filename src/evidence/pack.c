/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/pack.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/codec.h"
#include "base/err.h"
#include "evidence/origin.h"
#include "evidence/packmanifest.h"
#include "evidence/packparts.h"
#include "evidence/staging.h"
#include "evidence/verify.h"

#define PAST_ROOM 1024 /* bytes of text that a session may still say of itself */

void pack_name(char out[static PACK_NAME_MAX], const struct session_cut *cut)
{
    char stamp[CLOCK_STAMP];

    clock_stamp(stamp, cut->metadata_ts);
    snprintf(out, PACK_NAME_MAX, "proof_pack_%.*s_%.8s", CLOCK_STAMP, stamp,
             cut->metadata_id + strlen("smd_"));
}

/* A checkpoint that covers the part, as the log has it. */
static int cover(struct log *log, uint64_t to, struct checkpoint *checkpoint,
                 struct buf *note, struct err *err)
{
    char path[FILE_PATH_MAX];
    struct origin origin;

    if (path_join(path, log_dir(log), "log", err) < 0 ||
        log_checkpoint(log, true, err) < 0 || origin_read(&origin, path, err) < 0 ||
        origin_checkpoint(&origin, path, checkpoint, note, err) < 0)
        return -1;
    if (checkpoint->size < to)
        return err_set(err, ERR_REFUSED,
                       "the newest checkpoint covers %" PRIu64 " events, the pack needs "
                       "%" PRIu64,
                       checkpoint->size, to);
    return 0;
}

/* Say no unless the directory is a sound pack with this signer. */
static int check_pack(const char *path, struct log *log, struct pack_result *out,
                      struct err *err)
{
    const struct verify_options options = { .clock = log_clock(log) };
    struct verify_result result = { 0 };
    int r = verify_pack(path, &options, &result, err);

    if (r == 0 && result.verdict != VERIFY_SOUND) {
        str why = result.findings.count ? result.findings.items[0].message
                                        : STR("it is not sound");

        r = err_set(err, ERR_DAMAGE, "the pack does not verify: " STR_FMT, STR_ARG(why));
    }
    if (r == 0) {
        hex_encode(out->root, result.manifest.pack_root_sha256.bytes, DIGEST_SIZE);
        out->receipts = result.receipts.count;
    }
    verify_result_release(&result);
    return r;
}

/* A pack that is being built. */
struct build {
    struct pack_job *job;
    struct staging staging;
    struct collection collection;
    char name[PACK_NAME_MAX];
};

/* Several, and what they have in common. */
struct site {
    struct log *log;
    struct build *builds;
    size_t count;
    struct signer signer;
    struct checkpoint checkpoint;
    struct buf note;
};

static void site_release(struct site *s)
{
    for (size_t i = 0; i < s->count; i++) {
        parts_release(&s->builds[i].collection.parts);
        staging_release(&s->builds[i].staging);
    }
    free(s->builds);
    signer_release(&s->signer);
    buf_release(&s->note);
}

static int fail(struct pack_job *job)
{
    job->failed = err_wrap(&job->err, "cannot pack session %s", job->request.session);
    return -1;
}

/* One that is there already needs no building. */
static int begin(struct site *s, struct pack_job *job, struct err *err)
{
    struct build *b = &s->builds[s->count];
    struct pack_result *made = &job->result;
    char packs[FILE_PATH_MAX];

    *made = (struct pack_result){ 0 };
    pack_name(b->name, &job->request.cut);
    if (path_join(packs, log_dir(s->log), PACKS_DIR, err) < 0 ||
        path_join(made->path, packs, b->name, err) < 0)
        return -1;
    made->existed = access(made->path, F_OK) == 0;
    if (made->existed && check_pack(made->path, s->log, made, err) < 0)
        return err_wrap(err, "'%s'", made->path);
    if (made->existed)
        return 0;
    if (staging_open(&b->staging, packs, err) < 0)
        return fail(job);
    b->job = job;
    b->collection =
        (struct collection){ .request = &job->request, .staging = &b->staging };
    s->count++;
    return 0;
}

void pack_past_release(struct pack_past *p)
{
    history_release(&p->history);
    *p = (struct pack_past){ .place = { 0 } };
}

/* Without the memory for it, the next one reads all. */
static void remember(struct pack_past *past, const struct parts *parts)
{
    struct err ignored;

    if (!past)
        return;
    history_trim(&past->history);
    if (history_shrink(&past->history, PAST_ROOM, &ignored) == 0)
        past->place = parts->next;
}

static int finish(struct site *s, struct build *b, struct err *err)
{
    struct parts *parts = &b->collection.parts;
    struct pack_job *job = b->job;
    struct digest root;

    if (packmanifest_write(parts, &job->request.cut, &s->signer, &b->staging, &root,
                           err) < 0 ||
        check_pack(b->staging.path, s->log, &job->result, err) < 0 ||
        staging_publish(&b->staging, b->name, err) < 0)
        return -1;
    job->result.events = parts->count;
    job->result.rebuilt = parts->rebuilt;
    job->result.content_lost = parts->content_lost;
    remember(job->request.past, parts);
    return 0;
}

/* What they have in common. */
static int prepare(struct site *s, struct err *err)
{
    struct collection *list[PACK_TOGETHER_MAX];
    uint64_t to = 0;

    for (size_t i = 0; i < s->count; i++) {
        const struct pack_request *r = &s->builds[i].job->request;

        list[i] = &s->builds[i].collection;
        to = r->cut.to > to ? r->cut.to : to;
    }
    if (cover(s->log, to, &s->checkpoint, &s->note, err) < 0 ||
        log_signer(s->log, &s->signer, err) < 0)
        return -1;
    if (parts_collect(list, s->count, log_dir(s->log), err) < 0)
        return -1;
    return parts_prove(list, s->count, log_dir(s->log), &s->checkpoint, buf_str(&s->note),
                       err);
}

static void finish_all(struct site *s)
{
    for (size_t i = 0; i < s->count; i++) {
        struct build *b = &s->builds[i];
        struct pack_job *job = b->job;

        if (b->collection.result < 0)
            job->err = b->collection.err;
        if (b->collection.result < 0 || finish(s, b, &job->err) < 0)
            fail(job);
    }
}

/* Fails when nothing could be done for any of them. */
static int build(struct log *log, struct pack_job *jobs, size_t count, struct err *err)
{
    CLEANUP(site_release) struct site s = { .log = log, .note = { .max = NOTE_MAX } };

    s.builds = calloc(count, sizeof(*s.builds));
    if (!s.builds)
        return err_set(err, ERR_NOMEM, "no memory for %zu packs", count);
    for (size_t i = 0; i < count; i++)
        jobs[i].failed = begin(&s, &jobs[i], &jobs[i].err);
    if (s.count == 0)
        return 0;
    if (prepare(&s, err) < 0)
        return -1;
    finish_all(&s);
    return 0;
}

/* What was remembered may be of no use any more: then once more without it. */
static void build_one(struct log *log, struct pack_job *job)
{
    int again = parts_have_past(&job->request);

    do {
        if (build(log, job, 1, &job->err) < 0)
            fail(job);
    } while (job->failed && again-- > 0);
}

/* What stops one among others may not concern it alone: a segment or a tile that it does
 * not need, room that the others take. */
static void build_some(struct log *log, struct pack_job *jobs, size_t count)
{
    struct err err;
    bool together = count > 1 && build(log, jobs, count, &err) == 0;

    for (size_t i = 0; i < count; i++) {
        if (!together || jobs[i].failed)
            build_one(log, &jobs[i]);
    }
}

void pack_build_all(struct log *log, struct pack_job *jobs, size_t count)
{
    for (size_t at = 0; at < count; at += PACK_TOGETHER_MAX) {
        size_t rest = count - at;

        build_some(log, jobs + at, rest < PACK_TOGETHER_MAX ? rest : PACK_TOGETHER_MAX);
    }
}

int pack_build(struct log *log, const struct pack_request *request,
               struct pack_result *result, struct err *err)
{
    struct pack_job job = { .request = *request };

    pack_build_all(log, &job, 1);
    if (job.failed < 0) {
        *err = job.err;
        return -1;
    }
    *result = job.result;
    return 0;
}
