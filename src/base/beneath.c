/* SPDX-License-Identifier: Apache-2.0 */
#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

/* Take the next component off *rest; empty ones ("a//b") are skipped. */
static bool component(str *rest, str *out)
{
    while (rest->n && rest->p[0] == '/')
        *rest = str_skip(*rest, 1);
    if (rest->n == 0)
        return false;
    for (out->p = rest->p, out->n = 0; out->n < rest->n && rest->p[out->n] != '/';)
        out->n++;
    *rest = str_skip(*rest, out->n);
    return true;
}

bool beneath_name_valid(str name)
{
    str rest = name, part;

    if (name.n == 0 || name.n > BENEATH_NAME_MAX || name.p[0] == '/' ||
        name.p[name.n - 1] == '/' || memchr(name.p, '\0', name.n) ||
        memchr(name.p, '\\', name.n))
        return false;
    while (component(&rest, &part)) {
        if (part.n > NAME_MAX || str_is(part, ".."))
            return false;
    }
    return true;
}

static int open_failed(struct err *err, const char *what)
{
    int saved = errno;

    if (saved == ELOOP)
        return err_set(err, ERR_REFUSED, "'%s' is a symbolic link", what);
    err_errno(err, "cannot open '%s'", what);
    if (saved == ENOENT || saved == ENOTDIR)
        err->code = ERR_NOTFOUND;
    return -1;
}

/* O_NOFOLLOW and O_DIRECTORY together say ENOTDIR for a link: look what it is. */
static int step_into(int dir, const char *name, struct err *err)
{
    struct stat st;
    int fd;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return open_failed(err, name);
    errno = S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR;
    if (!S_ISDIR(st.st_mode))
        return open_failed(err, name);
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? open_failed(err, name) : fd;
}

/* Looks before it opens: opening a device can have effects. */
static int open_regular(int dir, const char *name, struct err *err)
{
    struct stat st;
    int fd;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return open_failed(err, name);
    errno = ELOOP;
    if (S_ISLNK(st.st_mode))
        return open_failed(err, name);
    if (S_ISDIR(st.st_mode))
        return err_set(err, ERR_FORMAT, "'%s' is a directory, not a file", name);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_FORMAT, "'%s' is not a regular file", name);
    do
        fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return open_failed(err, name);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    close(fd);
    return err_set(err, ERR_FORMAT, "'%s' is not a regular file", name);
}

int beneath_open(int dir, str name, struct err *err)
{
    CLEANUP(file_close) int held = -1; /* the directory we are in, once it is not `dir` */
    char part_name[NAME_MAX + 1];
    str part;

    if (!beneath_name_valid(name))
        return err_set(err, ERR_REFUSED, "the name leaves its directory");
    for (str rest = name; component(&rest, &part);) {
        int at = held >= 0 ? held : dir;
        int next;

        memcpy(part_name, part.p, part.n);
        part_name[part.n] = '\0';
        if (rest.n == 0)
            return open_regular(at, part_name, err);
        next = step_into(at, part_name, err);
        file_close(&held);
        held = next;
        if (held < 0)
            return -1;
    }
    return err_set(err, ERR_REFUSED, "the name is empty");
}

int beneath_map(int dir, str name, struct mapping *out, struct err *err)
{
    CLEANUP(file_close) int fd = beneath_open(dir, name, err);

    return fd < 0 ? -1 : mapping_open(out, fd, "file", err);
}
