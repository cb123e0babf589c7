/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of tools: their definitions are pinned, and what is denied is not shown. */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/file.h"
#include "base/utf8.h"
#include "evidence/log.h"
#include "pipeline/guard.h"
#include "policy/hidden.h"
#include "json/jcs.h"

#define PIN_FILES_MAX ((size_t)32 << 20) /* bytes of a file of pins */
#define NAME_SHOWN    200                /* bytes of a tool's name in an event */
#define NAMES_AT_ONCE 50                 /* of an event */

enum policy_pin guard_pin(const struct guard *g)
{
    if (g->options.pin != POLICY_PIN_UNSET)
        return g->options.pin;
    if (g->file.policy && g->file.policy->pin != POLICY_PIN_UNSET)
        return g->file.policy->pin;
    return POLICY_PIN_WARN;
}

bool guard_cuts_lists(const struct guard *g)
{
    return g->options.enforce && g->file.policy && !g->options.show_denied_tools;
}

/* --- the files --- */

static bool is_plain_name(str s)
{
    if (s.n == 0 || s.n > 100 || s.p[0] == '.')
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_'))
            return false;
    }
    return true;
}

/* pins/<server>; a name that is no file name goes by its hash. */
static int name_dir(struct guard *g, struct err *err)
{
    str id = str_from(g->options.server_id);
    char name[128], dir[FILE_PATH_MAX];
    struct digest d = digest_of(id);

    if (is_plain_name(id))
        snprintf(name, sizeof(name), "%.*s", STR_ARG(id));
    else
        snprintf(name, sizeof(name), "id_%0*d", 2 * DIGEST_SIZE, 0);
    if (!is_plain_name(id))
        digest_hex(name + 3, &d);
    if (path_join(dir, log_dir(g->options.log), "pins", err) < 0)
        return -1;
    return path_join(g->pin_dir, dir, name, err);
}

static int read_pins(const struct guard *g, const char *name, struct pins *out,
                     bool *found, struct err *err)
{
    CLEANUP(buf_release) struct buf bytes = { .max = PIN_FILES_MAX };
    char path[FILE_PATH_MAX];

    *found = false;
    if (path_join(path, g->pin_dir, name, err) < 0)
        return -1;
    if (file_read(path, &bytes, err) < 0)
        return err->code == ERR_NOTFOUND ? 0 : -1;
    *found = true;
    return pins_read(out, buf_str(&bytes), err) < 0 ? err_wrap(err, "'%s'", path) : 0;
}

int guard_open_pins(struct guard *g, struct err *err)
{
    bool found;

    if (guard_pin(g) == POLICY_PIN_OFF)
        return 0;
    if (name_dir(g, err) < 0 ||
        read_pins(g, "offered.json", &g->offered, &found, err) < 0 ||
        read_pins(g, "pins.json", &g->pins, &found, err) < 0)
        return err_wrap(err, "the pins of this server cannot be read; remove them to pin "
                             "anew");
    g->pinned_before = found;
    g->pins_loaded = true;
    return 0;
}

static void write_pins(const struct guard *g, const char *name, const struct pins *p)
{
    CLEANUP(buf_release) struct buf bytes = { .max = PIN_FILES_MAX };
    char path[FILE_PATH_MAX];
    struct err err;

    pins_write(p, &bytes);
    if (buf_check(&bytes, "the file of pins", &err) < 0 ||
        file_make_dirs(g->pin_dir, 0700, &err) < 0 ||
        path_join(path, g->pin_dir, name, &err) < 0 ||
        file_replace(path, buf_str(&bytes), 0600, &err) < 0)
        guard_say(g, "tool definitions cannot be pinned: %s", err.msg);
}

/* The definition itself, under its hash. */
static void keep_definition(const struct guard *g, const struct json *j, uint32_t tool,
                            const struct pin *p)
{
    CLEANUP(buf_release) struct buf text = { .max = PIN_FILES_MAX };
    struct sink sink = buf_sink(&text);
    char path[FILE_PATH_MAX], name[2 * DIGEST_SIZE + 6];
    struct digest d;
    struct err err;

    memcpy(d.bytes, p->hash.bytes, DIGEST_SIZE);
    digest_hex(name, &d);
    memcpy(name + 2 * DIGEST_SIZE, ".json", 6);
    if (jcs_write(j, tool, JCS_RFC8785, &sink, &err) < 0 ||
        buf_check(&text, "a tool's definition", &err) < 0 ||
        file_make_dirs(g->pin_dir, 0700, &err) < 0 ||
        path_join(path, g->pin_dir, name, &err) < 0 ||
        (file_create(path, buf_str(&text), 0600, &err) < 0 && err.code != ERR_EXISTS))
        guard_say(g, "a tool's definition cannot be kept: %s", err.msg);
}

/* Accepted meanwhile, perhaps: only who would be refused is looked up again. */
bool guard_has_changed(const struct guard *g, str tool)
{
    const struct pin *offered = pins_find(&g->offered, tool), *pin;
    struct pins now = { 0 };
    struct err ignored;
    bool found, changed;

    if (!offered)
        return false;
    if (read_pins(g, "pins.json", &now, &found, &ignored) < 0)
        return true;
    pin = pins_find(&now, tool);
    changed = !pin || memcmp(&pin->hash, &offered->hash, sizeof(pin->hash)) != 0;
    pins_release(&now);
    return changed;
}

/* --- what an event says --- */

static str shown(str name)
{
    size_t n = name.n > NAME_SHOWN ? NAME_SHOWN : name.n;

    while (n < name.n && n > 0 && ((unsigned char)name.p[n] & 0xc0) == 0x80)
        n--;
    return utf8_valid(name) ? str_first(name, n) : STR("?");
}

static void put(struct guard *g, struct event *e)
{
    struct err err;

    if (session_put(g->options.session, e, NULL, &err) < 0)
        guard_say(g, "%s", err.msg);
}

static void tell_change(struct guard *g, const struct pin *from, const struct pin *to)
{
    CLEANUP(event_release) struct event e = { 0 };
    struct digest d;
    str name = shown(to->name);

    event_init(&e, EVENT_TOOL_CHANGED);
    event_add_texts(&e, "names", &name, 1);
    memcpy(d.bytes, to->hash.bytes, DIGEST_SIZE);
    event_add_digest(&e, "to", &d);
    if (from) {
        memcpy(d.bytes, from->hash.bytes, DIGEST_SIZE);
        event_add_digest(&e, "from", &d);
    }
    put(g, &e);
}

static void tell_withheld(struct guard *g, const str *names, size_t count)
{
    CLEANUP(event_release) struct event e = { 0 };

    for (size_t i = 0; i < count; i += NAMES_AT_ONCE) {
        event_init(&e, EVENT_TOOLS_WITHHELD);
        event_add_texts(&e, "names", names + i,
                        count - i < NAMES_AT_ONCE ? count - i : NAMES_AT_ONCE);
        put(g, &e);
    }
}

/* --- a list --- */

struct list {
    struct guard *g;
    const struct json *j;
    struct buf text; /* the name at hand */
    bool pins_moved, offers_moved;
    str *withheld;
    size_t withheld_count;
};

static void finish_hash(void *ctx, uint8_t out[static PIN_HASH_SIZE])
{
    struct digest d = hasher_finish(ctx);

    memcpy(out, d.bytes, DIGEST_SIZE);
}

static bool read_tool(struct list *l, uint32_t tool, struct pin *out)
{
    struct hasher h;
    struct pin_hasher hasher = { .finish = finish_hash, .ctx = &h };
    struct err ignored;

    hasher_init(&h);
    hasher.sink = hasher_sink(&h);
    buf_reset(&l->text);
    return pin_of(out, l->j, tool, &hasher, &l->text, &ignored) == 0;
}

static void warn_of_hidden(struct list *l, uint32_t tool, str name)
{
    struct hidden h = hidden_in(l->j, tool);

    if (h.kind != HIDDEN_NONE)
        guard_say(l->g,
                  "the definition of tool '%.*s' has %zu characters that a person does "
                  "not see (%s, U+%04X first)",
                  STR_ARG(shown(name)), h.count, hidden_name(h.kind),
                  (unsigned)h.code_point);
}

static bool is_offered(const struct guard *g, const struct pin *p)
{
    const struct pin *o = pins_find(&g->offered, p->name);

    return o && memcmp(&o->hash, &p->hash, sizeof(o->hash)) == 0;
}

static void offer(struct list *l, const struct pin *now)
{
    struct err err;

    if (pins_put(&l->g->offered, now, &err) < 0)
        guard_say(l->g, "%s", err.msg);
    l->offers_moved = true;
}

static void pin_anew(struct list *l, uint32_t tool, const struct pin *now)
{
    struct guard *g = l->g;
    struct err err;

    warn_of_hidden(l, tool, now->name);
    keep_definition(g, l->j, tool, now);
    if (pins_put(&g->pins, now, &err) < 0)
        guard_say(g, "%s", err.msg);
    l->pins_moved = true;
    if (!g->pinned_before)
        return;
    tell_change(g, NULL, now);
    guard_say(g, "tool '%.*s' is new since this server's tools were pinned",
              STR_ARG(shown(now->name)));
}

static void note_change(struct list *l, uint32_t tool, const struct pin *was,
                        const struct pin *now)
{
    struct guard *g = l->g;

    if (is_offered(g, now))
        return; /* said before */
    warn_of_hidden(l, tool, now->name);
    keep_definition(g, l->j, tool, now);
    tell_change(g, was, now);
    offer(l, now);
    guard_say(g,
              "the definition of tool '%.*s' changed since it was pinned%s; if that is "
              "right: assay policy pin --accept",
              STR_ARG(shown(now->name)),
              guard_pin(g) == POLICY_PIN_STRICT && g->options.enforce ? ", it is refused"
                                                                      : "");
}

static void check_pin(struct list *l, uint32_t tool, const struct pin *now)
{
    struct guard *g = l->g;
    const struct pin *was = NULL;

    switch (pins_check(&g->pins, now, &was)) {
    case PIN_NEW:
    case PIN_RENAMED:
        pin_anew(l, tool, now);
        break;
    case PIN_CHANGED:
        note_change(l, tool, was, now);
        break;
    case PIN_SAME:
        if (pins_find(&g->offered, now->name) && !is_offered(g, now))
            offer(l, now); /* it is as it was: nothing differs */
        break;
    }
}

static bool is_shown(const struct list *l, bool known, const struct pin *p)
{
    const struct guard *g = l->g;

    if (!guard_cuts_lists(g))
        return true;
    if (!known || decide_outright_denies(g->file.policy, p->name, NULL))
        return false;
    return guard_pin(g) != POLICY_PIN_STRICT || !guard_has_changed(g, p->name);
}

static bool keep(void *ctx, uint32_t tool)
{
    struct list *l = ctx;
    struct pin p = { 0 };
    bool known = read_tool(l, tool, &p);

    if (known && l->g->pins_loaded)
        check_pin(l, tool, &p);
    if (is_shown(l, known, &p))
        return true;
    if (l->withheld)
        l->withheld[l->withheld_count++] =
            known ? arena_dup(&l->g->arena, shown(p.name)) : STR("?");
    return false;
}

/* Another client may be shown another list. */
static void make_private(struct tap *t, const struct json *j, uint32_t result)
{
    uint32_t scope = json_member(j, result, STR("cacheScope"));

    if (scope != JSON_NONE && !json_string_is(j, scope, STR("private")))
        splice_replace(&t->splice, json_raw(j, scope), STR("\"private\""));
}

static void refresh_pins(struct guard *g)
{
    struct err err;
    bool found;

    if (g->pins_loaded && read_pins(g, "pins.json", &g->pins, &found, &err) < 0)
        guard_say(g, "%s", err.msg);
}

void guard_list(struct guard *g, struct tap *t, const struct rpc *m)
{
    struct list l = { .g = g, .j = m->json, .text = { .max = PIN_FILES_MAX } };
    uint32_t tools = json_member(m->json, m->result, STR("tools"));

    if (m->result == JSON_NONE || !json_is(m->json, tools, JSON_ARRAY))
        return;
    arena_reset(&g->arena);
    refresh_pins(g);
    l.withheld = calloc(json_count(m->json, tools) + 1, sizeof(*l.withheld));
    splice_array(&t->splice, m->json, tools, keep, &l);
    if (guard_cuts_lists(g))
        make_private(t, m->json, m->result);
    tell_withheld(g, l.withheld, l.withheld_count);
    if (l.pins_moved)
        write_pins(g, "pins.json", &g->pins);
    if (l.offers_moved)
        write_pins(g, "offered.json", &g->offered);
    free(l.withheld);
    buf_release(&l.text);
}
