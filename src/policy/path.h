/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path - does a path argument stay where it may go (allowed_paths)?
 *
 * Servers read the same text differently: some resolve ".." before links and some after,
 * some decode %2e and some do not. A path is allowed only if every reading of it is: as
 * written, percent-decoded as often as that changes it, with '\' as '/', without white
 * space around it, a file: URI also without tabs and line breaks; ".." taken by spelling
 * and by walking. Links are followed on our file system; what does not exist ends where
 * it would stand.
 *
 * Patterns are globs over absolute paths in which '*' also crosses '/'. In order, "!…"
 * excludes, the last that matches decides, none means refused.
 */
#ifndef POLICY_PATH_H
#define POLICY_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define PATH_MAX_BYTES   4096 /* of a path, as given and resolved; longer is refused */
#define PATH_LINKS_MAX   40
#define PATH_DECODES_MAX 4 /* %25252e…: what still changes after that is refused */

struct path_rule {
    str root; /* absolute, before the first wildcard: links in it are followed */
    str tail; /* the rest, a glob */
    bool exclude;
};

struct path_rules {
    const struct path_rule *at;
    size_t count;
};

/* Prepare one pattern; NULL, or what is expected instead. */
const char *path_rule_read(struct path_rule *rule, str text);

/* NULL when every reading of `path` is allowed, else the reason: one sentence, static.
 * Relative paths stand in `cwd`, which is absolute; when it is empty they are refused. */
const char *path_refuse(const struct path_rules *rules, str path, str cwd);

/* Is a string a file: URI? It is a path, whatever its key. */
bool path_is_uri(str text);

/* Is this the usual name of an argument with a path (path, file_path, outputDir, …)? */
bool path_is_key(str key);

#endif
