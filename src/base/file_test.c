/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "tests/tap.h"

static char base[512];

static const char *at(const char *name)
{
    static char paths[4][FILE_PATH_MAX];
    static unsigned turn;
    struct err err;
    char *out = paths[turn++ % COUNT(paths)];

    return path_join(out, base, name, &err) < 0 ? "" : out;
}

static bool holds(const char *name, str want, mode_t mode)
{
    CLEANUP(buf_release) struct buf b = { 0 };
    struct err err;
    struct stat st;

    return file_read(at(name), &b, &err) == 0 && str_equal(buf_str(&b), want) &&
           stat(at(name), &st) == 0 && (st.st_mode & 07777) == mode;
}

/* Entries of the directory; a leftover temporary file would count. */
static unsigned entries(const char *name)
{
    DIR *d = opendir(at(name));
    unsigned n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n - 2; /* . and .. */
}

static void test_paths(void)
{
    static char name[FILE_PATH_MAX];
    char out[FILE_PATH_MAX];
    struct err err = { 0 };

    ok(path_join(out, "a", "b", &err) == 0 && str_is(str_from(out), "a/b"), "a/b");
    memset(name, 'n', sizeof(name) - 3);
    ok(path_join(out, "d", name, &err) == 0 && strlen(out) == FILE_PATH_MAX - 1,
       "the longest path");
    name[sizeof(name) - 3] = 'n';
    ok(path_join(out, "d", name, &err) < 0 && err.code == ERR_LIMIT, "one byte more");
}

static void test_replace_and_put(void)
{
    static int (*const writers[])(const char *, str, mode_t,
                                  struct err *) = { file_replace, file_put };
    struct err err = { 0 };

    for (size_t i = 0; i < COUNT(writers); i++) {
        ok(file_make_dirs(at("w"), 0700, &err) == 0 &&
               writers[i](at("w/f"), STR("old"), 0600, &err) == 0 &&
               holds("w/f", STR("old"), 0600),
           "a new file with its mode");
        ok(writers[i](at("w/f"), STR(""), 0640, &err) == 0 &&
               holds("w/f", STR(""), 0640) && entries("w") == 1,
           "replaced whole, nothing left beside it");
        err.code = ERR_NONE;
        ok(writers[i](at("no/f"), STR("x"), 0600, &err) < 0 && err.code == ERR_NOTFOUND,
           "no directory: %s", err.msg);
        ok(mkdir(at("w/d"), 0700) == 0 &&
               writers[i](at("w/d"), STR("x"), 0600, &err) < 0 && err.code == ERR_IO &&
               entries("w") == 2,
           "a directory is not replaced, and nothing is left");
        if (file_remove_tree(at("w"), &err) < 0)
            ok(false, "%s", err.msg);
    }
}

static void test_create_and_links(void)
{
    struct err err = { 0 };

    ok(file_create(at("c"), STR(""), 0600, &err) == 0 && holds("c", STR(""), 0600),
       "created");
    ok(file_create(at("c"), STR("x"), 0600, &err) < 0 && err.code == ERR_EXISTS &&
           holds("c", STR(""), 0600),
       "what is there stays: %s", err.msg);
    ok(symlink("c", at("link")) == 0 &&
           file_replace(at("link"), STR("x"), 0600, &err) == 0 &&
           holds("c", STR(""), 0600) && holds("link", STR("x"), 0600),
       "a link is replaced, not followed");
}

static void test_make(void)
{
    struct err err = { 0 };

    ok(file_make_dirs(at("m"), 0700, &err) == 0 &&
           file_make(at("m/f"), STR("new"), 0640, &err) == 0 &&
           holds("m/f", STR("new"), 0640) && entries("m") == 1,
       "made, with its mode");
    ok(file_make(at("m/f"), STR("x"), 0600, &err) < 0 && err.code == ERR_EXISTS &&
           holds("m/f", STR("new"), 0640),
       "what is there stays: %s", err.msg);
    ok(symlink("elsewhere", at("m/link")) == 0 &&
           file_make(at("m/link"), STR("x"), 0600, &err) < 0 && err.code == ERR_EXISTS &&
           entries("m") == 2,
       "a link is not followed");
    ok(file_make(at("no/f"), STR("x"), 0600, &err) < 0 && err.code == ERR_NOTFOUND,
       "no directory: %s", err.msg);
}

static void test_a_failed_write_changes_nothing(void)
{
    static char large[100000];
    struct rlimit old, small;
    struct err err = { 0 };
    int r;

    if (getrlimit(RLIMIT_FSIZE, &old) < 0 || file_make_dirs(at("q"), 0700, &err) < 0 ||
        file_replace(at("q/f"), STR("old"), 0600, &err) < 0)
        ok(false, "cannot prepare: %s", err.msg);
    signal(SIGXFSZ, SIG_IGN);
    small = old;
    small.rlim_cur = 5000;
    setrlimit(RLIMIT_FSIZE, &small);
    r = file_make(at("q/g"), str_of(large, sizeof(large)), 0600, &err);
    ok(r < 0 && err.code == ERR_IO && entries("q") == 1, "nor a new one: %s", err.msg);
    r = file_replace(at("q/f"), str_of(large, sizeof(large)), 0600, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    ok(r < 0 && err.code == ERR_IO && holds("q/f", STR("old"), 0600) && entries("q") == 1,
       "a full disk leaves the old file: %s", err.msg);
}

static void test_a_short_write_is_counted(void)
{
    static char large[100000];
    struct rlimit old = { 0 }, small;
    struct err err = { 0 };
    size_t written = 0;
    int fd = file_open(at("short"), O_WRONLY | O_CREAT | O_EXCL, 0600, &err), r;

    if (fd < 0 || getrlimit(RLIMIT_FSIZE, &old) < 0)
        ok(false, "cannot prepare: %s", err.msg);
    small = old;
    small.rlim_cur = 5000;
    setrlimit(RLIMIT_FSIZE, &small);
    r = file_write(fd, str_of(large, sizeof(large)), &written, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    ok(r < 0 && err.code == ERR_IO && written == 5000, "what stands is told");
    ok(file_write(fd, STR("abc"), &written, &err) == 0 && written == 3 &&
           file_datasync(fd, &err) == 0,
       "and writing goes on");
    file_close(&fd);
    ok(fd == -1, "closed");
    file_close(&fd);
    ok(file_open(at("short"), O_WRONLY | O_CREAT | O_EXCL, 0600, &err) < 0 &&
           err.code == ERR_EXISTS,
       "what is there cannot be created");
}

static void test_of_eight_creators_one_wins(void)
{
    unsigned won = 0, lost = 0;
    pid_t children[8];
    struct err err = { 0 };
    int gate[2];

    if (pipe(gate) < 0 || file_make_dirs(at("race"), 0700, &err) < 0)
        ok(false, "cannot prepare");
    for (size_t i = 0; i < COUNT(children); i++) {
        children[i] = fork();
        if (children[i] == 0) {
            char who = (char)('0' + i), go;

            close(gate[1]);
            if (read(gate[0], &go, 1) != 0)
                _exit(9);
            if (file_create(at("race/f"), str_of(&who, 1), 0600, &err) == 0)
                _exit(0);
            _exit(err.code == ERR_EXISTS ? 1 : 2);
        }
    }
    close(gate[0]);
    close(gate[1]); /* all at once */
    for (size_t i = 0; i < COUNT(children); i++) {
        int status = 0;

        waitpid(children[i], &status, 0);
        won += WIFEXITED(status) && WEXITSTATUS(status) == 0;
        lost += WIFEXITED(status) && WEXITSTATUS(status) == 1;
    }
    ok(won == 1 && lost == 7 && entries("race") == 1,
       "one of eight creates the file, seven are told, nothing is left beside it");
}

static void test_reading(void)
{
    CLEANUP(buf_release) struct buf exact = { .max = 5 };
    CLEANUP(buf_release) struct buf small = { .max = 4 };
    CLEANUP(buf_release) struct buf any = { 0 };
    struct err err = { 0 };

    if (file_put(at("five"), STR("12345"), 0600, &err) < 0 ||
        file_put(at("none"), STR(""), 0600, &err) < 0 || mkfifo(at("fifo"), 0600) < 0)
        ok(false, "cannot prepare: %s", err.msg);
    ok(file_read(at("five"), &exact, &err) == 0 && str_is(buf_str(&exact), "12345"),
       "a file as large as the buffer");
    ok(file_read(at("five"), &small, &err) < 0 && err.code == ERR_LIMIT && small.n == 0,
       "one byte larger: %s", err.msg);
    ok(file_read(at("none"), &any, &err) == 0 && any.n == 0, "an empty file");
    ok(file_read(base, &any, &err) < 0 && err.code == ERR_FORMAT, "a directory: %s",
       err.msg);
    ok(file_read(at("fifo"), &any, &err) < 0 && err.code == ERR_FORMAT, "a fifo: %s",
       err.msg);
    ok(file_read("/dev/null", &any, &err) < 0 && err.code == ERR_FORMAT, "a device: %s",
       err.msg);
    ok(file_read(at("missing"), &any, &err) < 0 && err.code == ERR_NOTFOUND,
       "nothing: %s", err.msg);
    ok(file_read(at("five"), &any, &err) == 0 && file_read(at("five"), &any, &err) == 0 &&
           str_is(buf_str(&any), "1234512345"),
       "what is read is appended");
}

static void test_reading_exactly(void)
{
    struct err err = { 0 };
    CLEANUP(file_close) int fd = file_open(at("five"), O_RDONLY, 0, &err);
    char out[6] = "-----";

    ok(file_read_exact(fd, "five", out, 3, &err) == 0 && memcmp(out, "123--", 5) == 0,
       "three bytes of five and not a fourth");
    ok(file_read_exact(fd, "five", out, 2, &err) == 0 && memcmp(out, "453--", 5) == 0,
       "the rest");
    ok(file_read_exact(fd, "five", out, 1, &err) < 0 && err.code == ERR_FORMAT,
       "the end: %s", err.msg);
    ok(lseek(fd, 0, SEEK_SET) == 0 && file_read_exact(fd, "five", out, 6, &err) < 0,
       "one byte too many");
}

static void test_directories(void)
{
    char outside[FILE_PATH_MAX];
    struct err err = { 0 };
    struct stat st;

    ok(file_make_dirs(at("a/b/c"), 0700, &err) == 0 && stat(at("a/b"), &st) == 0 &&
           (st.st_mode & 07777) == 0700,
       "directories with their mode");
    ok(file_make_dirs(at("a/b/c/"), 0700, &err) == 0 && file_make_dirs("/", 0, &err) == 0,
       "that are there already");
    ok(file_make_dirs("", 0700, &err) < 0 && err.code == ERR_LIMIT, "no name");
    ok(file_make_dirs(at("five/x"), 0700, &err) < 0 &&
           file_make_dirs(at("five"), 0700, &err) < 0,
       "a file in the way: %s", err.msg);
    ok(file_sync_dir(at("a"), &err) == 0 && file_sync_dir(at("none"), &err) < 0,
       "a directory is synced, a file is not one");
    ok(path_join(outside, base, "five", &err) == 0 && symlink(outside, at("a/l")) == 0 &&
           symlink(base, at("a/b/l")) == 0 && file_remove_tree(at("a"), &err) == 0 &&
           access(at("a"), F_OK) < 0 && access(at("five"), F_OK) == 0,
       "a tree goes, and what its links point to stays");
    ok(file_remove_tree(at("a"), &err) == 0, "what is not there is gone");
}

static int count_name(void *ctx, const char *name, struct err *err)
{
    unsigned *seen = ctx;

    if (name[0] == 'x')
        return 7;
    if (name[0] == 'y')
        return err_set(err, ERR_FORMAT, "no");
    ++*seen;
    return 0;
}

static void test_listing(void)
{
    struct err err = { 0 };
    unsigned seen = 0;

    ok(file_make_dirs(at("list/.a"), 0700, &err) == 0 &&
           file_put(at("list/b"), STR(""), 0600, &err) == 0 &&
           file_each(at("list"), count_name, &seen, &err) == 0 && seen == 2,
       "every entry but the dots: %u", seen);
    ok(file_put(at("list/x"), STR(""), 0600, &err) == 0 &&
           file_each(at("list"), count_name, &seen, &err) == 7,
       "a visit can stop it");
    ok(unlink(at("list/x")) == 0 && file_put(at("list/y"), STR(""), 0600, &err) == 0 &&
           file_each(at("list"), count_name, &seen, &err) < 0 && err.code == ERR_FORMAT,
       "and fail it");
    ok(file_each(at("nowhere"), count_name, &seen, &err) < 0 &&
           err.code == ERR_NOTFOUND &&
           file_each(at("list/b"), count_name, &seen, &err) < 0 && err.code == ERR_IO,
       "no directory: %s", err.msg);
}

static void test_parts_of_a_file(void)
{
    struct err err = { 0 };
    CLEANUP(file_close) int fd = file_open(at("part"), O_RDWR | O_CREAT, 0600, &err);
    CLEANUP(file_close) int other = file_open(at("part"), O_RDWR, 0, &err);
    char bytes[8];

    ok(file_write(fd, STR("0123456789"), NULL, &err) == 0 &&
           file_read_at(fd, bytes, 4, 6) == 4 && memcmp(bytes, "6789", 4) == 0 &&
           file_read_at(fd, bytes, 4, 8) == 2 && file_read_at(fd, bytes, 4, 10) == 0,
       "read at a place");
    ok(file_set_size(fd, 3, &err) == 0 && holds("part", STR("012"), 0600) &&
           file_set_size(-1, 3, &err) < 0 && file_read_at(-1, bytes, 1, 0) < 0,
       "cut: %s", err.msg);
    ok(file_lock(fd, LOCK_EX | LOCK_NB) == 0 && file_lock(other, LOCK_EX | LOCK_NB) < 0 &&
           errno == EWOULDBLOCK && file_lock(fd, LOCK_UN) == 0 &&
           file_lock(other, LOCK_EX | LOCK_NB) == 0,
       "locked by one at a time");
}

static void test_mapping(void)
{
    struct mapping m = { 0 };
    struct err err = { 0 };
    int fd = file_open(at("five"), O_RDONLY, 0, &err);
    int none = file_open(at("none"), O_RDONLY, 0, &err);
    int dir = file_open(base, O_RDONLY, 0, &err);

    mapping_release(&m);
    ok(mapping_open(&m, fd, "five", &err) == 0 && str_is(m.bytes, "12345"), "mapped");
    mapping_release(&m);
    ok(mapping_open(&m, none, "none", &err) == 0 && m.bytes.n == 0, "an empty file");
    mapping_release(&m);
    ok(mapping_open(&m, dir, "dir", &err) < 0 && err.code == ERR_FORMAT, "no file: %s",
       err.msg);
    file_close(&fd);
    file_close(&none);
    file_close(&dir);
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    struct err err = { 0 };

    umask(0);
    snprintf(base, sizeof(base), "%s/assay-file-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(base)) {
        ok(false, "mkdtemp");
        return tap_done();
    }
    test_paths();
    test_replace_and_put();
    test_create_and_links();
    test_make();
    test_a_failed_write_changes_nothing();
    test_a_short_write_is_counted();
    test_of_eight_creators_one_wins();
    test_reading();
    test_reading_exactly();
    test_directories();
    test_listing();
    test_parts_of_a_file();
    test_mapping();
    ok(file_remove_tree(base, &err) == 0, "cleaned up");
    return tap_done();
}
