/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of tools: their definitions are pinned, and what is denied is not shown. */
#include <stdio.h>
#include <stdlib.h>

#include "base/diag.h"
#include "base/err.h"
#include "base/utf8.h"
#include "evidence/log.h"
#include "pipeline/guard.h"
#include "policy/hidden.h"

#define NAME_SHOWN    200 /* bytes of a tool's name in an event */
#define HASH_SHOWN    12  /* hex digits of a hash in a sentence */
#define NAMES_AT_ONCE 10  /* of an event */

enum policy_pin guard_pin(const struct guard *g)
{
    if (g->options.pin != POLICY_PIN_UNSET)
        return g->options.pin;
    if (g->ruling && g->ruling->file.policy->pin != POLICY_PIN_UNSET)
        return g->ruling->file.policy->pin;
    return POLICY_PIN_WARN;
}

bool guard_cuts_lists(const struct guard *g)
{
    return g->options.enforce && g->ruling && !g->options.show_denied_tools;
}

/* --- the files --- */

int guard_open_pins(struct guard *g, struct err *err)
{
    if (guard_pin(g) == POLICY_PIN_OFF)
        return 0;
    if (pinboard_open(&g->board, log_dir(g->options.log), g->options.server_id, err) < 0)
        return err_wrap(err,
                        err->code == ERR_IO
                            ? "the pins of this server cannot be read"
                            : "the pins of this server cannot be read; remove them to "
                              "pin anew");
    pins_unsee(&g->board.offered); /* a change is told once in every session */
    return 0;
}

static void save(struct guard *g, bool pins, bool offers)
{
    struct err err;

    if ((pins && pinboard_save_pins(&g->board, &err) < 0) ||
        (offers && pinboard_save_offers(&g->board, &err) < 0))
        guard_say(g, "tool definitions cannot be pinned: %s", err.msg);
}

static void keep_definition(const struct guard *g, const struct json *j, uint32_t tool,
                            const struct pin *p)
{
    struct err err;

    if (pinboard_keep(&g->board, j, tool, p, &err) < 0)
        guard_say(g, "a tool's definition cannot be kept: %s", err.msg);
}

/* Accepted meanwhile, perhaps: for who would be refused the file is read again. */
bool guard_has_changed(struct guard *g, str tool)
{
    struct err ignored;

    return pinboard_differs(&g->board, tool) &&
           (pinboard_refresh(&g->board, &ignored) < 0 ||
            pinboard_differs(&g->board, tool));
}

static str shown(str name)
{
    size_t n = name.n > NAME_SHOWN ? NAME_SHOWN : name.n;

    while (n < name.n && n > 0 && ((unsigned char)name.p[n] & 0xc0) == 0x80)
        n--;
    return utf8_valid(name) ? str_first(name, n) : STR("?");
}

/* A sentence about a tool, whose name may be anything. */
static void say_of(const struct guard *g, const char *before, str name, const char *after)
{
    CLEANUP(buf_release) struct buf text = { 0 };

    diag_escape(&text, shown(name));
    guard_say(g, "%s '%s' %s", before, buf_cstr(&text), after);
}

/* --- what an event says --- */

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
    size_t denied;       /* of them by the policy, not by a pin */
    struct hasher names; /* of those */
};

static void finish_hash(void *ctx, uint8_t out[static PIN_HASH_SIZE])
{
    struct digest d = hasher_finish(ctx);

    memcpy(out, d.bytes, DIGEST_SIZE);
}

/* A definition that has no canonical form (two members of a name, half a surrogate pair)
 * is known by its bytes: it is not the one that was pinned. */
static bool read_odd(struct list *l, uint32_t tool, struct pin *out)
{
    uint32_t name = json_member(l->j, tool, STR("name"));
    struct digest d;

    if (!json_is(l->j, name, JSON_STRING))
        return false;
    buf_reset(&l->text);
    json_unescape(l->j, name, &l->text);
    d = digest_of(json_raw(l->j, tool));
    *out = (struct pin){ .name = buf_str(&l->text) };
    memcpy(out->hash.bytes, d.bytes, DIGEST_SIZE);
    memcpy(out->body.bytes, d.bytes, DIGEST_SIZE);
    return !l->text.failed && utf8_valid(out->name);
}

static bool read_tool(struct list *l, uint32_t tool, struct pin *out)
{
    struct hasher h;
    struct pin_hasher hasher = { .finish = finish_hash, .ctx = &h };
    struct err ignored;

    hasher_init(&h);
    hasher.sink = hasher_sink(&h);
    buf_reset(&l->text);
    return pin_of(out, l->j, tool, &hasher, &l->text, &ignored) == 0 ||
           read_odd(l, tool, out);
}

static void warn_of_hidden(struct list *l, uint32_t tool, str name)
{
    struct hidden h = hidden_in(l->j, tool);
    char after[160];

    if (h.kind == HIDDEN_NONE)
        return;
    snprintf(after, sizeof(after),
             "has %zu characters that a person does not see (%s, U+%04X first)", h.count,
             hidden_name(h.kind), (unsigned)h.code_point);
    say_of(l->g, "the definition of tool", name, after);
}

static bool is_offer(const struct pin *offered, const struct pin *p)
{
    return offered && memcmp(&offered->hash, &p->hash, sizeof(p->hash)) == 0;
}

static void offer(struct list *l, const struct pin *now)
{
    struct err err;

    if (pins_put(&l->g->board.offered, now, &err) < 0)
        guard_say(l->g, "%s", err.msg);
    l->offers_moved = true;
}

static void pin_anew(struct list *l, uint32_t tool, const struct pin *now)
{
    struct guard *g = l->g;
    struct err err;

    warn_of_hidden(l, tool, now->name);
    keep_definition(g, l->j, tool, now);
    if (pins_put(&g->board.pins, now, &err) < 0)
        guard_say(g, "%s", err.msg);
    l->pins_moved = true;
    if (!g->board.found)
        return;
    tell_change(g, NULL, now);
    say_of(g, "tool", now->name, "is new since this server's tools were pinned");
}

static void note_change(struct list *l, uint32_t tool, const struct pin *was,
                        const struct pin *now)
{
    struct guard *g = l->g;
    const struct pin *offered = pins_find(&g->board.offered, now->name);
    char after[500], from[PIN_HEX], to[PIN_HEX];

    if (is_offer(offered, now) && offered->seen)
        return; /* said before */
    warn_of_hidden(l, tool, now->name);
    keep_definition(g, l->j, tool, now);
    tell_change(g, was, now);
    offer(l, now);
    pin_hex(from, &was->hash);
    pin_hex(to, &now->hash);
    snprintf(after, sizeof(after),
             "changed since it was pinned%s: %.*s… is now %.*s…; compare these files in "
             "'%.200s', then: assay policy pin --accept TOOL",
             guard_pin(g) == POLICY_PIN_STRICT && g->options.enforce ? ", and is refused"
                                                                     : "",
             HASH_SHOWN, from, HASH_SHOWN, to, g->board.dir);
    say_of(g, "the definition of tool", now->name, after);
}

static void check_pin(struct list *l, uint32_t tool, const struct pin *now)
{
    struct guard *g = l->g;
    const struct pin *was = NULL, *offered = pins_find(&g->board.offered, now->name);

    switch (pins_check(&g->board.pins, now, &was)) {
    case PIN_NEW:
    case PIN_RENAMED:
        pin_anew(l, tool, now);
        break;
    case PIN_CHANGED:
        note_change(l, tool, was, now);
        break;
    case PIN_SAME:
        if (offered && !is_offer(offered, now) && !offered->seen)
            offer(l, now); /* it is as it was, and no twin of it is not */
        break;
    }
}

static bool is_shown(struct list *l, bool known, const struct pin *p)
{
    struct guard *g = l->g;

    if (!guard_cuts_lists(g))
        return true;
    if (!known || decide_outright_denies(g->ruling->file.policy, p->name, NULL)) {
        l->denied++;
        hasher_add(&l->names, p->name);
        hasher_add(&l->names, str_of("", 1));
        return false;
    }
    return guard_pin(g) != POLICY_PIN_STRICT || !guard_has_changed(g, p->name);
}

static bool keep(void *ctx, uint32_t tool)
{
    struct list *l = ctx;
    struct pin p = { 0 };
    bool known = read_tool(l, tool, &p);

    if (known && l->g->board.dir)
        check_pin(l, tool, &p);
    if (is_shown(l, known, &p))
        return true;
    if (l->withheld)
        l->withheld[l->withheld_count++] =
            known ? arena_dup(&l->g->ruling->arena, shown(p.name)) : STR("?");
    return false;
}

/* --- what a person is told of it --- */

/* The same list, cut in the same way, is one thing. */
static bool is_news(struct list *l, size_t total)
{
    struct guard_told *told = l->g->options.told;
    size_t kept;
    struct digest d;

    hasher_add(&l->names, str_of(&total, sizeof(total)));
    d = hasher_finish(&l->names);
    if (!told)
        return true;
    kept = told->count < GUARD_TOLD_MAX ? told->count : GUARD_TOLD_MAX;
    for (size_t i = 0; i < kept; i++) {
        if (memcmp(&told->at[i], &d, sizeof(d)) == 0)
            return false;
    }
    told->at[told->count++ % GUARD_TOLD_MAX] = d;
    return true;
}

/* A client that sees no tools at all looks broken, and nothing else says why. */
static void tell_hidden(struct list *l, size_t total, bool is_page)
{
    const struct guard *g = l->g;
    char hint[400] = "";

    if (l->denied == 0 || !is_news(l, total))
        return;
    if (l->denied == total)
        snprintf(hint, sizeof(hint),
                 ": name those that it may call in the allowlist of '%.200s', or see "
                 "assay policy init --from-session",
                 g->ruling->file.path);
    guard_say(g, "the policy hides %zu of %zu tool%s%s from the client%s", l->denied,
              total, plural(total), is_page ? " of a page" : "", hint);
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
    int r = g->board.dir ? pinboard_refresh(&g->board, &err) : guard_open_pins(g, &err);

    if (r < 0)
        guard_say(g, "%s", err.msg);
}

void guard_list(struct guard *g, struct tap *t, const struct rpc *m)
{
    struct list l = { .g = g, .j = m->json, .text = { .max = PINBOARD_MAX } };
    uint32_t tools = json_member(m->json, m->result, STR("tools"));
    uint32_t next = json_member(m->json, m->result, STR("nextCursor"));
    bool more = json_is(m->json, next, JSON_STRING);

    if (m->result == JSON_NONE || !json_is(m->json, tools, JSON_ARRAY))
        return;
    if (g->ruling)
        arena_reset(&g->ruling->arena);
    refresh_pins(g);
    hasher_init(&l.names);
    l.withheld = calloc(json_count(m->json, tools) + 1, sizeof(*l.withheld));
    splice_array(&t->splice, m->json, tools, keep, &l);
    if (guard_cuts_lists(g))
        make_private(t, m->json, m->result);
    tell_withheld(g, l.withheld, l.withheld_count);
    tell_hidden(&l, json_count(m->json, tools), more || g->in_pages);
    g->in_pages = more;
    save(g, l.pins_moved, l.offers_moved);
    free(l.withheld);
    buf_release(&l.text);
}
