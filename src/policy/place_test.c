/* SPDX-License-Identifier: Apache-2.0 */
/* Where a path leads is where realpath(3) says, for what exists. */
#include "policy/place.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "tests/tap.h"

static char dir[256];

static void in_dir(char out[static 1024], const char *name)
{
    snprintf(out, 1024, "%s/%s", dir, name);
}

static void make_link(const char *name, const char *target)
{
    char path[1024];

    in_dir(path, name);
    if (symlink(target, path) < 0)
        ok(false, "cannot make %s", path);
}

static void make_dir(const char *name)
{
    char path[1024];

    in_dir(path, name);
    if (mkdir(path, 0700) < 0)
        ok(false, "cannot make %s", path);
}

/* One link to the next, the last to a directory. */
static void test_links(void)
{
    char name[64], target[64], path[1024];
    struct place out;

    for (int i = 1; i <= PATH_LINKS_MAX + 1; i++) {
        snprintf(name, sizeof(name), "l%d", i);
        snprintf(target, sizeof(target), "l%d", i - 1);
        make_link(name, i == 1 ? "a" : target);
    }
    snprintf(name, sizeof(name), "l%d/x", PATH_LINKS_MAX);
    in_dir(path, name);
    ok(place_follow(&out, str_from(path)) == NULL &&
           str_ends(place_str(&out), STR("/a/x")),
       "%d links are followed", PATH_LINKS_MAX);
    snprintf(name, sizeof(name), "l%d/x", PATH_LINKS_MAX + 1);
    in_dir(path, name);
    ok(place_follow(&out, str_from(path)) != NULL, "one more is too many");
}

static void test_length(void)
{
    char path[PATH_MAX_BYTES + 1];
    struct place out;

    for (size_t i = 0; i < sizeof(path); i++)
        path[i] = i % 8 ? 'x' : '/';
    ok(place_follow(&out, str_of(path, PATH_MAX_BYTES - 1)) == NULL &&
           out.n == PATH_MAX_BYTES - 1,
       "%d bytes", PATH_MAX_BYTES - 1);
    ok(place_follow(&out, str_of(path, PATH_MAX_BYTES + 1)) != NULL, "two more");
    ok(place_spell(&out, str_of(path, PATH_MAX_BYTES)), "spelled: the longest");
    memset(path + 1, 'x', PATH_MAX_BYTES);
    ok(!place_spell(&out, str_of(path, PATH_MAX_BYTES + 1)), "spelled: one more");
}

static void test_spelling(void)
{
    static const struct {
        const char *path, *want;
    } cases[] = {
        { "/", "" },          { "/a", "/a" },           { "//a//b/", "/a/b" },
        { "/a/./b", "/a/b" }, { "/a/../b", "/b" },      { "/../../b", "/b" },
        { "/a/..", "" },      { "/a/b/../../c", "/c" }, { "/a/...", "/a/..." },
    };
    struct place out;

    for (size_t i = 0; i < COUNT(cases); i++)
        ok(place_spell(&out, str_from(cases[i].path)) &&
               str_is(place_str(&out), cases[i].want),
           "%s is '%s'", cases[i].path, cases[i].want);
}

/* Names that exist, links in all directions, and dots, put together at random. */
static void test_like_realpath(void)
{
    static const char *const parts[] = {
        "a", "b", "in", "out", "up", ".", "..", "", "a/b"
    };
    unsigned seed = 7, differences = 0, compared = 0;

    for (int i = 0; i < 5000; i++) {
        char path[1024], real[PATH_MAX];
        size_t n = (size_t)snprintf(path, sizeof(path), "%s", dir);
        struct place out;

        for (int k = rand_r(&seed) % 7; k >= 0; k--)
            n += (size_t)snprintf(path + n, sizeof(path) - n, "/%s",
                                  parts[(size_t)rand_r(&seed) % COUNT(parts)]);
        if (!realpath(path, real))
            continue;
        compared++;
        if (place_follow(&out, str_of(path, n)) ||
            !str_is(place_str(&out), strcmp(real, "/") == 0 ? "" : real)) {
            differences++;
            printf("# %s: %s\n", path, real);
        }
    }
    ok(compared > 500 && differences == 0, "%u paths lead where realpath says", compared);
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    struct err err = { 0 };

    snprintf(dir, sizeof(dir), "%s/place-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return 1;
    make_dir("a");
    make_dir("a/b");
    make_dir("b");
    make_dir("b/a");
    make_link("in", "a");
    make_link("a/out", "/usr/share");
    make_link("a/up", "..");
    make_link("a/b/in", "../../b");
    make_link("b/out", "../a/./b/../b");
    make_link("b/a/up", "../../in/b");
    test_spelling();
    test_like_realpath();
    test_links();
    test_length();
    if (file_remove_tree(dir, &err) < 0)
        printf("# %s\n", err.msg);
    return tap_done();
}
