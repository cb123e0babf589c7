/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/options.h"
#include "evidence/crypto.h"
#include "json/jcs.h"
#include "json/json.h"

/* A text in memory or, when it is a regular file, where it lies. */
struct input {
    int fd; /* to be closed; -1 for stdin */
    struct mapping map;
    struct buf memory;
    str text;
};

static void input_release(struct input *in)
{
    mapping_release(&in->map);
    buf_release(&in->memory);
    file_close(&in->fd);
}

/* What was read of it already is not part of the text (only stdin can be). */
static int map_file(struct input *in, int fd, const char *name, struct err *err)
{
    off_t from = lseek(fd, 0, SEEK_CUR);

    if (mapping_open(&in->map, fd, name, err) < 0)
        return -1;
    in->text = str_skip(in->map.bytes, from > 0 ? (size_t)from : 0);
    return 0;
}

static int read_stream(struct input *in, int fd, const char *name, struct err *err)
{
    buf_init(&in->memory, JSON_MAX_BYTES - 1);
    if (file_read_fd(fd, name, &in->memory, err) < 0)
        return -1;
    in->text = buf_str(&in->memory);
    return 0;
}

static int input_open(struct input *in, const char *path, struct err *err)
{
    const char *name = path ? path : "stdin";
    int fd = STDIN_FILENO;
    struct stat st;

    if (path) {
        in->fd = file_open(path, O_RDONLY | O_NOCTTY, 0, err);
        if (in->fd < 0)
            return -1;
        fd = in->fd;
    }
    if (fstat(fd, &st) < 0)
        return err_errno(err, "cannot look at '%s'", name);
    if (S_ISREG(st.st_mode))
        return map_file(in, fd, name, err);
    if (S_ISDIR(st.st_mode))
        return err_set(err, ERR_FORMAT, "'%s' is a directory, not a file", name);
    if (path && !S_ISFIFO(st.st_mode))
        return err_set(err, ERR_FORMAT, "'%s' is neither a file nor a pipe", name);
    return read_stream(in, fd, name, err);
}

static void write_out(void *ctx, str bytes)
{
    (void)ctx;
    fwrite(bytes.p, 1, bytes.n, stdout); /* main() notices when that failed */
}

/* The hash comes first: when there is no canonical form, nothing was printed yet. */
static int print_canonical(const struct json *j, bool only_hash, struct err *err)
{
    struct hasher h;
    const struct sink out = { write_out, NULL };
    char hex[2 * DIGEST_SIZE];
    struct sink into;
    struct digest digest;

    hasher_init(&h);
    into = hasher_sink(&h);
    if (jcs_write(j, JSON_ROOT, JCS_RFC8785, &into, err) < 0)
        return -1;
    if (!only_hash)
        return jcs_write(j, JSON_ROOT, JCS_RFC8785, &out, err);
    digest = hasher_finish(&h);
    digest_hex(hex, &digest);
    printf("sha256:%.*s\n", (int)sizeof(hex), hex);
    return 0;
}

static enum exit_code run(int argc, char **argv)
{
    CLEANUP(input_release) struct input in = { .fd = -1 };
    CLEANUP(json_release) struct json j = { 0 };
    bool only_hash = false;
    struct operands files = { .max = 1 };
    const struct option table[] = {
        { "sha256", NULL, "print sha256:<hex> of those bytes instead",
          .flag = &only_hash },
        { 0 },
    };
    struct err err = { .code = ERR_NONE };
    const char *path;
    enum exit_code code;

    if (!options_parse(&cmd_jcs, table, argc, argv, &files, &code))
        return code;
    path = files.count && strcmp(files.at[0], "-") != 0 ? files.at[0] : NULL;
    if (input_open(&in, path, &err) < 0)
        return command_fail(&err);
    if (json_parse(&j, in.text, NULL, &err) < 0 ||
        print_canonical(&j, only_hash, &err) < 0)
        return command_fail_in(&err, "'%s'", path ? path : "stdin");
    return EXIT_GOOD;
}

const struct command cmd_jcs = {
    .name = "jcs",
    .usage = "[--sha256] [FILE]",
    .summary = "print the RFC 8785 form of a JSON text, or its SHA-256",
    .run = run,
};
