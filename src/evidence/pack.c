/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/pack.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/codec.h"
#include "base/err.h"
#include "evidence/origin.h"
#include "evidence/packmanifest.h"
#include "evidence/packparts.h"
#include "evidence/staging.h"
#include "evidence/verify.h"

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

static int fill(struct staging *staging, struct log *log,
                const struct pack_request *request, struct pack_result *result,
                struct err *err)
{
    CLEANUP(parts_release) struct parts parts = { 0 };
    CLEANUP(buf_release) struct buf note = { .max = NOTE_MAX };
    CLEANUP(signer_release) struct signer signer = { 0 };
    struct checkpoint checkpoint;
    struct digest root;

    if (cover(log, request->cut.to, &checkpoint, &note, err) < 0 ||
        log_signer(log, &signer, err) < 0 ||
        parts_collect(&parts, log_dir(log), request, staging, err) < 0 ||
        parts_prove(&parts, log_dir(log), &checkpoint, buf_str(&note), staging, err) <
            0 ||
        packmanifest_write(&parts, &request->cut, &signer, staging, &root, err) < 0)
        return -1;
    result->receipts = parts.receipts;
    result->events = parts.count;
    result->rebuilt = parts.rebuilt;
    result->content_lost = parts.content_lost;
    return 0;
}

int pack_build(struct log *log, const struct pack_request *request,
               struct pack_result *result, struct err *err)
{
    CLEANUP(staging_release) struct staging staging = { 0 };
    struct pack_result made = { 0 };
    char packs[FILE_PATH_MAX], name[PACK_NAME_MAX];

    pack_name(name, &request->cut);
    if (path_join(packs, log_dir(log), PACKS_DIR, err) < 0 ||
        path_join(made.path, packs, name, err) < 0)
        return -1;
    made.existed = access(made.path, F_OK) == 0;
    if (made.existed) {
        if (check_pack(made.path, log, &made, err) < 0)
            return err_wrap(err, "'%s'", made.path);
    } else if (staging_open(&staging, packs, err) < 0 ||
               fill(&staging, log, request, &made, err) < 0 ||
               check_pack(staging.path, log, &made, err) < 0 ||
               staging_publish(&staging, name, err) < 0) {
        return err_wrap(err, "cannot pack session %s", request->session);
    }
    *result = made;
    return 0;
}
