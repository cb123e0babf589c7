/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/policy_pin.h"

#include <stdio.h>
#include <string.h>

#include "base/codec.h"
#include "base/diag.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/options.h"
#include "cli/place.h"
#include "cli/terminal.h"
#include "pipeline/pinboard.h"
#include "json/pretty.h"

#define OUTPUT_MAX ((size_t)256 << 20)
#define HASH_SHOWN 16 /* digits, for people; JSON has all */

struct request {
    const char *accept, *server, *audit_dir;
    bool json;
};

/* What goes from server to server. */
struct visit {
    const struct request *request;
    const char *audit_dir;
    struct buf text;
    struct pretty json;
    size_t servers, accepted;
    bool known;     /* a tool of that name is pinned */
    char name[256]; /* of the server whose change is to be accepted */
};

/* --- every server --- */

typedef int visit_board(struct visit *v, struct pinboard *b, const char *name,
                        struct err *err);

struct walk {
    struct visit *visit;
    visit_board *each;
};

static int open_one(struct walk *w, const char *name, struct err *err)
{
    CLEANUP(pinboard_release) struct pinboard b = { .found = false };

    if (pinboard_open_dir(&b, w->visit->audit_dir, name, err) < 0)
        return -1;
    w->visit->servers += b.found;
    return b.found ? w->each(w->visit, &b, name, err) : 0;
}

static int on_name(void *ctx, const char *name, struct err *err)
{
    return open_one(ctx, name, err);
}

static int each_board(struct visit *v, visit_board *each, struct err *err)
{
    CLEANUP(pinboard_release) struct pinboard b = { .found = false };
    struct walk walk = { v, each };
    char dir[FILE_PATH_MAX];

    if (v->request->server) {
        if (pinboard_open(&b, v->audit_dir, v->request->server, err) < 0)
            return -1;
        if (!b.found)
            return err_set(err, ERR_NOTFOUND, "no tool of server '%s' is pinned in '%s'",
                           v->request->server, v->audit_dir);
        v->servers++;
        return each(v, &b, v->request->server, err);
    }
    if (path_join(dir, v->audit_dir, PINBOARD_DIR, err) < 0)
        return -1;
    if (file_each(dir, on_name, &walk, err) < 0 && err->code != ERR_NOTFOUND)
        return -1;
    return v->servers
               ? 0
               : err_set(err, ERR_NOTFOUND, "no tool is pinned in '%s'", v->audit_dir);
}

/* --- list --- */

static void list_text(struct visit *v, const struct pin *pin, const struct pin *offered)
{
    char hash[PIN_HEX];

    buf_printf(&v->text, "  %s%-8s%s ", offered ? paint(stdout, PAINT_YELLOW) : "",
               offered ? "changed" : "pinned", offered ? paint(stdout, PAINT_END) : "");
    pin_hex(hash, &pin->hash);
    buf_add(&v->text, str_first(str_from(hash), HASH_SHOWN));
    if (offered) {
        pin_hex(hash, &offered->hash);
        buf_printf(&v->text, " -> %.*s", HASH_SHOWN, hash);
    }
    buf_add(&v->text, STR("  "));
    diag_escape(&v->text, pin->name);
    buf_add_char(&v->text, '\n');
}

static void list_json(struct visit *v, const char *server, const struct pin *pin,
                      const struct pin *offered)
{
    char hash[PIN_HEX];

    pretty_object(&v->json, NULL);
    pretty_text(&v->json, "server", server);
    pretty_string(&v->json, "tool", pin->name);
    pretty_text(&v->json, "state", offered ? "changed" : "pinned");
    pin_hex(hash, &pin->hash);
    pretty_text(&v->json, "pinned", hash);
    if (offered) {
        pin_hex(hash, &offered->hash);
        pretty_text(&v->json, "offered", hash);
    } else {
        pretty_null(&v->json, "offered");
    }
    pretty_end_object(&v->json);
}

static int list_board(struct visit *v, struct pinboard *b, const char *name,
                      struct err *err)
{
    (void)err;
    if (!v->request->json) {
        diag_escape(&v->text, str_from(name));
        buf_add_char(&v->text, '\n');
    }
    for (size_t i = 0; i < b->pins.count; i++) {
        const struct pin *pin = &b->pins.at[i];
        const struct pin *offered =
            pinboard_differs(b, pin->name) ? pins_find(&b->offered, pin->name) : NULL;

        if (v->request->json)
            list_json(v, name, pin, offered);
        else
            list_text(v, pin, offered);
    }
    return 0;
}

static int list(struct visit *v, struct err *err)
{
    if (v->request->json) {
        pretty_init(&v->json, &v->text);
        pretty_object(&v->json, NULL);
        pretty_array(&v->json, "pins");
    }
    if (each_board(v, list_board, err) < 0)
        return -1;
    if (v->request->json) {
        pretty_end_array(&v->json);
        pretty_end_object(&v->json);
        buf_add_char(&v->text, '\n');
    }
    if (buf_check(&v->text, "the list", err) < 0)
        return -1;
    fputs(buf_cstr(&v->text), stdout);
    return 0;
}

/* --- accept --- */

/* Counted first, so that nothing is accepted of two servers by one word. */
static int find_change(struct visit *v, struct pinboard *b, const char *name,
                       struct err *err)
{
    str tool = str_from(v->request->accept);

    (void)err;
    v->known = v->known || pins_find(&b->pins, tool);
    if (!pinboard_differs(b, tool))
        return 0;
    v->accepted++;
    snprintf(v->name, sizeof(v->name), "%s", name);
    return 0;
}

static int accept_change(struct visit *v, struct pinboard *b, const char *name,
                         struct err *err)
{
    const struct pin *offered = pins_find(&b->offered, str_from(v->request->accept));
    char hash[PIN_HEX];

    if (strcmp(name, v->name) != 0 || !offered)
        return 0;
    pin_hex(hash, &offered->hash);
    if (pins_put(&b->pins, offered, err) < 0 || pinboard_save_pins(b, err) < 0)
        return -1;
    if (v->request->json)
        buf_add(&v->text, STR("{\"accepted\":"));
    if (v->request->json)
        pretty_add_string(&v->text, offered->name);
    else
        diag_escape(&v->text, offered->name);
    buf_printf(&v->text, v->request->json ? ",\"hash\":\"%s\"}\n" : ": pinned as %s\n",
               hash);
    fputs(buf_cstr(&v->text), stdout);
    return 0;
}

static int accept(struct visit *v, struct err *err)
{
    if (each_board(v, find_change, err) < 0)
        return -1;
    if (!v->known)
        return err_set(err, ERR_NOTFOUND,
                       "no tool '%s' is pinned; 'assay policy pin list' has their names",
                       v->request->accept);
    if (v->accepted == 0)
        return err_set(err, ERR_NOTFOUND, "'%s' has not changed: nothing to accept",
                       v->request->accept);
    if (v->accepted > 1)
        return err_set(err, ERR_FORMAT,
                       "'%s' has changed on %zu servers; name one with "
                       "--server-id",
                       v->request->accept, v->accepted);
    return each_board(v, accept_change, err);
}

/* --- the command --- */

static enum exit_code pin(const struct request *r)
{
    struct visit v = { .request = r, .text = { .max = OUTPUT_MAX } };
    char dir[FILE_PATH_MAX];
    struct err err = { 0 };
    int result = place_find(dir, r->audit_dir, &err);

    v.audit_dir = dir;
    if (result == 0)
        result = r->accept ? accept(&v, &err) : list(&v, &err);
    buf_release(&v.text);
    return result < 0 ? command_fail_as(&policy_pin, r->json, &err) : EXIT_GOOD;
}

static enum exit_code run(int argc, char **argv)
{
    struct request r = { 0 };
    struct operands words = { .max = 1 };
    const struct option table[] = {
        { "accept", "TOOL", "pin what the server offers now under this name",
          .text = &r.accept },
        { "server-id", "ID", "of this server (default: of all)", .text = &r.server },
        { "audit-dir", "DIR", "the audit directory (default " PLACE_DEFAULT ")",
          .text = &r.audit_dir },
        { "json", NULL, "print JSON", .flag = &r.json },
        { 0 },
    };
    struct err err = { 0 };
    enum exit_code code;
    bool listed;

    if (!options_parse(&policy_pin, table, argc, argv, &words, &code))
        return code;
    listed = words.count && strcmp(words.at[0], "list") == 0;
    if (listed == (r.accept != NULL) || (words.count && !listed)) {
        err_set(&err, ERR_FORMAT, "policy pin: expected 'list' or --accept TOOL");
        return command_fail_as(&policy_pin, r.json, &err);
    }
    return pin(&r);
}

const struct command policy_pin = {
    .name = "policy pin",
    .usage = "list|--accept TOOL [--server-id ID] [--audit-dir DIR] [--json]",
    .summary = "tool definitions as they were first seen, and changes to them",
    .run = run,
};
