/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/path.h"

#include "base/attr.h"
#include "policy/glob.h"
#include "policy/key.h"
#include "policy/percent.h"
#include "policy/place.h"
#include "policy/space.h"

bool path_is_key(str key)
{
    static const char *const words[] = { "*path",      "file",        "*filename",
                                         "*dir",       "*directory",  "folder",
                                         "source",     "destination", "src",
                                         "dst",        "dest",        "cwd",
                                         "*pathname",  "*dirname",    "*directoryname",
                                         "foldername", NULL };
    static const char *const named[] = { "*path",      "file",   "*dir",
                                         "*directory", "folder", NULL };

    return key_ends_in(key, words) || key_is_name_of(key, named);
}

/* --- rules --- */

static bool has_dots(str path)
{
    str component;

    while (place_component(&path, &component)) {
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
    while (place_component(&rest, &component)) {
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

/* `path` is without links, and so is what it begins with. */
static bool is_root_of(str root, str path)
{
    return str_starts(path, root) && (path.n == root.n || path.p[root.n] == '/');
}

/* Against the pattern with the links of its root followed. */
static const char *rule_matches(const struct path_rule *rule, str path, bool *matches)
{
    struct place UNINITIALIZED root;
    const char *what = NULL;

    root.n = 0;
    if (is_root_of(rule->root, path))
        (void)place_add(&root, rule->root); /* there are none */
    else if (rule->root.n)
        what = place_follow(&root, rule->root);
    *matches = !what && str_starts(path, place_str(&root)) &&
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
    struct place UNINITIALIZED spelled, UNINITIALIZED real;
    const char *what;

    if (!place_spell(&spelled, full))
        return PLACE_TOO_LONG;
    what = place_follow(&real, place_str(&spelled));
    if (!what)
        what = check_rules(rules, place_str(&real));
    if (!what)
        what = check_spelling(rules, place_str(&spelled));
    if (what || !has_dots(full))
        return what;
    what = place_follow(&real, full);
    return what ? what : check_rules(rules, place_str(&real));
}

static const char *check_reading(const struct path_rules *rules, str path, str cwd)
{
    struct place UNINITIALIZED full;

    full.n = 0;
    if (path.n && memchr(path.p, '\0', path.n))
        return "a path in the arguments has a NUL character";
    if (path.n && path.p[0] == '~')
        return "a path in the arguments begins with '~', which a server may expand";
    if (path.n && path.p[0] == '/')
        return check_absolute(rules, path);
    if (cwd.n == 0)
        return "a path in the arguments is relative to a directory that is not known";
    if (!place_add(&full, cwd) || !place_add(&full, STR("/")) || !place_add(&full, path))
        return PLACE_TOO_LONG;
    return check_absolute(rules, place_str(&full));
}

/* As it is, and with the separators of another system. */
static const char *check_slashes(const struct path_rules *rules, str path, str cwd)
{
    struct place UNINITIALIZED turned;
    const char *what = check_reading(rules, path, cwd);

    if (what || path.n == 0 || !memchr(path.p, '\\', path.n))
        return what;
    turned.n = 0;
    (void)place_add(&turned, path);
    for (size_t i = 0; i < turned.n; i++) {
        if (turned.p[i] == '\\')
            turned.p[i] = '/';
    }
    return check_reading(rules, place_str(&turned), cwd);
}

/* As it is, and without white space at its beginning, its end, or both. */
static const char *check_spaces(const struct path_rules *rules, str path, str cwd)
{
    str from = space_trim_start(path), to = space_trim_end(path);
    const char *what = check_slashes(rules, path, cwd);

    if (!what && from.n < path.n)
        what = check_slashes(rules, from, cwd);
    if (!what && to.n < path.n)
        what = check_slashes(rules, to, cwd);
    if (!what && from.n < path.n && to.n < path.n)
        what = check_slashes(rules, space_trim_end(from), cwd);
    return what;
}

/* As written, and decoded as long as that changes something. */
static const char *check_encodings(const struct path_rules *rules, str path, str cwd)
{
    struct place UNINITIALIZED decoded;
    const char *what = check_spaces(rules, path, cwd);

    decoded.n = 0;
    (void)place_add(&decoded, path);
    for (int i = 0; !what && i <= PATH_DECODES_MAX; i++) {
        size_t n = percent_decode(decoded.p, place_str(&decoded));

        if (n == decoded.n)
            return NULL;
        if (i == PATH_DECODES_MAX)
            return "a path in the arguments is percent-encoded too often";
        decoded.n = n;
        what = check_spaces(rules, place_str(&decoded), cwd);
    }
    return what;
}

/* --- file: URIs --- */

/* With the breaks in it left out. */
bool path_is_uri(str text)
{
    static const char scheme[] = "file:";
    size_t n = 0;

    text = space_trim_start(text);
    for (size_t i = 0; i < text.n && scheme[n]; i++) {
        if (space_is_break(text.p[i]))
            continue;
        if (ascii_lower(text.p[i]) != scheme[n++])
            return false;
    }
    return !scheme[n];
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

/* With breaks and without. What is a URI only without them is a path to others. */
static const char *check_breaks(const struct path_rules *rules, str uri, str cwd)
{
    str scheme = str_first(space_trim_start(uri), strlen("file:"));
    struct place UNINITIALIZED whole;
    const char *what = space_has_break(scheme) ? check_encodings(rules, uri, cwd)
                                               : check_uri(rules, uri, cwd);

    whole.n = space_drop_breaks(whole.p, uri);
    return what ? what : check_uri(rules, place_str(&whole), cwd);
}

const char *path_refuse(const struct path_rules *rules, str path, str cwd)
{
    if (path.n > PATH_MAX_BYTES)
        return PLACE_TOO_LONG;
    if (!path_is_uri(path))
        return check_encodings(rules, path, cwd);
    return space_has_break(path) ? check_breaks(rules, path, cwd)
                                 : check_uri(rules, path, cwd);
}
