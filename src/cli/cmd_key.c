/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/codec.h"
#include "base/diag.h"
#include "base/err.h"
#include "cli/command.h"
#include "cli/key_file.h"
#include "cli/options.h"
#include "cli/place.h"
#include "evidence/keys.h"
#include "evidence/log.h"
#include "json/jcs.h"

#define KEY_TEXT_MAX 64 /* 44 digits of base64 and an end of line fit */

static const struct command key_list, key_generate, key_info, key_export, key_import,
    key_rotate, key_set_active;

struct described {
    char id[KEYS_ID_MAX + 1];
    uint8_t public_key[PUBLIC_SIZE];
    bool active;
};

static int describe(const struct keys *k, const char *id, struct described *out,
                    struct err *err)
{
    struct described d = { .id = "" };
    struct err no_active;
    char active[KEYS_ID_MAX + 1] = "";

    if (keys_load_public(k, id, d.public_key, err) < 0)
        return -1;
    if (keys_active(k, active, &no_active) < 0)
        active[0] = '\0';
    snprintf(d.id, sizeof(d.id), "%s", id);
    d.active = strcmp(active, id) == 0;
    *out = d;
    return 0;
}

/* SHA-256 of the 32 raw bytes: `sha256sum <id>.pub` says the same. */
static void add_fingerprint(struct buf *b, const struct described *d)
{
    struct digest fingerprint = digest_of(str_of(d->public_key, PUBLIC_SIZE));

    digest_add_hex(b, &fingerprint);
}

static void add_json(struct buf *b, const struct described *d)
{
    buf_printf(b, "{\"active\":%s,\"fingerprint\":\"", d->active ? "true" : "false");
    add_fingerprint(b, d);
    buf_add(b, STR("\",\"public_key\":\""));
    base64_add(b, d->public_key, PUBLIC_SIZE);
    buf_add(b, STR("\",\"signer_id\":"));
    jcs_add_string(b, str_from(d->id));
    buf_add_char(b, '}');
}

static void add_text(struct buf *b, const struct described *d)
{
    buf_printf(b, "signer       %s%s\nfingerprint  ", d->id,
               d->active ? " (active)" : "");
    add_fingerprint(b, d);
    buf_add(b, STR("\npublic key   "));
    base64_add(b, d->public_key, PUBLIC_SIZE);
    buf_add_char(b, '\n');
}

static enum exit_code print(const struct buf *b)
{
    struct err err = { .code = ERR_NONE };

    if (buf_check(b, "the answer", &err) < 0)
        return command_fail(&err);
    fwrite(b->p, 1, b->n, stdout);
    return EXIT_GOOD;
}

static enum exit_code print_one(const struct command *c, const struct keys *k,
                                const char *id, bool json)
{
    CLEANUP(buf_release) struct buf b = { .max = 4096 };
    struct err err = { .code = ERR_NONE };
    struct described d;

    if (describe(k, id, &d, &err) < 0)
        return command_fail_as(c, json, &err);
    if (json)
        add_json(&b, &d);
    else
        add_text(&b, &d);
    if (json)
        buf_add_char(&b, '\n');
    return print(&b);
}

/* The id given, or that of the active signer. */
static int choose(const struct keys *k, const struct operands *ids,
                  char out[static KEYS_ID_MAX + 1], struct err *err)
{
    if (ids->count == 0)
        return keys_active(k, out, err);
    if (!keys_id_valid(str_from(ids->at[0])))
        return err_set(err, ERR_FORMAT, "'%s' is not a signer id", ids->at[0]);
    snprintf(out, KEYS_ID_MAX + 1, "%s", ids->at[0]);
    return 0;
}

static void add_list_line(struct buf *b, const struct described *d, int width)
{
    buf_printf(b, "%c %-*s  ", d->active ? '*' : ' ', width, d->id);
    add_fingerprint(b, d);
    buf_add_char(b, '\n');
}

static int longest(char (*ids)[KEYS_ID_MAX + 1], int count)
{
    size_t n = 0;

    for (int i = 0; i < count; i++)
        n = strlen(ids[i]) > n ? strlen(ids[i]) : n;
    return (int)n;
}

/* One key that cannot be read is said and does not hide the others. */
static enum exit_code print_list(const struct keys *k, char (*ids)[KEYS_ID_MAX + 1],
                                 int count, bool json)
{
    CLEANUP(buf_release) struct buf b = { .max = (size_t)1 << 20 };
    enum exit_code code = EXIT_GOOD, printed;
    bool first = true;

    buf_add(&b, json ? STR("{\"signers\":[") : STR(""));
    for (int i = 0; i < count; i++) {
        struct err err = { .code = ERR_NONE };
        struct described d;

        if (describe(k, ids[i], &d, &err) < 0) {
            code = command_fail(&err);
            continue;
        }
        if (json && !first)
            buf_add_char(&b, ',');
        if (json)
            add_json(&b, &d);
        else
            add_list_line(&b, &d, longest(ids, count));
        first = false;
    }
    buf_add(&b, json ? STR("]}\n") : STR(""));
    printed = print(&b);
    return printed == EXIT_GOOD ? code : printed;
}

static enum exit_code run_list(int argc, char **argv)
{
    bool json = false;
    const struct option table[] = {
        { "json", NULL, "print JSON", .flag = &json },
        { 0 },
    };
    struct operands none = { .max = 0 };
    struct err err = { .code = ERR_NONE };
    enum exit_code code;
    struct keys k;
    char(*ids)[KEYS_ID_MAX + 1];
    int count;

    if (!options_parse(&key_list, table, argc, argv, &none, &code))
        return code;
    if (keys_open(&k, NULL, &err) < 0)
        return command_fail_as(&key_list, json, &err);
    ids = calloc(KEYS_MAX, sizeof(*ids));
    count = ids ? keys_list(&k, ids, KEYS_MAX, &err)
                : err_set(&err, ERR_NOMEM, "no memory to list keys");
    if (count == 0 && !json)
        diag_say("there is no signing key in '%s' yet", k.dir);
    code = count < 0 ? command_fail_as(&key_list, json, &err)
                     : print_list(&k, ids, count, json);
    free(ids);
    return code;
}

static const struct command key_list = {
    .name = "key list",
    .usage = "[--json]",
    .summary = "list the signing keys; * marks the active one",
    .run = run_list,
};

static enum exit_code run_generate(int argc, char **argv)
{
    bool json = false;
    const struct option table[] = {
        { "json", NULL, "print JSON", .flag = &json },
        { 0 },
    };
    CLEANUP(signer_release) struct signer s = { .id = "" };
    struct operands ids = { .max = 1 };
    struct err err = { .code = ERR_NONE };
    enum exit_code code;
    struct keys k;

    if (!options_parse(&key_generate, table, argc, argv, &ids, &code))
        return code;
    if (keys_open(&k, NULL, &err) < 0 ||
        keys_generate(&k, &entropy_system, ids.count ? ids.at[0] : KEYS_DEFAULT_SIGNER,
                      &s, &err) < 0)
        return command_fail_as(&key_generate, json, &err);
    return print_one(&key_generate, &k, s.id, json);
}

static const struct command key_generate = {
    .name = "key generate",
    .usage = "[--json] [ID]",
    .summary = "make a signing key (" KEYS_DEFAULT_SIGNER " unless an ID is given)",
    .run = run_generate,
};

static enum exit_code run_info(int argc, char **argv)
{
    bool json = false;
    const struct option table[] = {
        { "json", NULL, "print JSON", .flag = &json },
        { 0 },
    };
    struct operands ids = { .max = 1 };
    struct err err = { .code = ERR_NONE };
    char id[KEYS_ID_MAX + 1];
    enum exit_code code;
    struct keys k;

    if (!options_parse(&key_info, table, argc, argv, &ids, &code))
        return code;
    if (keys_open(&k, NULL, &err) < 0 || choose(&k, &ids, id, &err) < 0)
        return command_fail_as(&key_info, json, &err);
    return print_one(&key_info, &k, id, json);
}

static const struct command key_info = {
    .name = "key info",
    .usage = "[--json] [ID]",
    .summary = "show a signer's public key and its fingerprint (SHA-256)",
    .run = run_info,
};

/* Write base64 text and a newline; the buffer may hold a secret, so it is wiped. */
static int write_text(const char *path, const uint8_t *half, mode_t mode, struct err *err)
{
    struct buf text = { .max = KEY_TEXT_MAX };
    int r;

    base64_add(&text, half, SEED_SIZE);
    buf_add_char(&text, '\n');
    r = buf_check(&text, "the key", err);
    if (r == 0)
        r = file_create(path, buf_str(&text), mode, err);
    if (text.p)
        explicit_bzero(text.p, text.cap);
    buf_release(&text);
    return r;
}

static int export_half(const struct keys *k, const char *id, bool secret,
                       const char *path, struct err *err)
{
    CLEANUP(signer_release) struct signer s = { .id = "" };
    uint8_t public_key[PUBLIC_SIZE];

    if (!secret)
        return keys_load_public(k, id, public_key, err) < 0
                   ? -1
                   : write_text(path, public_key, 0644, err);
    return keys_load(k, id, &s, err) < 0 ? -1
                                         : write_text(path, s.secret.seed, 0600, err);
}

static void print_exported(const char *id, const char *path, bool secret, bool json)
{
    CLEANUP(buf_release) struct buf b = { .max = (size_t)1 << 16 };
    CLEANUP(buf_release) struct buf shown = { .max = (size_t)1 << 16 };

    diag_escape(&shown, str_from(path));
    if (!json) {
        buf_printf(&b, "%s\n", buf_cstr(&shown));
    } else {
        buf_add(&b, STR("{\"path\":"));
        jcs_add_string(&b, buf_str(&shown));
        buf_printf(&b, ",\"secret\":%s,\"signer_id\":", secret ? "true" : "false");
        jcs_add_string(&b, str_from(id));
        buf_add(&b, STR("}\n"));
    }
    fwrite(b.p, 1, b.n, stdout);
}

static enum exit_code run_export(int argc, char **argv)
{
    bool json = false, secret = false;
    const char *out = NULL;
    const struct option table[] = {
        { "out", "DIR", "write there (default: the current directory)", .text = &out },
        { "secret", NULL, "export the secret half: ID.key.b64, mode 0600",
          .flag = &secret },
        { "json", NULL, "print JSON", .flag = &json },
        { 0 },
    };
    struct operands ids = { .max = 1 };
    struct err err = { .code = ERR_NONE };
    char id[KEYS_ID_MAX + 1], name[KEYS_ID_MAX + 16], path[FILE_PATH_MAX];
    enum exit_code code;
    struct keys k;

    if (!options_parse(&key_export, table, argc, argv, &ids, &code))
        return code;
    if (keys_open(&k, NULL, &err) < 0 || choose(&k, &ids, id, &err) < 0)
        return command_fail_as(&key_export, json, &err);
    snprintf(name, sizeof(name), "%s.%s.b64", id, secret ? "key" : "pub");
    if (path_join(path, out ? out : ".", name, &err) < 0 ||
        export_half(&k, id, secret, path, &err) < 0)
        return command_fail_as(&key_export, json, &err);
    print_exported(id, path, secret, json);
    return EXIT_GOOD;
}

static const struct command key_export = {
    .name = "key export",
    .usage = "[--secret] [--out DIR] [--json] [ID]",
    .summary = "write a key as base64 text: ID.pub.b64, or ID.key.b64 with --secret",
    .run = run_export,
};

static enum exit_code run_import(int argc, char **argv)
{
    bool json = false;
    const struct option table[] = {
        { "json", NULL, "print JSON", .flag = &json },
        { 0 },
    };
    struct operands words = { .min = 1, .max = 2 };
    struct err err = { .code = ERR_NONE };
    uint8_t seed[SEED_SIZE];
    char id[KEYS_ID_MAX + 1];
    enum exit_code code;
    struct operands given;
    struct keys k;
    int r;

    if (!options_parse(&key_import, table, argc, argv, &words, &code))
        return code;
    given = (struct operands){ .at = words.at + 1, .count = words.count - 1 };
    if (key_file_refuse_public_name(words.at[0], &err) < 0 ||
        keys_open(&k, NULL, &err) < 0 ||
        (given.count ? choose(&k, &given, id, &err)
                     : key_file_id_from_path(words.at[0], id, &err)) < 0)
        return command_fail_as(&key_import, json, &err);
    r = key_file_read(words.at[0], seed, &err);
    if (r == 0)
        r = key_file_refuse_public_key(&k, words.at[0], seed, &err);
    if (r == 0)
        r = keys_import(&k, id, seed, &err);
    explicit_bzero(seed, sizeof(seed));
    return r < 0 ? command_fail_as(&key_import, json, &err)
                 : print_one(&key_import, &k, id, json);
}

static const struct command key_import = {
    .name = "key import",
    .usage = "[--json] FILE [ID]",
    .summary = "add a secret key from ID.key.b64 or ID.key ('-' reads stdin)",
    .run = run_import,
};

static bool ends_in_stamp(str id)
{
    static const char form[] = "-ddddddddTddddddZ";
    str tail = str_skip(id, id.n - (sizeof(form) - 1));

    if (id.n <= sizeof(form) - 1)
        return false;
    for (size_t i = 0; i < tail.n; i++) {
        if (form[i] == 'd' ? tail.p[i] < '0' || tail.p[i] > '9' : tail.p[i] != form[i])
            return false;
    }
    return true;
}

/* "<id>-<UTC stamp>"; the stamp of an earlier rotation gives way to the new one. */
static int rotated_id(char out[static KEYS_ID_MAX + 1], const char *from,
                      const struct clock *clock, struct err *err)
{
    char stamp[CLOCK_STAMP];
    str id = str_from(from);

    if (ends_in_stamp(id))
        id.n -= CLOCK_STAMP + 1;
    if (id.n + 1 + CLOCK_STAMP > KEYS_ID_MAX)
        return err_set(err, ERR_LIMIT, "'%s' is too long to add a date: give an ID",
                       from);
    clock_stamp(stamp, clock_now(clock));
    snprintf(out, KEYS_ID_MAX + 1, "%.*s-%.*s", (int)id.n, id.p, CLOCK_STAMP, stamp);
    return 0;
}

static int next_signer(const struct keys *k, const struct operands *ids,
                       char out[static KEYS_ID_MAX + 1], struct err *err)
{
    char active[KEYS_ID_MAX + 1];

    if (ids->count)
        return choose(k, ids, out, err);
    if (keys_active(k, active, err) < 0)
        return -1;
    return rotated_id(out, active, &clock_system, err);
}

/* From here on the log is signed by the new key; its next checkpoint by both. */
static int rotate_log(const char *dir, const struct keys *k, const struct signer *next,
                      struct err *err)
{
    const struct log_options options = place_log_options(dir, k);
    struct err closing = { .code = ERR_NONE };
    struct log *log;
    int r;

    if (log_open(&log, &options, err) < 0)
        return -1;
    r = log_rotate_key(log, next, err);
    if (log_close(log, &closing) < 0 && r == 0) {
        *err = closing;
        r = -1;
    }
    if (r == 0)
        diag_say("the log in '%s' is signed by '%s' from now on", dir, next->id);
    return r;
}

/* A log may be handed over to a key that there is. */
static int make_or_load(const struct keys *k, const char *id, bool log, struct signer *s,
                        struct err *err)
{
    struct err why;

    if (log && keys_load(k, id, s, &why) == 0)
        return 0;
    if (log && why.code != ERR_NOTFOUND) {
        *err = why;
        return -1;
    }
    return keys_generate(k, &entropy_system, id, s, err);
}

static enum exit_code run_rotate(int argc, char **argv)
{
    bool json = false, log = false;
    const char *given = NULL;
    const struct option table[] = {
        { "log", NULL, "let it sign the audit log, too; ID may be a key that there is",
          .flag = &log },
        { "audit-dir", "DIR",
          "with --log: the audit directory (default " PLACE_DEFAULT ")", .text = &given },
        { "json", NULL, "print JSON", .flag = &json },
        { 0 },
    };
    CLEANUP(signer_release) struct signer s = { .id = "" };
    struct operands ids = { .max = 1 };
    struct err err = { .code = ERR_NONE };
    char id[KEYS_ID_MAX + 1], dir[FILE_PATH_MAX];
    enum exit_code code;
    struct keys k;

    if (!options_parse(&key_rotate, table, argc, argv, &ids, &code))
        return code;
    if (log && place_find(dir, given, &err) < 0)
        return command_fail_as(&key_rotate, json,
                               &err); /* before a key is made for nothing */
    if (keys_open(&k, NULL, &err) < 0 || next_signer(&k, &ids, id, &err) < 0 ||
        make_or_load(&k, id, log, &s, &err) < 0 || keys_set_active(&k, id, &err) < 0)
        return command_fail_as(&key_rotate, json, &err);
    if (log && rotate_log(dir, &k, &s, &err) < 0) {
        err_wrap(&err, "the key '%s' is active, but the log was not handed over", id);
        return command_fail_as(&key_rotate, json, &err);
    }
    if (!log && !json)
        diag_say(
            "the new key is for new logs; 'assay key rotate --log %s' hands over one "
            "that exists",
            id);
    return print_one(&key_rotate, &k, id, json);
}

static const struct command key_rotate = {
    .name = "key rotate",
    .usage = "[--log [--audit-dir DIR]] [--json] [ID]",
    .summary = "make a new signer and use it from now on; old keys stay",
    .run = run_rotate,
};

static enum exit_code run_set_active(int argc, char **argv)
{
    bool json = false;
    const struct option table[] = {
        { "json", NULL, "print JSON", .flag = &json },
        { 0 },
    };
    struct operands ids = { .min = 1, .max = 1 };
    struct err err = { .code = ERR_NONE };
    enum exit_code code;
    struct keys k;

    if (!options_parse(&key_set_active, table, argc, argv, &ids, &code))
        return code;
    if (keys_open(&k, NULL, &err) < 0 || keys_set_active(&k, ids.at[0], &err) < 0)
        return command_fail_as(&key_set_active, json, &err);
    return print_one(&key_set_active, &k, ids.at[0], json);
}

static const struct command key_set_active = {
    .name = "key set-active",
    .usage = "[--json] ID",
    .summary = "sign with this key from now on",
    .run = run_set_active,
};

static const struct command *const key_commands[] = {
    &key_list,   &key_generate, &key_info,       &key_export,
    &key_import, &key_rotate,   &key_set_active, NULL,
};

const struct command cmd_key = {
    .name = "key",
    .usage = "COMMAND",
    .summary = "make, list, move and rotate signing keys",
    .subcommands = key_commands,
};
