/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/place.h"

#include <stdio.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/err.h"
#include "evidence/keys.h"

static bool has_log(const char *dir)
{
    char path[FILE_PATH_MAX];
    struct err ignored;

    return path_join(path, dir, "log/origin", &ignored) == 0 && access(path, F_OK) == 0;
}

static int copy_path(char out[static FILE_PATH_MAX], const char *path, struct err *err)
{
    int n = snprintf(out, FILE_PATH_MAX, "%s", path);

    return n < FILE_PATH_MAX ? 0 : err_set(err, ERR_LIMIT, "the path is too long");
}

int place_find(char out[static FILE_PATH_MAX], const char *given, struct err *err)
{
    char at_home[FILE_PATH_MAX];
    struct keys keys;

    if (given) {
        if (!has_log(given))
            return err_set(err, ERR_NOTFOUND, "there is no log in '%s'", given);
        return copy_path(out, given, err);
    }
    if (has_log(PLACE_DEFAULT))
        return copy_path(out, PLACE_DEFAULT, err);
    if (keys_open(&keys, NULL, err) < 0 || path_join(at_home, keys.home, "mcp", err) < 0)
        return -1;
    if (!has_log(at_home))
        return err_set(
            err, ERR_NOTFOUND,
            "there is no log in '%s'; name the audit directory with --audit-dir",
            PLACE_DEFAULT);
    diag_say("reading the log in '%s'", at_home);
    return copy_path(out, at_home, err);
}
