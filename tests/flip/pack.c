/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/pack.h"
#include "evidence/verify.h"
#include "tests/flip/flip.h"
#include "tests/forge.h"
#include "tests/recording.h"
#include "json/jcs.h"

#define DOCUMENT "docs/pack.md"

/* Two calls, one of them with stored content; ends the program when it fails. */
static void make_pack(struct recording *r, struct pack_result *result)
{
    const struct session_ending well = { "client_eof", true, "shutdown", NULL };
    struct session *s = recording_session(r, "audit");
    struct session_cut cut;
    struct pack_request request;
    struct open_call *c;
    struct err err = { 0 };
    bool packable = false;

    c = recording_call(r, s, STR("1"), STR("a"), STR("{\"n\":1E21}"));
    recording_answer(r, s, c, false, STR("{\"t\":\"caf\xc3\xa9\"}"));
    session_release(s, c);
    c = recording_call(r, s, STR("2"), STR("b"), (str){ NULL, 0 });
    recording_answer(r, s, c, true, (str){ NULL, 0 });
    session_release(s, c);
    if (session_end(s, &well, &cut, &packable, &err) < 0 || !packable) {
        printf("Bail out! no pack: %s\n", err.msg);
        exit(99);
    }
    request = (struct pack_request){ .session = session_id(s),
                                     .receipts = session_receipts(s),
                                     .first = session_history(s)->first,
                                     .cut = cut };
    if (pack_build(r->log, &request, result, &err) < 0) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    session_free(s);
}

static bool is_found(void *ctx)
{
    const struct verify_options options = { .clock = &clock_system };
    struct verify_result result = { 0 };
    struct err err = { 0 };
    bool sound = verify_pack(ctx, &options, &result, &err) == 0 &&
                 result.verdict == VERIFY_SOUND && result.has_log;

    verify_result_release(&result);
    return !sound;
}

/* --- what nothing vouches for, and why: docs/pack.md has the same --- */

/* The manifest without white space, its members in another order. */
static void respell_manifest(struct forge *f)
{
    CLEANUP(json_release) struct json j = { 0 };
    CLEANUP(buf_release) struct buf made = { 0 };
    struct sink sink = buf_sink(&made);
    struct err err = { 0 };

    forge_parse(&j, buf_str(&f->file[FORGE_MANIFEST]));
    forge_must(jcs_write(&j, JSON_ROOT, JCS_RFC8785, &sink, &err) == 0, err.msg);
    buf_reset(&f->file[FORGE_MANIFEST]);
    buf_add(&f->file[FORGE_MANIFEST], buf_str(&made));
    forge_write(f);
}

static void escape_in_manifest(struct forge *f)
{
    struct buf *m = &f->file[FORGE_MANIFEST];
    const char *at = memmem(m->p, m->n, "\"ed25519\"", 9);

    forge_must(at != NULL, "signature_alg");
    forge_splice(m, (size_t)(at - m->p) + 1, 1, STR("\\u0065"));
    forge_write(f);
}

static void put_file(const char *dir, const char *name)
{
    char path[FILE_PATH_MAX];
    struct err err = { 0 };

    forge_must(path_join(path, dir, name, &err) == 0 &&
                   file_put(path, STR("anything"), 0600, &err) == 0,
               err.msg);
}

static void add_unsigned(struct forge *f)
{
    char path[FILE_PATH_MAX];
    struct err err = { 0 };

    forge_write(f);
    forge_must(path_join(path, f->dir, "_unsigned", &err) == 0 &&
                   file_make_dirs(path, 0700, &err) == 0,
               err.msg);
    put_file(path, "report.html");
}

static void add_file(struct forge *f)
{
    forge_write(f);
    put_file(f->dir, "notes.txt");
}

static const struct {
    void (*change)(struct forge *f);
    const char *why; /* as in the document */
} unseen[] = {
    { respell_manifest, "white space and the order of members in `pack_manifest.json`" },
    { escape_in_manifest, "escapes in strings of `pack_manifest.json`" },
    { add_unsigned, "what lies in `_unsigned/`" },
    { add_file, "files that the manifest does not name" },
};

static void check_list(const struct recording *r, const char *pack)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    const struct secret_key none = { { 0 }, { 0 } }; /* nothing is signed again */
    struct err err = { 0 };

    if (file_read(DOCUMENT, &text, &err) < 0)
        ok(false, "%s", err.msg);
    for (size_t i = 0; i < COUNT(unseen); i++) {
        char dir[FILE_PATH_MAX];
        struct forge f;

        snprintf(dir, sizeof(dir), "%s/changed-%zu", r->root, i);
        forge_load(&f, pack, dir, &none);
        unseen[i].change(&f);
        ok(!is_found(dir), "not authenticated: %s", unseen[i].why);
        ok(strstr(buf_cstr(&text), unseen[i].why) != NULL, "%s says so", DOCUMENT);
        forge_release(&f);
    }
}

int main(int argc, char **argv)
{
    struct recording r;
    struct pack_result made;
    struct flip f = { .all_bits = argc > 1 && strcmp(argv[1], "soak") == 0,
                      .stride = 5, /* a pack is read whole for every flip */
                      .is_found = is_found,
                      .ctx = made.path };

    make_pack(&r, &made);
    ok(!is_found(made.path), "a sound pack");
    flip_tree(&f, made.path, "");
    ok(f.unseen == 0, "%zu flips over %zu bytes of %zu files: none unseen", f.flips,
       f.bytes, f.files);
    ok(f.files >= 8 && f.bytes > 0, "there was something to flip");
    flip_check_list(&f, DOCUMENT);
    ok(!is_found(made.path), "sound again");
    check_list(&r, made.path);
    recording_close(&r);
    return tap_done();
}
