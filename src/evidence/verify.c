/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/verify.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/codec.h"
#include "base/err.h"
#include "evidence/packlog.h"
#include "evidence/require.h"

#define HOUR_MS ((int64_t)3600 * 1000)

void verify_add(struct verify *v, enum finding_code code, enum stage stage, str field,
                const char *fmt, ...)
{
    const struct finding like = { .code = code, .stage = stage, .field = field };
    char message[FINDING_MESSAGE_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    findings_add(&v->result->findings, &like, "%s", message);
}

void verify_warn(struct verify *v, const char *fmt, ...)
{
    struct verify_result *r = v->result;
    char message[FINDING_MESSAGE_MAX];
    va_list ap;

    if (r->warning_count == VERIFY_WARNINGS_MAX) {
        r->warnings_left_out++;
        return;
    }
    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    r->warnings[r->warning_count++] = findings_text(&r->findings, "%s", message);
}

bool verify_file_bytes(const struct verify *v, const char *name, str *bytes)
{
    for (size_t i = 0; i < v->file_count; i++) {
        if (str_is(v->files[i].name, name)) {
            *bytes = v->files[i].map.bytes;
            return true;
        }
    }
    return false;
}

/* A file that could not be opened: an answer about the pack, or no answer at all. */
static int file_fault(struct verify *v, str name, const struct err *why, struct err *err)
{
    if (why->code == ERR_REFUSED)
        verify_add(v, FINDING_PATH_ESCAPE, STAGE_PATHS, name,
                   "'%s' leaves the pack, or is reached through a link: not opened",
                   quoted(name).text);
    else if (why->code == ERR_NOTFOUND)
        verify_add(v, FINDING_MANIFEST_TAMPER, STAGE_FILE_HASHES, name,
                   "the file '%s' is missing", quoted(name).text);
    else if (why->code == ERR_FORMAT)
        verify_add(v, FINDING_MANIFEST_TAMPER, STAGE_FILE_HASHES, name,
                   "'%s' is not a regular file", quoted(name).text);
    else
        return err_set(err, why->code, "%s", why->msg);
    return 0;
}

#define CHUNK ((size_t)4 << 20) /* between two looks at the progress */

void verify_advance(struct verify *v, uint64_t units)
{
    v->done += units;
    if (v->options->on_progress)
        v->options->on_progress(v->options->progress, v->done, v->total);
}

static struct digest hash_file(struct verify *v, str bytes)
{
    struct hasher h;

    hasher_init(&h);
    for (str rest = bytes; rest.n; rest = str_skip(rest, CHUNK)) {
        hasher_add(&h, str_first(rest, CHUNK));
        verify_advance(v, str_first(rest, CHUNK).n);
    }
    return hasher_finish(&h);
}

/* Map one listed file and compare it with its entry. */
static int check_file(struct verify *v, const struct manifest_file *entry,
                      struct err *err)
{
    struct verify_file *file = &v->files[v->file_count];
    struct err why = { 0 };
    struct digest actual;

    if (beneath_map(v->dir, entry->path, &file->map, &why) < 0)
        return file_fault(v, entry->path, &why, err);
    file->name = entry->path;
    v->file_count++;
    actual = hash_file(v, file->map.bytes);
    if (str_is(entry->path, RECEIPT_PACK_NAME))
        v->result->receipt_pack_sha256 = actual;
    if (!digest_equal(&actual, &entry->sha256))
        verify_add(v, FINDING_MANIFEST_TAMPER, STAGE_FILE_HASHES, entry->path,
                   "'%s' was changed: its SHA-256 is not the one in the manifest",
                   quoted(entry->path).text);
    else if (file->map.bytes.n != entry->bytes)
        verify_warn(v, "'%s' has %zu bytes, the manifest says %llu",
                    quoted(entry->path).text, file->map.bytes.n,
                    (unsigned long long)entry->bytes);
    return 0;
}

/* Every file is hashed; receipts and events are read and compared as well. */
static uint64_t work_of(const struct manifest_file *f)
{
    bool read = str_is(f->path, RECEIPT_PACK_NAME) || str_is(f->path, LOG_EVENTS_NAME);

    return f->bytes + (read ? VERIFY_JSON_COST * f->bytes : 0);
}

static int check_files(struct verify *v, struct err *err)
{
    const struct manifest *m = v->manifest;

    for (size_t i = 0; i < m->file_count; i++)
        v->total += work_of(&m->files[i]);
    for (size_t i = 0; i < m->file_count; i++) {
        if (check_file(v, &m->files[i], err) < 0)
            return -1;
    }
    if (!manifest_lists(m, RECEIPT_PACK_NAME))
        verify_add(v, FINDING_MANIFEST_TAMPER, STAGE_FILE_HASHES, STR(RECEIPT_PACK_NAME),
                   "files does not list %s, so that nothing signs the receipts",
                   RECEIPT_PACK_NAME);
    return 0;
}

static int check_expected(struct verify *v, struct err *err)
{
    const struct manifest *m = v->manifest;

    for (size_t i = 0; i < m->expected_count; i++) {
        struct err why = { 0 };
        int fd;

        if (findings_about(&v->result->findings, m->expected[i]))
            continue;
        fd = beneath_open(v->dir, m->expected[i], &why);
        if (fd < 0 && file_fault(v, m->expected[i], &why, err) < 0)
            return -1;
        file_close(&fd);
    }
    return 0;
}

static bool is_expected(const struct manifest *m, str name)
{
    for (size_t i = 0; i < m->expected_count; i++) {
        if (str_equal(m->expected[i], name))
            return true;
    }
    return false;
}

/* What lies in the directory and is not part of the pack: said, not judged. */
static int look_around(struct verify *v, struct err *err)
{
    struct dirent *entry;
    DIR *dir;
    int fd;

    do
        fd = openat(v->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        err_errno(err, "cannot list the pack");
        file_close(&fd);
        return -1;
    }
    while ((entry = readdir(dir))) {
        str name = str_from(entry->d_name);

        if (str_is(name, ".") || str_is(name, "..") || str_is(name, "_unsigned") ||
            is_expected(v->manifest, name))
            continue;
        verify_warn(v, "'%s' is not part of the pack; nothing signs it",
                    quoted(name).text);
    }
    closedir(dir);
    return 0;
}

static void compare_receipts(struct verify *v)
{
    const struct receipt_facts *r = &v->result->receipts;
    const struct manifest *m = v->manifest;
    const char *found = r->faults || r->bad_lines ? "FAIL" : "PASS";

    if (r->count != m->receipt_count)
        verify_add(v, FINDING_PACK_OMISSION, STAGE_RECEIPTS,
                   STR("receipt_count_expected"),
                   "the manifest counts %llu receipt%s, the file holds %llu",
                   (unsigned long long)m->receipt_count, plural(m->receipt_count),
                   (unsigned long long)r->count);
    if (!str_is(m->receipt_integrity, found))
        verify_add(v, FINDING_MANIFEST_TAMPER, STAGE_RECEIPTS, STR("receipt_integrity"),
                   "the receipts' integrity is %s, the attestation says %s", found,
                   quoted(m->receipt_integrity).text);
    if (!r->head_known)
        verify_add(v, FINDING_MANIFEST_TAMPER, STAGE_RECEIPTS, STR("head_hash"),
                   "the hash of the last receipt cannot be computed");
    else if (!digest_equal(&r->head, &m->head_hash))
        verify_add(v, FINDING_MANIFEST_TAMPER, STAGE_RECEIPTS, STR("head_hash"),
                   "the hash of the last receipt is not the attested head_hash");
    if (m->n_receipts != r->count)
        verify_warn(v, "the attestation's n_receipts is %llu, the file holds %llu",
                    (unsigned long long)m->n_receipts, (unsigned long long)r->count);
}

static void on_receipts(void *ctx, uint64_t bytes)
{
    verify_advance(ctx, VERIFY_JSON_COST * bytes);
}

static int check_receipts(struct verify *v, struct err *err)
{
    const struct receipt_watch watch = { on_receipts, v };
    struct verify_result *r = v->result;
    str text = STR("");

    r->has_receipt_pack = verify_file_bytes(v, RECEIPT_PACK_NAME, &text);
    if (receipt_pack_check(text, &watch, &r->findings, &r->receipts, err) < 0)
        return err_wrap(err, "%s", RECEIPT_PACK_NAME);
    compare_receipts(v);
    return 0;
}

static void check_attestation(struct verify *v)
{
    const struct manifest *m = v->manifest;
    struct digest actual = { { 0 } };
    struct err why = { 0 };

    if (manifest_attestation_hash(m, &actual, &why) < 0)
        verify_add(v, FINDING_MANIFEST_TAMPER, STAGE_ATTESTATION,
                   STR("attestation_sha256"), "the attestation has no hash: %s", why.msg);
    else if (!digest_equal(&actual, &m->attestation_sha256))
        verify_add(v, FINDING_MANIFEST_TAMPER, STAGE_ATTESTATION,
                   STR("attestation_sha256"),
                   "the attestation was changed: its hash is not attestation_sha256");
    if (!json_string_is(&m->json, json_member(&m->json, m->attestation, STR("pack_id")),
                        m->pack_id))
        verify_warn(v, "the attestation names another pack_id than the manifest");
}

static void check_detached(struct verify *v, const uint8_t *signature)
{
    struct mapping map = { { NULL, 0 } };
    struct err why = { 0 };

    if (beneath_map(v->dir, STR(SIGNATURE_NAME), &map, &why) < 0) {
        verify_add(v, FINDING_PACK_SIG_INVALID, STAGE_SIGNATURE, STR(SIGNATURE_NAME),
                   "the detached signature cannot be read: %s", why.msg);
        return;
    }
    if (signature && !str_equal(map.bytes, str_of(signature, SIGNATURE_SIZE)))
        verify_add(v, FINDING_PACK_SIG_INVALID, STAGE_SIGNATURE, STR(SIGNATURE_NAME),
                   "%s is not the signature in the manifest", SIGNATURE_NAME);
    mapping_release(&map);
}

/* The embedded key signed these bytes, and it is the key of the fingerprint. */
static void check_signed(struct verify *v, const uint8_t signature[static SIGNATURE_SIZE])
{
    CLEANUP(buf_release) struct buf bytes = { .max = 8 * MANIFEST_MAX_BYTES };
    const struct manifest *m = v->manifest;
    uint8_t key[PUBLIC_SIZE];
    struct digest fingerprint;
    struct err why = { 0 };

    if (!base64_decode_exact(key, sizeof(key), m->signer_pubkey)) {
        verify_add(v, FINDING_PACK_SIG_INVALID, STAGE_SIGNATURE, STR("signer_pubkey"),
                   "signer_pubkey is not the base64 of 32 bytes");
        return;
    }
    fingerprint = digest_of(str_of(key, sizeof(key)));
    if (!digest_equal(&fingerprint, &m->signer_pubkey_sha256))
        verify_add(v, FINDING_PACK_SIG_INVALID, STAGE_SIGNATURE,
                   STR("signer_pubkey_sha256"),
                   "signer_pubkey_sha256 is not the fingerprint of signer_pubkey");
    if (manifest_signed_bytes(m, &bytes, &why) < 0)
        verify_add(v, FINDING_PACK_SIG_INVALID, STAGE_SIGNATURE, STR("signature"),
                   "the signed bytes cannot be computed: %s", why.msg);
    else if (!signature_valid(signature, key, buf_str(&bytes)))
        verify_add(v, FINDING_PACK_SIG_INVALID, STAGE_SIGNATURE, STR("signer_pubkey"),
                   "the key in the manifest did not sign this manifest");
}

static void check_signature(struct verify *v)
{
    uint8_t signature[SIGNATURE_SIZE];
    bool decoded =
        base64_decode_exact(signature, sizeof(signature), v->manifest->signature);

    if (!decoded)
        verify_add(v, FINDING_PACK_SIG_INVALID, STAGE_SIGNATURE, STR("signature"),
                   "the signature is not the base64 of 64 bytes");
    check_detached(v, decoded ? signature : NULL);
    if (decoded)
        check_signed(v, signature);
    v->result->signature_good = !v->result->findings.by_stage[STAGE_SIGNATURE];
}

static void check_root(struct verify *v)
{
    if (!digest_equal(&v->manifest->pack_root_sha256, &v->manifest->attestation_sha256))
        verify_add(v, FINDING_MANIFEST_TAMPER, STAGE_D12, STR("pack_root_sha256"),
                   "pack_root_sha256 is not attestation_sha256");
}

static void check_time(struct verify *v)
{
    int64_t end = 0, until = 0, now = v->result->verified_at;
    const struct manifest *m = v->manifest;

    if (clock_parse(&end, m->timestamp_end) && end - now > VERIFY_FUTURE_HOURS * HOUR_MS)
        verify_add(v, FINDING_TIMESTAMP_INVALID, STAGE_TIME, STR("timestamp_end"),
                   "timestamp_end lies %lld hours in the future",
                   (long long)((end - now) / HOUR_MS));
    if (m->valid_until.n && clock_parse(&until, m->valid_until) && until < now)
        verify_warn(v, "the pack says itself that it is valid only until %s",
                    quoted(m->valid_until).text);
}

/* Whose key is it? Only asked of a key that did sign. */
static void look_up_key(struct verify *v)
{
    const struct verify_options *o = v->options;
    const struct manifest *m = v->manifest;
    uint8_t key[PUBLIC_SIZE], local[PUBLIC_SIZE];
    char id[KEYS_ID_MAX + 1] = "";
    struct err why = { 0 };

    if (!v->result->signature_good ||
        !base64_decode_exact(key, sizeof(key), m->signer_pubkey))
        return;
    if (o->keys && keys_find_public(o->keys, key, v->result->local_id, &why) == 0) {
        v->result->key = KEY_LOCAL;
        v->result->local_secret = keys_has_secret(o->keys, v->result->local_id);
    }
    if ((o->signer && digest_equal(o->signer, &m->signer_pubkey_sha256)) ||
        (o->lock && !o->lock->any_signer &&
         lock_allows_signer(o->lock, &m->signer_pubkey_sha256)))
        v->result->key = KEY_PINNED;
    if (v->result->key == KEY_UNKNOWN)
        verify_warn(v,
                    "the signer is not known here: whoever made the pack may have made "
                    "the key (--signer or --lock name the one that you expect)");
    if (!o->keys || !keys_id_valid(m->signer_id))
        return;
    memcpy(id, m->signer_id.p, m->signer_id.n);
    if (keys_load_public(o->keys, id, local, &why) == 0 &&
        memcmp(local, key, sizeof(key)) != 0)
        verify_warn(v, "the local key '%s' is another key than the one that signed", id);
}

/* The pack carries our log files, or says that nothing proves its place in a log. */
static int check_log(struct verify *v, struct err *err)
{
    CLEANUP(packlog_release) struct packlog alone = { .parts = 0 };
    struct packlog *parts = v->options->parts ? v->options->parts : &alone;
    const struct manifest *m = v->manifest;
    int failed;

    v->result->has_log = manifest_lists(m, LOG_EVENTS_NAME) ||
                         manifest_lists(m, LOG_CHECKPOINT_NAME) ||
                         manifest_lists(m, LOG_PROOF_NAME);
    if (v->result->has_log) {
        failed = packlog_check(v, parts, err);
        v->result->begins_late = parts->begins_late;
        return failed;
    }
    v->result->begins_late = v->result->receipts.session_part > 1;
    verify_warn(v, "the pack carries no log proof: nothing shows that receipts were "
                   "not left out before it was signed");
    return packlog_check_absence(v, err);
}

static int read_manifest(struct verify *v, const char *dir, struct err *err)
{
    struct verify_result *r = v->result;
    struct mapping map = { { NULL, 0 } };
    struct err why = { 0 };
    int failed;

    if (beneath_map(v->dir, STR(MANIFEST_NAME), &map, &why) < 0) {
        if (why.code == ERR_NOTFOUND)
            return err_set(err, ERR_NOTFOUND, "'%s' is not a proof pack: it has no %s",
                           dir, MANIFEST_NAME);
        if (why.code != ERR_REFUSED)
            return err_set(err, why.code, "'%s' is not a proof pack: %s", dir, why.msg);
        return file_fault(v, STR(MANIFEST_NAME), &why, err);
    }
    failed = manifest_read(&r->manifest, map.bytes, &r->findings, &r->has_manifest, err);
    mapping_release(&map);
    return failed;
}

static int check_pack(struct verify *v, struct err *err)
{
    v->files = calloc(v->manifest->file_count + 1, sizeof(*v->files));
    if (!v->files)
        return err_set(err, ERR_NOMEM, "no memory for the files of the pack");
    if (look_around(v, err) < 0 || check_files(v, err) < 0 ||
        check_expected(v, err) < 0 || check_receipts(v, err) < 0)
        return -1;
    check_attestation(v);
    check_signature(v);
    check_root(v);
    check_time(v);
    look_up_key(v);
    return check_log(v, err);
}

static void conclude(struct verify *v)
{
    struct verify_result *r = v->result;
    bool log = r->has_log || r->findings.by_stage[STAGE_LOG];
    unsigned last = !r->has_manifest ? STAGE_SCHEMA : log ? STAGE_LOG : STAGE_TYPES;
    bool sound = r->findings.count == 0;
    bool met = require_check(v, sound);

    for (unsigned i = 0; i <= last; i++)
        r->stages[i] = r->findings.by_stage[i] ? STAGE_FAILED : STAGE_OK;
    r->verdict = !sound ? VERIFY_TAMPERED : met ? VERIFY_SOUND : VERIFY_UNMET;
}

static int run(struct verify *v, const char *dir, struct err *err)
{
    int failed = read_manifest(v, dir, err);

    v->manifest = &v->result->manifest;
    if (failed == 0 && v->result->has_manifest && check_pack(v, err) < 0)
        failed = err_wrap(err, "the pack '%s'", dir);
    for (size_t i = 0; i < v->file_count; i++)
        mapping_release(&v->files[i].map);
    free(v->files);
    if (failed < 0)
        return -1;
    conclude(v);
    return v->result->findings.failed ? err_set(err, ERR_NOMEM, "no memory") : 0;
}

int verify_pack(const char *dir, const struct verify_options *options,
                struct verify_result *result, struct err *err)
{
    CLEANUP(file_close) int fd = -1;
    struct verify v = { .options = options, .result = result };

    *result = (struct verify_result){ .verified_at = clock_now(options->clock) };
    fd = file_open(dir, O_RDONLY | O_DIRECTORY, 0, err);
    if (fd < 0) {
        if (errno == ENOTDIR)
            err_set(err, ERR_FORMAT, "'%s' is not a proof pack: it is no directory", dir);
        return -1;
    }
    v.dir = fd;
    return run(&v, dir, err);
}

const char *verify_boundary(enum verify_verdict verdict)
{
    return verdict == VERIFY_TAMPERED ? VERIFY_BOUNDARY_TAMPERED : VERIFY_BOUNDARY;
}

void verify_result_release(struct verify_result *r)
{
    manifest_release(&r->manifest);
    findings_release(&r->findings);
    *r = (struct verify_result){ 0 };
}
