/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "tests/tap.h"

static char root[512];

static const char *at(const char *name)
{
    static char path[4][FILE_PATH_MAX];
    static unsigned next;

    next = (next + 1) % COUNT(path);
    snprintf(path[next], FILE_PATH_MAX, "%s/%s", root, name);
    return path[next];
}

static bool holds(const char *name, const char *want)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct err err = { 0 };

    return file_read(at(name), &text, &err) == 0 && str_is(buf_str(&text), want);
}

static bool is_there(const char *name)
{
    struct stat st;

    return lstat(at(name), &st) == 0;
}

/* How many files lie beside `root`'s own: temporary ones must not stay. */
static int count_matching(const char *pattern)
{
    char command[1024];
    FILE *out;
    int n = -1;

    snprintf(command, sizeof(command), "ls -d '%s'/%s 2>/dev/null | wc -l", root,
             pattern);
    out = popen(command, "r");
    if (!out || fscanf(out, "%d", &n) != 1)
        n = -1;
    if (out)
        pclose(out);
    return n;
}

static void test_path_join_at_its_limit(void)
{
    char name[FILE_PATH_MAX], out[FILE_PATH_MAX] = "before";
    struct err err = { 0 };

    memset(name, 'a', sizeof(name));
    name[FILE_PATH_MAX - 3] = '\0'; /* "d/" and 4093 bytes and a NUL */
    ok(path_join(out, "d", name, &err) == 0 && strlen(out) == FILE_PATH_MAX - 1,
       "the longest path");
    name[FILE_PATH_MAX - 3] = 'a';
    name[FILE_PATH_MAX - 2] = '\0';
    ok(path_join(out, "d", name, &err) < 0 && err.code == ERR_LIMIT, "one byte more");
}

static void test_read_whole_files_and_nothing_else(void)
{
    CLEANUP(buf_release) struct buf five = { .max = 5 }, four = { .max = 4 };
    CLEANUP(buf_release) struct buf other = { 0 };
    struct err err = { 0 };

    ok(file_replace(at("five"), STR("12345"), 0600, &err) == 0, "write %s", err.msg);
    ok(file_read(at("five"), &five, &err) == 0 && str_is(buf_str(&five), "12345"),
       "exactly the maximum");
    ok(file_read(at("five"), &four, &err) < 0 && err.code == ERR_LIMIT, "too big: %s",
       err.msg);
    ok(file_read(root, &other, &err) < 0 && err.code == ERR_FORMAT, "no file: %s",
       err.msg);
    ok(mkfifo(at("fifo"), 0600) == 0 && file_read(at("fifo"), &other, &err) < 0 &&
           err.code == ERR_FORMAT,
       "no waiting: %s", err.msg);
    ok(file_read(at("none"), &other, &err) < 0 && err.code == ERR_NOTFOUND, "none: %s",
       err.msg);
    ok(other.n == 0, "and nothing was read");
}

static void test_read_exactly(void)
{
    struct err err = { 0 };
    char out[6] = "-----";
    CLEANUP(file_close) int fd = -1;

    ok(file_replace(at("exact"), STR("12345"), 0600, &err) == 0, "write %s", err.msg);
    fd = file_open(at("exact"), O_RDONLY, 0, &err);
    ok(fd >= 0 && file_read_exact(fd, "exact", out, 3, &err) == 0 &&
           memcmp(out, "123--", 5) == 0,
       "three bytes and not a fourth");
    ok(file_read_exact(fd, "exact", out, 2, &err) == 0 && memcmp(out, "453--", 5) == 0,
       "the rest");
    ok(file_read_exact(fd, "exact", out, 1, &err) < 0 && err.code == ERR_FORMAT,
       "the end: %s", err.msg);
    ok(lseek(fd, 0, SEEK_SET) == 0 && file_read_exact(fd, "exact", out, 6, &err) < 0,
       "one byte too many");
}

static void test_replace_and_create(void)
{
    struct err err = { 0 };
    struct stat st;

    ok(file_replace(at("r"), STR("one"), 0640, &err) == 0 &&
           file_replace(at("r"), STR("two"), 0600, &err) == 0 && holds("r", "two"),
       "replace");
    ok(stat(at("r"), &st) == 0 && (st.st_mode & 07777) == 0600, "with its mode");
    ok(file_create(at("r"), STR("three"), 0600, &err) < 0 && err.code == ERR_EXISTS &&
           holds("r", "two"),
       "create leaves what is there: %s", err.msg);
    ok(file_create(at("c"), STR(""), 0600, &err) == 0 && holds("c", ""), "create");
    ok(symlink("r", at("link")) == 0 &&
           file_replace(at("link"), STR("x"), 0600, &err) == 0 && holds("r", "two") &&
           holds("link", "x"),
       "a link is replaced, not followed");
    ok(mkdir(at("d"), 0700) == 0 && file_replace(at("d"), STR("x"), 0600, &err) < 0,
       "not over a directory: %s", err.msg);
    ok(file_replace(at("no/such"), STR("x"), 0600, &err) < 0, "no directory: %s",
       err.msg);
    ok(count_matching("*.tmp-*") == 0, "no temporary file stays");
}

static void test_one_of_many_racers_creates(void)
{
    int status, won = 0, ended = 0;

    fflush(stdout);
    for (int i = 0; i < 8; i++) {
        if (fork() == 0) {
            struct err err = { 0 };
            char text = (char)('0' + i);

            if (file_create(at("race"), str_of(&text, 1), 0600, &err) == 0)
                _exit(0);
            _exit(err.code == ERR_EXISTS ? 1 : 2);
        }
    }
    while (wait(&status) > 0) {
        won += WIFEXITED(status) && WEXITSTATUS(status) == 0;
        ended += WIFEXITED(status) && WEXITSTATUS(status) < 2;
    }
    ok(won == 1 && ended == 8, "one of eight creates, the others are told");
}

static void test_directories(void)
{
    struct err err = { 0 };
    struct stat st;

    ok(file_make_dirs(at("a/b/c"), 0700, &err) == 0 && stat(at("a/b"), &st) == 0 &&
           (st.st_mode & 07777) == 0700,
       "every level, with its mode");
    ok(file_make_dirs(at("a/b/c"), 0700, &err) == 0, "again is fine");
    ok(file_make_dirs(at("r/x"), 0700, &err) < 0, "not through a file: %s", err.msg);
    ok(file_make_dirs(at("r"), 0700, &err) < 0, "not over a file: %s", err.msg);
    ok(file_make_dirs("", 0700, &err) < 0, "not nothing: %s", err.msg);
    ok(file_replace(at("a/b/c/f"), STR("x"), 0600, &err) == 0 &&
           file_replace(at("keep"), STR("x"), 0600, &err) == 0 &&
           symlink(at("keep"), at("a/link")) == 0 && symlink(root, at("a/up")) == 0 &&
           file_remove_tree(at("a"), &err) == 0 && !is_there("a") && holds("keep", "x"),
       "a tree is removed, and nothing that its links point to");
    ok(file_remove_tree(at("a"), &err) == 0, "what is not there needs no removing");
}

static void test_mapping(void)
{
    struct mapping m = { .bytes = { NULL, 0 } };
    struct err err = { 0 };
    CLEANUP(file_close) int fd = file_open(at("five"), O_RDONLY, 0, &err);
    CLEANUP(file_close) int empty = file_open(at("c"), O_RDONLY, 0, &err);
    CLEANUP(file_close) int dir = file_open(root, O_RDONLY, 0, &err);

    ok(mapping_open(&m, fd, "five", &err) == 0 && str_is(m.bytes, "12345"), "mapped");
    mapping_release(&m);
    mapping_release(&m);
    ok(mapping_open(&m, empty, "c", &err) == 0 && m.bytes.n == 0 && m.bytes.p,
       "an empty file is an empty text");
    mapping_release(&m);
    ok(mapping_open(&m, dir, "dir", &err) < 0 && err.code == ERR_FORMAT, "not: %s",
       err.msg);
}

static void test_write_tells_how_far_it_came(void)
{
    struct err err = { 0 };
    size_t written = 99;
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

    if (fd < 0) {
        tap_skip("a full disk", "no /dev/full here");
        return;
    }
    ok(file_write(fd, STR("x"), &written, &err) < 0 && written == 0 && err.code == ERR_IO,
       "full: %s", err.msg);
    file_close(&fd);
    file_close(&fd);
    ok(fd == -1, "closed twice");
}

int main(void)
{
    struct err err = { 0 };
    const char *tmp = getenv("TMPDIR");

    umask(0);
    snprintf(root, sizeof(root), "%s/assay-file-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(root)) {
        ok(false, "mkdtemp");
        return tap_done();
    }
    test_path_join_at_its_limit();
    test_read_whole_files_and_nothing_else();
    test_read_exactly();
    test_replace_and_create();
    test_one_of_many_racers_creates();
    test_directories();
    test_mapping();
    test_write_tells_how_far_it_came();
    ok(file_remove_tree(root, &err) == 0, "clean up %s", err.msg);
    return tap_done();
}
