/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/path.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include "base/attr.h"
#include "policy/glob.h"
#include "policy/key.h"
#include "policy/percent.h"

#define TOO_LONG "a path in the arguments is longer than 4096 bytes"

/* A path that grows; never longer than PATH_MAX_BYTES, and a C string when asked. */
struct path {
    size_t n;
    char p[PATH_MAX_BYTES + 1];
};

static str path_str(const struct path *p)
{
    return str_of(p->p, p->n);
}

static bool put(struct path *p, str s)
{
    if (s.n > PATH_MAX_BYTES - p->n)
        return false;
    if (s.n)
        memcpy(p->p + p->n, s.p, s.n);
    p->n += s.n;
    return true;
}

bool path_is_key(str key)
{
    static const char *const words[] = {
        "*path",       "file", "*filename", "*dir", "*directory", "folder", "source",
        "destination", "src",  "dst",       "dest", "cwd",        NULL
    };

    return key_ends_in(key, words);
}

/* --- components --- */

/* The next component of *rest, without slashes; false when there is none. */
static bool next_component(str *rest, str *component)
{
    size_t n = 0;

    while (rest->n && rest->p[0] == '/')
        *rest = str_skip(*rest, 1);
    if (rest->n == 0)
        return false;
    while (n < rest->n && rest->p[n] != '/')
        n++;
    *component = str_first(*rest, n);
    *rest = str_skip(*rest, n);
    return true;
}

static void drop_last(struct path *p)
{
    while (p->n > 0 && p->p[--p->n] != '/')
        ;
}

/* Add a component to an absolute path without one at the end; "" is the root. */
static bool append(struct path *to, str component)
{
    if (str_is(component, "."))
        return true;
    if (str_is(component, "..")) {
        drop_last(to);
        return true;
    }
    return put(to, STR("/")) && put(to, component);
}

/* By spelling alone: /a/b/../c is /a/c. */
static bool normalise(struct path *out, str absolute)
{
    str component;

    out->n = 0;
    while (next_component(&absolute, &component)) {
        if (!append(out, component))
            return false;
    }
    return true;
}

/* --- following links --- */

struct walk {
    struct path at;      /* so far, without links */
    struct path pending; /* components still to come */
    size_t missing;      /* length of `at` that does not exist; SIZE_MAX: none */
    unsigned links;
};

/* Replace the link that `at` ends with by its target, before what is still to come. */
static bool enter_link(struct walk *w, str rest, str target)
{
    struct path UNINITIALIZED next;

    next.n = 0;
    if (++w->links > PATH_LINKS_MAX || !put(&next, target) || !put(&next, rest))
        return false;
    if (target.p[0] == '/')
        w->at.n = 0;
    else
        drop_last(&w->at);
    w->pending.n = 0;
    return put(&w->pending, path_str(&next));
}

enum step {
    STEP_ON,    /* an ordinary name, or nothing there */
    STEP_LINK,  /* *target */
    STEP_BLIND, /* we may not look */
};

static enum step look(struct walk *w, char target[static PATH_MAX_BYTES], size_t *n)
{
    ssize_t got;

    if (w->missing != SIZE_MAX)
        return STEP_ON;
    w->at.p[w->at.n] = '\0';
    got = readlink(w->at.p, target, PATH_MAX_BYTES);
    if (got > 0) {
        *n = (size_t)got;
        return STEP_LINK;
    }
    if (got < 0 && errno == ENOENT)
        w->missing = w->at.n;
    return got < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EINVAL)
               ? STEP_ON
               : STEP_BLIND;
}

static const char *walk_on(struct walk *w)
{
    char UNINITIALIZED target[PATH_MAX_BYTES];
    str rest = path_str(&w->pending), component;
    size_t n = 0;

    while (next_component(&rest, &component)) {
        bool is_name = !str_is(component, ".") && !str_is(component, "..");

        if (!append(&w->at, component))
            return TOO_LONG;
        if (w->at.n < w->missing)
            w->missing = SIZE_MAX;
        if (!is_name)
            continue;
        switch (look(w, target, &n)) {
        case STEP_ON:
            break;
        case STEP_BLIND:
            return "a path in the arguments leads where it cannot be followed";
        case STEP_LINK:
            if (n == PATH_MAX_BYTES || !enter_link(w, rest, str_of(target, n)))
                return "a path in the arguments leads through too many links";
            rest = path_str(&w->pending);
            break;
        }
    }
    return NULL;
}

/* Where an absolute path leads, its ".." taken after the links before them. */
static const char *follow(struct path *out, str absolute)
{
    struct walk UNINITIALIZED w;
    const char *what;

    w.at.n = w.pending.n = 0;
    w.missing = SIZE_MAX;
    w.links = 0;
    if (!put(&w.pending, absolute))
        return TOO_LONG;
    what = walk_on(&w);
    if (what)
        return what;
    out->n = 0;
    (void)put(out, path_str(&w.at));
    return NULL;
}

/* --- rules --- */

static bool has_dots(str path)
{
    str component;

    while (next_component(&path, &component)) {
        if (str_is(component, ".."))
            return true;
    }
    return false;
}

static bool is_clean(str pattern)
{
    str component, rest = pattern;

    for (size_t i = 1; i < pattern.n; i++) {
        if (pattern.p[i] == '/' && pattern.p[i - 1] == '/')
            return false;
    }
    while (next_component(&rest, &component)) {
        if (str_is(component, ".") || str_is(component, ".."))
            return false;
    }
    return true;
}

const char *path_rule_read(struct path_rule *rule, str text)
{
    size_t n;

    rule->exclude = text.n && text.p[0] == '!';
    if (rule->exclude)
        text = str_skip(text, 1);
    if (text.n == 0 || (text.p[0] != '/' && text.p[0] != '*'))
        return "an absolute path, or a pattern that begins with '*'";
    if (!is_clean(text))
        return "a pattern without '..', '.' and '//'";
    if (text.n > 1 && text.p[text.n - 1] == '/')
        return "a pattern without '/' at its end (add '*' for what is in a directory)";
    n = glob_literal(text);
    while (n < text.n && n > 0 && text.p[n - 1] != '/') /* half a name is no directory */
        n--;
    if ((n < text.n && n > 0) || text.n == 1) /* the '/' belongs to what follows */
        n--;
    rule->root = str_first(text, n);
    rule->tail = str_of(text.p + n, text.n - n);
    return NULL;
}

/* `path` is without links; so the root of the pattern has to be. */
static const char *rule_matches(const struct path_rule *rule, str path, bool *matches)
{
    struct path UNINITIALIZED root;
    const char *what = NULL;

    root.n = 0;
    if (rule->root.n)
        what = follow(&root, rule->root);
    *matches = !what && str_starts(path, path_str(&root)) &&
               glob_match(rule->tail, str_of(path.p + root.n, path.n - root.n));
    return what;
}

static const char *check_rules(const struct path_rules *rules, str path)
{
    const char *denied = "a path in the arguments is not among the allowed paths";

    path = path.n ? path : STR("/");
    for (size_t i = 0; i < rules->count; i++) {
        const struct path_rule *rule = &rules->at[i];
        bool matches;

        /* A root that cannot be followed allows nothing, and excludes everything. */
        if (rule_matches(rule, path, &matches) && rule->exclude)
            matches = true;
        if (matches)
            denied = rule->exclude ? "a path in the arguments is excluded" : NULL;
    }
    return denied;
}

/* A name that is excluded is, also when it is a link to one that is not. */
static const char *check_spelling(const struct path_rules *rules, str path)
{
    bool excluded = false;

    for (size_t i = 0; i < rules->count; i++) {
        const struct path_rule *rule = &rules->at[i];

        if (str_starts(path, rule->root) &&
            glob_match(rule->tail, str_skip(path, rule->root.n)))
            excluded = rule->exclude;
    }
    return excluded ? "a path in the arguments is excluded" : NULL;
}

/* --- readings --- */

static const char *check_absolute(const struct path_rules *rules, str full)
{
    struct path UNINITIALIZED spelled, UNINITIALIZED real;
    const char *what;

    if (!normalise(&spelled, full))
        return TOO_LONG;
    what = follow(&real, path_str(&spelled));
    if (!what)
        what = check_rules(rules, path_str(&real));
    if (!what)
        what = check_spelling(rules, path_str(&spelled));
    if (what || !has_dots(full))
        return what;
    what = follow(&real, full);
    return what ? what : check_rules(rules, path_str(&real));
}

static const char *check_reading(const struct path_rules *rules, str path, str cwd)
{
    struct path UNINITIALIZED full;

    full.n = 0;
    if (path.n && memchr(path.p, '\0', path.n))
        return "a path in the arguments has a NUL character";
    if (path.n && path.p[0] == '~')
        return "a path in the arguments begins with '~', which a server may expand";
    if (path.n && path.p[0] == '/')
        return check_absolute(rules, path);
    if (cwd.n == 0)
        return "a path in the arguments is relative to a directory that is not known";
    if (!put(&full, cwd) || !put(&full, STR("/")) || !put(&full, path))
        return TOO_LONG;
    return check_absolute(rules, path_str(&full));
}

/* As it is, and with the separators of another system. */
static const char *check_slashes(const struct path_rules *rules, str path, str cwd)
{
    struct path UNINITIALIZED turned;
    const char *what = check_reading(rules, path, cwd);

    if (what || path.n == 0 || !memchr(path.p, '\\', path.n))
        return what;
    turned.n = 0;
    (void)put(&turned, path);
    for (size_t i = 0; i < turned.n; i++) {
        if (turned.p[i] == '\\')
            turned.p[i] = '/';
    }
    return check_reading(rules, path_str(&turned), cwd);
}

/* As written, and decoded as long as that changes something. */
static const char *check_encodings(const struct path_rules *rules, str path, str cwd)
{
    struct path UNINITIALIZED decoded;
    const char *what = check_slashes(rules, path, cwd);

    decoded.n = 0;
    (void)put(&decoded, path);
    for (int i = 0; !what && i <= PATH_DECODES_MAX; i++) {
        size_t n = percent_decode(decoded.p, path_str(&decoded));

        if (n == decoded.n)
            return NULL;
        if (i == PATH_DECODES_MAX)
            return "a path in the arguments is percent-encoded too often";
        decoded.n = n;
        what = check_slashes(rules, path_str(&decoded), cwd);
    }
    return what;
}

/* --- file: URIs --- */

bool path_is_uri(str text)
{
    static const char scheme[] = "file:";

    while (text.n && (unsigned char)text.p[0] <= ' ')
        text = str_skip(text, 1);
    if (text.n < sizeof(scheme) - 1)
        return false;
    for (size_t i = 0; i < 4; i++) {
        if ((text.p[i] | 0x20) != scheme[i])
            return false;
    }
    return text.p[4] == ':';
}

static bool is_local(str authority)
{
    char lower[9];

    if (authority.n == 0)
        return true;
    if (authority.n != sizeof(lower))
        return false;
    for (size_t i = 0; i < sizeof(lower); i++)
        lower[i] = (char)(authority.p[i] | 0x20);
    return str_equal(str_of(lower, sizeof(lower)), STR("localhost"));
}

static size_t query_at(str path)
{
    size_t n = 0;

    while (n < path.n && path.p[n] != '?' && path.p[n] != '#')
        n++;
    return n;
}

/* With and without what looks like a query: servers that cut the scheme off keep it. */
static const char *check_uri(const struct path_rules *rules, str uri, str cwd)
{
    const char *what;
    str path;
    size_t n = 0;

    while (uri.n && uri.p[0] != ':')
        uri = str_skip(uri, 1);
    path = str_skip(uri, 1);
    if (str_starts(path, STR("//"))) {
        path = str_skip(path, 2);
        while (n < path.n && path.p[n] != '/')
            n++;
        if (!is_local(str_first(path, n)))
            return "a file: URI in the arguments names another host";
        path = str_skip(path, n);
    }
    what = check_encodings(rules, path, cwd);
    n = query_at(path);
    return what || n == path.n ? what : check_encodings(rules, str_first(path, n), cwd);
}

const char *path_refuse(const struct path_rules *rules, str path, str cwd)
{
    if (path.n > PATH_MAX_BYTES)
        return TOO_LONG;
    if (path_is_uri(path))
        return check_uri(rules, path, cwd);
    return check_encodings(rules, path, cwd);
}
