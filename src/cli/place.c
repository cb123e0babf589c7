/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/err.h"
#include "cli/options.h"
#include "evidence/keys.h"

enum found {
    FOUND_NONE,
    FOUND_LOG
};

static bool stands(const char *dir, const char *name, struct err *err)
{
    char path[FILE_PATH_MAX];

    errno = 0;
    return path_join(path, dir, name, err) == 0 && access(path, F_OK) == 0;
}

/* Whether there is a log; fails when that cannot be found out, and when what is there
 * was one: a log without `origin` has lost its name, and is not an empty place. */
static int look(const char *dir, enum found *found, struct err *err)
{
    struct err why = { .code = ERR_NONE };

    *found = FOUND_LOG;
    if (stands(dir, "log/origin", &why))
        return 0;
    if (errno == EACCES)
        return err_errno(err, "cannot read the log in '%s'", dir);
    if (stands(dir, "log/segments", &why) || stands(dir, "log/checkpoint", &why))
        return err_set(err, ERR_DAMAGE,
                       "the log in '%s' is damaged: its file 'origin' is missing", dir);
    *found = FOUND_NONE;
    return 0;
}

static int copy_path(char out[static FILE_PATH_MAX], const char *path, struct err *err)
{
    int n = snprintf(out, FILE_PATH_MAX, "%s", path);

    return n < FILE_PATH_MAX ? 0 : err_set(err, ERR_LIMIT, "the path is too long");
}

int place_find(char out[static FILE_PATH_MAX], const char *given, struct err *err)
{
    char at_home[FILE_PATH_MAX];
    enum found found;
    struct keys keys;

    if (look(given ? given : PLACE_DEFAULT, &found, err) < 0)
        return -1;
    if (found == FOUND_LOG)
        return copy_path(out, given ? given : PLACE_DEFAULT, err);
    if (given)
        return err_set(err, ERR_NOTFOUND, "there is no log in '%s'", given);
    if (keys_open(&keys, NULL, err) < 0 ||
        path_join(at_home, keys.home, "mcp", err) < 0 || look(at_home, &found, err) < 0)
        return -1;
    if (found == FOUND_NONE)
        return err_set(
            err, ERR_NOTFOUND,
            "there is no log in '%s'; name the audit directory with --audit-dir",
            PLACE_DEFAULT);
    diag_say("reading the log in '%s'", at_home);
    return copy_path(out, at_home, err);
}

int place_choose(char out[static FILE_PATH_MAX], const struct operands *dirs,
                 const char *given, struct err *err)
{
    if (dirs->count && given)
        return err_set(err, ERR_FORMAT, "either DIR or --audit-dir, not both");
    return place_find(out, dirs->count ? dirs->at[0] : given, err);
}

/* What keeps us from recording in the default directory; NULL: nothing. */
static const char *why_elsewhere(void)
{
    struct err ignored;
    char cwd[FILE_PATH_MAX];
    struct stat st;

    if (!getcwd(cwd, sizeof(cwd)))
        return "the working directory is not known";
    if (strcmp(cwd, "/") == 0)
        return "the working directory is '/'";
    if (file_make_dirs(PLACE_DEFAULT, 0700, &ignored) < 0 || stat(PLACE_DEFAULT, &st) < 0)
        return "'" PLACE_DEFAULT "' cannot be made in the working directory";
    if (st.st_uid != geteuid())
        return "'" PLACE_DEFAULT "' belongs to another user";
    return access(PLACE_DEFAULT, W_OK | X_OK) < 0 ? "'" PLACE_DEFAULT
                                                    "' cannot be written to"
                                                  : NULL;
}

int place_for_writing(char out[static FILE_PATH_MAX], const char *given, const char **why,
                      struct err *err)
{
    struct keys keys;

    *why = given ? NULL : why_elsewhere();
    if (!*why)
        return copy_path(out, given ? given : PLACE_DEFAULT, err);
    if (keys_open(&keys, NULL, err) < 0)
        return -1;
    return path_join(out, keys.home, "mcp", err);
}

static void say(void *ctx, const char *sentence)
{
    (void)ctx;
    diag_say("%s", sentence);
}

struct log_options place_log_options(const char *dir, const struct keys *keys)
{
    return (struct log_options){ .dir = dir,
                                 .keys = keys,
                                 .clock = &clock_system,
                                 .entropy = &entropy_system,
                                 .group = (gid_t)-1,
                                 .say = say };
}
