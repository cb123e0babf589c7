/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/policy_pin.h"

#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/err.h"
#include "cli/options.h"
#include "cli/place.h"
#include "evidence/crypto.h"
#include "pipeline/pinboard.h"
#include "json/pretty.h"

#define HASH_SHOWN 16 /* hex digits of a hash in a table */

struct request {
    const char *audit_dir, *server_id, *accept;
    bool json;
    size_t found;    /* of the tool to accept: offers that differ */
    size_t accepted; /* by the board at hand */
    struct pretty *out;
};

/* Do something with the board of each server, or of the one that was named. */
static int each_board(const char *dir, const char *server_id,
                      int (*visit)(struct request *r, const char *server,
                                   struct pinboard *b, struct err *err),
                      struct request *r, struct err *err);

static void hex_of(char out[static 2 * DIGEST_SIZE + 1], const struct pin_hash *h)
{
    struct digest d;

    memcpy(d.bytes, h->bytes, DIGEST_SIZE);
    digest_hex(out, &d);
    out[2 * DIGEST_SIZE] = '\0';
}

/* --- list --- */

static void list_text(const struct pinboard *b, const struct pin *p)
{
    const struct pin *now =
        pinboard_differs(b, p->name) ? pins_find(&b->offered, p->name) : NULL;
    CLEANUP(buf_release) struct buf name = { 0 };
    char pinned[2 * DIGEST_SIZE + 1], offered[2 * DIGEST_SIZE + 1];

    hex_of(pinned, &p->hash);
    diag_escape(&name, p->name);
    printf("  %.*s  %s", HASH_SHOWN, pinned, buf_cstr(&name));
    if (now) {
        hex_of(offered, &now->hash);
        printf("  CHANGED to %.*s", HASH_SHOWN, offered);
    }
    printf("\n");
}

static void list_json(struct pretty *j, const char *server, const struct pinboard *b,
                      const struct pin *p)
{
    char hex[2 * DIGEST_SIZE + 1];

    pretty_object(j, NULL);
    pretty_text(j, "server", server);
    pretty_string(j, "tool", p->name);
    hex_of(hex, &p->hash);
    pretty_text(j, "sha256", hex);
    if (pinboard_differs(b, p->name)) {
        hex_of(hex, &pins_find(&b->offered, p->name)->hash);
        pretty_text(j, "changed_to", hex);
    } else {
        pretty_null(j, "changed_to");
    }
    pretty_end_object(j);
}

static int list_board(struct request *r, const char *server, struct pinboard *b,
                      struct err *err)
{
    (void)err;
    if (!r->json)
        printf("%s\n", server);
    for (size_t i = 0; i < b->pins.count; i++) {
        if (r->json)
            list_json(r->out, server, b, &b->pins.at[i]);
        else
            list_text(b, &b->pins.at[i]);
    }
    r->found += b->pins.count;
    return 0;
}

static enum exit_code list(struct request *r, const char *dir)
{
    CLEANUP(buf_release) struct buf text = { .max = (size_t)64 << 20 };
    struct pretty j;
    struct err err = { 0 };

    pretty_init(&j, &text);
    r->out = &j;
    pretty_array(&j, NULL);
    if (each_board(dir, r->server_id, list_board, r, &err) < 0)
        return command_fail_as(&policy_pin, r->json, &err);
    pretty_end_array(&j);
    if (r->json)
        printf("%s\n", buf_cstr(&text));
    else if (!r->found)
        printf("no tool definition is pinned in '%s'\n", dir);
    return EXIT_GOOD;
}

/* --- accept --- */

static int accept_on(struct request *r, const char *server, struct pinboard *b,
                     struct err *err)
{
    str tool = str_from(r->accept);
    const struct pin *now = pins_find(&b->offered, tool);
    char hex[2 * DIGEST_SIZE + 1];

    if (!now || !pinboard_differs(b, tool))
        return 0;
    r->found++;
    if (!r->accepted)
        return 0; /* only counting */
    if (pins_put(&b->pins, now, err) < 0 || pinboard_save_pins(b, err) < 0)
        return -1;
    hex_of(hex, &now->hash);
    printf("accepted: '%s' of %s is pinned as %s\n", r->accept, server, hex);
    return 0;
}

static enum exit_code accept(struct request *r, const char *dir)
{
    struct err err = { 0 };

    if (each_board(dir, r->server_id, accept_on, r, &err) < 0)
        return command_fail_as(&policy_pin, r->json, &err);
    if (r->found == 0)
        err_set(&err, ERR_NOTFOUND, "no changed definition of '%s' waits in '%s'",
                r->accept, dir);
    if (r->found > 1)
        err_set(&err, ERR_FORMAT,
                "%zu servers have a changed '%s': say which with --server-id", r->found,
                r->accept);
    r->accepted = 1;
    if (r->found == 1 && each_board(dir, r->server_id, accept_on, r, &err) == 0)
        return EXIT_GOOD;
    return command_fail_as(&policy_pin, r->json, &err);
}

/* --- boards --- */

struct walk {
    struct request *r;
    const char *dir; /* pins/ */
    int (*visit)(struct request *r, const char *server, struct pinboard *b,
                 struct err *err);
};

static int visit_dir(void *ctx, const char *name, struct err *err)
{
    CLEANUP(pinboard_release) struct pinboard b = { .found = false };
    struct walk *w = ctx;
    char path[FILE_PATH_MAX];

    if (path_join(path, w->dir, name, err) < 0 || pinboard_open_at(&b, path, err) < 0)
        return -1;
    return w->visit(w->r, name, &b, err);
}

static int each_board(const char *dir, const char *server_id,
                      int (*visit)(struct request *r, const char *server,
                                   struct pinboard *b, struct err *err),
                      struct request *r, struct err *err)
{
    CLEANUP(pinboard_release) struct pinboard b = { .found = false };
    char pins[FILE_PATH_MAX];
    struct walk w = { r, pins, visit };

    if (path_join(pins, dir, "pins", err) < 0)
        return -1;
    if (server_id)
        return pinboard_open(&b, dir, server_id, err) < 0 ? -1
                                                          : visit(r, server_id, &b, err);
    if (file_each(pins, visit_dir, &w, err) == 0 || err->code == ERR_NOTFOUND)
        return 0;
    return -1;
}

static enum exit_code run(int argc, char **argv)
{
    struct request r = { .audit_dir = NULL };
    struct operands words = { .max = 1 };
    const struct option table[] = {
        { "accept", "TOOL", "pin the definition that the server offers now",
          .text = &r.accept },
        { "server-id", "ID", "only this server", .text = &r.server_id },
        { "audit-dir", "DIR", "where the pins are (default " PLACE_DEFAULT ")",
          .text = &r.audit_dir },
        { "json", NULL, "print JSON", .flag = &r.json },
        { 0 },
    };
    char dir[FILE_PATH_MAX];
    struct err err = { 0 };
    enum exit_code code;

    if (!options_parse(&policy_pin, table, argc, argv, &words, &code))
        return code;
    if ((words.count == 1) == (r.accept != NULL) ||
        (words.count && strcmp(words.at[0], "list") != 0)) {
        err_set(&err, ERR_FORMAT, "say 'list', or --accept TOOL: assay %s %s",
                policy_pin.name, policy_pin.usage);
        return command_fail_as(&policy_pin, r.json, &err);
    }
    if (place_find(dir, r.audit_dir, &err) < 0)
        return command_fail_as(&policy_pin, r.json, &err);
    return r.accept ? accept(&r, dir) : list(&r, dir);
}

const struct command policy_pin = {
    .name = "policy pin",
    .usage = "list|--accept TOOL [--server-id ID] [--audit-dir DIR] [--json]",
    .summary = "tool definitions as they were first seen, and accepting a changed one",
    .run = run,
};
