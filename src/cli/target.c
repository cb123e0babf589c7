/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"

bool target_is_in(const char *path, const char *dir)
{
    const char *slash = strrchr(path, '/');
    char parent[FILE_PATH_MAX];
    struct stat a, b;

    snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    return stat(parent, &a) == 0 && stat(dir, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* /dev/stdout, by whatever name: its offset is ours, and a socket cannot be opened. */
static bool is_stdout(const struct stat *st)
{
    struct stat out;

    return fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == st->st_dev &&
           out.st_ino == st->st_ino;
}

static int write_stdout(const char *path, str bytes, struct err *err)
{
    fwrite(bytes.p, 1, bytes.n, stdout);
    return fflush(stdout) == 0 ? 0 : err_errno(err, "cannot write '%s'", path);
}

static int write_through(const char *path, str bytes, struct err *err)
{
    CLEANUP(file_close) int fd = file_open(path, O_WRONLY | O_NOCTTY, 0, err);

    if (fd < 0)
        return -1;
    return file_write(fd, bytes, NULL, err) < 0 ? err_wrap(err, "'%s'", path) : 0;
}

/* `path` becomes what the link at `path` says; a relative one counts from its directory.
 */
static int follow_link(char path[static FILE_PATH_MAX], struct err *err)
{
    char to[FILE_PATH_MAX], dir[FILE_PATH_MAX];
    ssize_t n = readlink(path, to, sizeof(to) - 1);
    char *slash;

    if (n < 0)
        return err_errno(err, "cannot read the link '%s'", path);
    to[n] = '\0';
    memcpy(dir, path, FILE_PATH_MAX);
    slash = strrchr(dir, '/');
    if (slash)
        slash[1] = '\0';
    if (to[0] != '/' && slash)
        return path_join(path, dir, to, err);
    memcpy(path, to, (size_t)n + 1);
    return 0;
}

/* The end of a chain of links need not be there. */
static int replace(const char *given, str bytes, mode_t mode, struct err *err)
{
    char path[FILE_PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof(path), "%s", given);

    if (n >= FILE_PATH_MAX)
        return err_set(err, ERR_LIMIT, "the path is too long");
    for (int i = 0; lstat(path, &st) == 0 && S_ISLNK(st.st_mode); i++) {
        if (i == TARGET_LINKS_MAX)
            return err_set(err, ERR_LIMIT, "'%s': too many links", given);
        if (follow_link(path, err) < 0)
            return -1;
    }
    return file_replace(path, bytes, mode, err);
}

int target_write(const char *path, str bytes, struct err *err)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return errno == ENOENT ? replace(path, bytes, 0644, err)
                               : err_errno(err, "cannot write '%s'", path);
    if (is_stdout(&st))
        return write_stdout(path, bytes, err);
    if (S_ISREG(st.st_mode))
        return replace(path, bytes, st.st_mode & 0777, err);
    if (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode))
        return write_through(path, bytes, err);
    if (S_ISDIR(st.st_mode))
        return err_set(err, ERR_FORMAT, "'%s' is a directory", path);
    return err_set(err, ERR_FORMAT, "'%s' is not a regular file", path);
}
