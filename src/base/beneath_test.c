/* SPDX-License-Identifier: Apache-2.0 */
#include "base/beneath.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "tests/tap.h"

static void test_names_that_leave_are_refused(void)
{
    static const struct {
        const char *name;
        bool valid;
    } rows[] = {
        { "a", true },       { "a/b", true }, { "./a", true },   { "a//b", true },
        { "..a", true },     { "a..", true }, { "", false },     { "/", false },
        { "/a", false },     { "..", false }, { "../a", false }, { "a/..", false },
        { "a/../b", false }, { "a/", false }, { "a\\b", false },
    };
    char longest[BENEATH_NAME_MAX + 1];

    for (size_t i = 0; i < COUNT(rows); i++)
        ok(beneath_name_valid(str_from(rows[i].name)) == rows[i].valid, "'%s' is %s",
           rows[i].name, rows[i].valid ? "a name" : "refused");
    ok(!beneath_name_valid(str_of("a\0b", 3)), "a NUL in a name is refused");
    for (size_t i = 0; i < sizeof(longest); i++)
        longest[i] = i % 2 ? '/' : 'a';
    ok(beneath_name_valid(str_of(longest, BENEATH_NAME_MAX - 1)), "a long name");
    ok(!beneath_name_valid(str_of(longest, BENEATH_NAME_MAX + 1)),
       "one that is too long");
}

/* a/file, a/link -> file, link -> a, a/pipe, out -> /etc/passwd */
static int make_tree(char *root)
{
    char path[FILE_PATH_MAX];
    int dir = -1;
    struct err err = { 0 };

    if (!mkdtemp(root))
        return -1;
    dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof(path), "%s/a", root);
    if (mkdir(path, 0700) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s/a/file", root);
    if (file_replace(path, STR("hello"), 0600, &err) < 0 ||
        symlinkat("file", dir, "a/link") < 0 || symlinkat("a", dir, "link") < 0 ||
        symlinkat("/etc/passwd", dir, "out") < 0 || mkfifoat(dir, "a/pipe", 0600) < 0)
        return -1;
    return dir;
}

static void test_only_regular_files_beneath_are_opened(void)
{
    static const struct {
        const char *name;
        enum err_code code;
    } rows[] = {
        { "a/file", ERR_NONE },       { "./a//file", ERR_NONE },
        { "a", ERR_FORMAT },          { "a/pipe", ERR_FORMAT },
        { "a/none", ERR_NOTFOUND },   { "none/file", ERR_NOTFOUND },
        { "a/link", ERR_REFUSED },    { "link/file", ERR_REFUSED },
        { "out", ERR_REFUSED },       { "../etc/passwd", ERR_REFUSED },
        { "a/file/b", ERR_NOTFOUND },
    };
    char root[] = "/tmp/assay-beneath-XXXXXX";
    int dir = make_tree(root);
    struct err err = { 0 };

    if (!ok(dir >= 0, "a tree to look at"))
        return;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct mapping map = { { NULL, 0 } };
        struct err why = { 0 };
        int r = beneath_map(dir, str_from(rows[i].name), &map, &why);

        ok(why.code == rows[i].code && (r == 0) == (rows[i].code == ERR_NONE), "'%s': %s",
           rows[i].name, r == 0 ? "opened" : why.msg);
        ok(r < 0 || str_is(map.bytes, "hello"), "and has the right bytes");
        mapping_release(&map);
    }
    file_close(&dir);
    ok(file_remove_tree(root, &err) == 0, "cleaned up");
}

int main(void)
{
    test_names_that_leave_are_refused();
    test_only_regular_files_beneath_are_opened();
    return tap_done();
}
