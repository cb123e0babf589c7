/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pepper.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/file.h"
#include "evidence/crypto.h"

/* The descriptor that is read is the one that is looked at. */
int pepper_read(const char *path, struct buf *out, struct err *err)
{
    CLEANUP(file_close) int fd = -1;
    struct stat st;

    if (!path)
        return 0;
    fd = file_open(path, O_RDONLY, 0, err);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return err_errno(err, "cannot look at '%s'", path);
    if (st.st_mode & 077)
        return err_set(err, ERR_REFUSED, "'%s' can be read by others: chmod 600 it",
                       path);
    out->max = PEPPER_MAX;
    if (file_read_fd(fd, path, out, err) < 0)
        return -1;
    if (out->n < PEPPER_MIN)
        return err_set(err, ERR_FORMAT, "'%s' has %zu bytes; a pepper has at least %d",
                       path, out->n, PEPPER_MIN);
    return 0;
}

void pepper_check(char out[static PEPPER_CHECK], str pepper)
{
    struct digest d = hmac_of(pepper, STR("assay pepper check v1"));
    char hex[2 * DIGEST_SIZE];

    digest_hex(hex, &d);
    memcpy(out, hex, PEPPER_CHECK - 1);
    out[PEPPER_CHECK - 1] = '\0';
}
