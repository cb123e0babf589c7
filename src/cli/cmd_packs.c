/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/diag.h"
#include "base/err.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/pack_view.h"
#include "cli/place.h"
#include "cli/terminal.h"
#include "evidence/pack.h"
#include "evidence/verify.h"

#define PACK_PREFIX "proof_pack_"
#define OUTPUT_MAX  ((size_t)2 << 30)

static const struct command packs_list, packs_show;

static int is_pack(const struct dirent *d)
{
    return strncmp(d->d_name, PACK_PREFIX, strlen(PACK_PREFIX)) == 0;
}

/* The packs of an audit directory by name, which is by time. */
static int scan(const char *audit_dir, char packs[static FILE_PATH_MAX],
                struct dirent ***names, int *count, struct err *err)
{
    *names = NULL;
    *count = 0;
    if (path_join(packs, audit_dir, PACKS_DIR, err) < 0)
        return -1;
    *count = scandir(packs, names, is_pack, alphasort);
    if (*count < 0 && errno == ENOENT)
        *count = 0;
    return *count < 0 ? err_errno(err, "cannot list '%s'", packs) : 0;
}

static void free_names(struct dirent **names, int count)
{
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

/* --- list --- */

static void list_one(const struct pack_view *v, struct pretty *json)
{
    if (!json) {
        pack_view_print_line(v);
        return;
    }
    pretty_object(json, NULL);
    pack_view_members(v, json, false);
    pretty_end_object(json);
}

/* A pack that cannot be read is said, and the others are listed. */
static enum exit_code list_all(const char *packs, struct dirent **names, int count,
                               struct pretty *json)
{
    enum exit_code code = EXIT_GOOD;

    for (int i = 0; i < count; i++) {
        CLEANUP(pack_view_release) struct pack_view v = { 0 };
        char path[FILE_PATH_MAX];
        struct err err = { 0 };

        if (path_join(path, packs, names[i]->d_name, &err) == 0 &&
            pack_view_open(&v, path, &err) == 0)
            list_one(&v, json);
        else
            code = command_fail_in(&err, "%s", names[i]->d_name);
    }
    return code;
}

static enum exit_code run_list(int argc, char **argv)
{
    CLEANUP(buf_release) struct buf text = { .max = OUTPUT_MAX };
    const char *given = NULL;
    bool as_json = false;
    struct operands none = { .min = 0, .max = 0 };
    const struct option table[] = {
        { "audit-dir", "DIR", "the audit directory (default " PLACE_DEFAULT ")",
          .text = &given },
        { "json", NULL, "print JSON", .flag = &as_json },
        { 0 },
    };
    char dir[FILE_PATH_MAX], packs[FILE_PATH_MAX];
    struct pretty json;
    struct dirent **names;
    enum exit_code code;
    struct err err = { 0 };
    int count;

    if (!options_parse(&packs_list, table, argc, argv, &none, &code))
        return code;
    if (place_find(dir, given, &err) < 0 || scan(dir, packs, &names, &count, &err) < 0)
        return command_fail_as(&packs_list, as_json, &err);
    pretty_init(&json, &text);
    pretty_object(&json, NULL);
    pretty_array(&json, "packs");
    code = list_all(packs, names, count, as_json ? &json : NULL);
    pretty_end_array(&json);
    pretty_end_object(&json);
    if (as_json)
        printf("%s\n", buf_cstr(&text));
    else if (count == 0)
        diag_say("there are no packs in '%s'", packs);
    free_names(names, count);
    return code;
}

static const struct command packs_list = {
    .name = "packs list",
    .usage = "[--audit-dir DIR] [--json]",
    .summary = "list the packs of an audit directory, without verifying them",
    .run = run_list,
};

/* --- show --- */

static int newest(char out[static FILE_PATH_MAX], const char *dir, struct err *err)
{
    char packs[FILE_PATH_MAX];
    struct dirent **names;
    int count, r;

    if (scan(dir, packs, &names, &count, err) < 0)
        return -1;
    r = count ? path_join(out, packs, names[count - 1]->d_name, err)
              : err_set(err, ERR_NOTFOUND, "there are no packs in '%s'", packs);
    free_names(names, count);
    return r;
}

/* How it is, or holds, what has this id. A pack that cannot be read has nothing. */
static enum pack_match match(const char *path, const char *id)
{
    CLEANUP(pack_view_release) struct pack_view v = { 0 };
    struct err ignored;

    return pack_view_open(&v, path, &ignored) == 0 ? pack_view_match(&v, str_from(id))
                                                   : PACK_NO;
}

/* The newest pack with this id, of a pack, a session or a receipt; *only: of that one. */
static int find_by_id(char out[static FILE_PATH_MAX], const char *dir, const char *id,
                      str *only, struct err *err)
{
    char packs[FILE_PATH_MAX], path[FILE_PATH_MAX];
    struct dirent **names;
    int count, found = 0;

    if (scan(dir, packs, &names, &count, err) < 0)
        return -1;
    for (int i = count - 1; i >= 0; i--) {
        enum pack_match m =
            path_join(path, packs, names[i]->d_name, err) < 0 ? PACK_NO : match(path, id);

        if (m == PACK_NO)
            continue;
        if (found++ == 0)
            memcpy(out, path, sizeof(path));
        if (m == PACK_RECEIPT)
            *only = str_from(id);
    }
    free_names(names, count);
    if (found > 1)
        diag_say("%d packs belong to '%s': this is the newest", found, id);
    return found ? 0
                 : err_set(err, ERR_NOTFOUND,
                           "no pack in '%s' is called '%s', and none has a session or a "
                           "receipt of that id",
                           packs, id);
}

/* A directory as it is given, a name below packs/, an id, or the newest. */
static int find_pack(char out[static FILE_PATH_MAX], const char *operand,
                     const char *given, str *only, struct err *err)
{
    char dir[FILE_PATH_MAX], packs[FILE_PATH_MAX];
    struct err no_log = { 0 };
    bool is_name = operand && !strchr(operand, '/');

    if (operand && (!is_name || access(operand, F_OK) == 0)) {
        int n = snprintf(out, FILE_PATH_MAX, "%s", operand);

        return n < FILE_PATH_MAX ? 0 : err_set(err, ERR_LIMIT, "the path is too long");
    }
    if (place_find(dir, given, &no_log) < 0)
        return err_set(err, no_log.code, "%s", no_log.msg);
    if (!operand)
        return newest(out, dir, err);
    if (path_join(packs, dir, PACKS_DIR, err) < 0)
        return -1;
    if (path_join(out, packs, operand, err) < 0)
        return -1;
    return access(out, F_OK) == 0 ? 0 : find_by_id(out, dir, operand, only, err);
}

static void show_text(const struct pack_view *v, const struct verify_result *r)
{
    bool sound = r->verdict == VERIFY_SOUND;

    printf("%s%s%s %s\n", paint(stdout, sound ? PAINT_GREEN : PAINT_RED),
           sound ? "SOUND" : "TAMPERED", paint(stdout, PAINT_END), v->path);
    for (size_t i = 0; i < r->findings.count; i++)
        printf("  %s " STR_FMT "\n", finding_info(r->findings.items[i].code)->name,
               STR_ARG(r->findings.items[i].message));
    pack_view_print(v, r);
    printf("\n%s\n", verify_boundary(r->verdict));
}

static void show_json(const struct pack_view *v, const struct verify_result *r)
{
    CLEANUP(buf_release) struct buf text = { .max = OUTPUT_MAX };
    struct pretty p;

    pretty_init(&p, &text);
    pretty_object(&p, NULL);
    pretty_bool(&p, "sound", r->verdict == VERIFY_SOUND);
    pretty_bool(&p, "key_known", r->signature_good && r->key != KEY_UNKNOWN);
    pack_view_members(v, &p, true);
    pretty_end_object(&p);
    if (text.failed)
        diag_say("the pack is too large to print as one JSON text");
    else
        printf("%s\n", buf_cstr(&text));
}

static enum exit_code show(const char *path, str only, bool json)
{
    CLEANUP(pack_view_release) struct pack_view v = { 0 };
    struct err err = { 0 }, no_keys = { 0 };
    struct keys keys;
    const struct verify_options options = {
        .clock = &clock_system,
        .keys = keys_open(&keys, NULL, &no_keys) == 0 ? &keys : NULL,
    };
    struct verify_result result = { 0 };
    enum exit_code code;

    if (verify_pack(path, &options, &result, &err) < 0 ||
        pack_view_open(&v, path, &err) < 0) {
        code = result.verdict == VERIFY_TAMPERED ? EXIT_INTEGRITY : EXIT_BAD_INPUT;
        command_fail_as(&packs_show, json, &err);
    } else {
        code = result.verdict == VERIFY_SOUND ? EXIT_GOOD : EXIT_INTEGRITY;
        v.only = only;
        (json ? show_json : show_text)(&v, &result);
    }
    verify_result_release(&result);
    return code;
}

static enum exit_code run_show(int argc, char **argv)
{
    const char *given = NULL;
    bool json = false;
    struct operands pack = { .min = 0, .max = 1 };
    const struct option table[] = {
        { "audit-dir", "DIR", "the audit directory (default " PLACE_DEFAULT ")",
          .text = &given },
        { "json", NULL, "print JSON", .flag = &json },
        { 0 },
    };
    char path[FILE_PATH_MAX];
    str only = { NULL, 0 };
    enum exit_code code;
    struct err err = { 0 };

    if (!options_parse(&packs_show, table, argc, argv, &pack, &code))
        return code;
    if (find_pack(path, pack.count ? pack.at[0] : NULL, given, &only, &err) < 0)
        return command_fail_as(&packs_show, json, &err);
    return show(path, only, json);
}

static const struct command packs_show = {
    .name = "packs show",
    .usage = "[PACK|SESSION|RECEIPT] [--audit-dir DIR] [--json]",
    .summary = "verify a pack (the newest) and print its receipts, or one of them",
    .run = run_show,
};

static const struct command *const subcommands[] = { &packs_list, &packs_show, NULL };

const struct command cmd_packs = {
    .name = "packs",
    .usage = "list|show",
    .summary = "look at proof packs",
    .subcommands = subcommands,
};
