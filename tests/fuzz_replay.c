/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over every file of a seed corpus, as an ordinary TAP test. */
#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "tests/tap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay(const char *dir, const char *name)
{
    CLEANUP(buf_release) struct buf text = { .max = (size_t)64 << 20 };
    struct err err = { 0 };
    char path[FILE_PATH_MAX];

    if (path_join(path, dir, name, &err) < 0 || file_read(path, &text, &err) < 0) {
        ok(false, "%s", err.msg);
        return;
    }
    ok(LLVMFuzzerTestOneInput((const uint8_t *)buf_cstr(&text), text.n) == 0, "%s", name);
}

int main(int argc, char **argv)
{
    DIR *dir = argc > 1 ? opendir(argv[1]) : NULL;
    struct dirent *entry;

    if (!dir) {
        ok(false, "cannot open the corpus '%s'", argc > 1 ? argv[1] : "");
        return tap_done();
    }
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] != '.')
            replay(argv[1], entry->d_name);
    }
    closedir(dir);
    ok(tap_count > 0, "the corpus is not empty");
    return tap_done();
}
