/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pepper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "tests/tap.h"

static char path[FILE_PATH_MAX];

static int read_one(size_t size, mode_t mode, size_t *n)
{
    CLEANUP(buf_release) struct buf out = { 0 }, bytes = { 0 };
    struct err err = { .code = ERR_NONE };
    int r;

    for (size_t i = 0; i < size; i++)
        buf_add_char(&bytes, (char)i);
    unlink(path);
    if (file_create(path, buf_str(&bytes), 0600, &err) < 0 || chmod(path, mode) < 0)
        return -2;
    r = pepper_read(path, &out, &err);
    *n = out.n;
    return r;
}

int main(void)
{
    char dir[] = "/tmp/assay-pepper-XXXXXX";
    CLEANUP(buf_release) struct buf none = { 0 };
    struct err err = { .code = ERR_NONE };
    char check[PEPPER_CHECK];
    uint8_t known[32];
    size_t n;

    if (!mkdtemp(dir))
        return 1;
    snprintf(path, sizeof(path), "%s/pepper", dir);
    ok(read_one(PEPPER_MIN, 0600, &n) == 0 && n == PEPPER_MIN, "the shortest");
    ok(read_one(PEPPER_MIN - 1, 0600, &n) == -1, "one byte less");
    ok(read_one(PEPPER_MAX, 0400, &n) == 0 && n == PEPPER_MAX, "the longest");
    ok(read_one(PEPPER_MAX + 1, 0600, &n) == -1, "one byte more");
    ok(read_one(PEPPER_MIN, 0640, &n) == -1, "a group may read it");
    ok(read_one(PEPPER_MIN, 0604, &n) == -1, "everybody may read it");
    unlink(path);
    ok(pepper_read(path, &none, &err) == -1, "none there");
    ok(pepper_read(NULL, &none, &err) == 0 && none.n == 0, "none wanted");
    rmdir(dir);
    for (size_t i = 0; i < sizeof(known); i++)
        known[i] = (uint8_t)i;
    pepper_check(check, str_of((const char *)known, sizeof(known)));
    ok(strcmp(check, "b3f1eb11aac804b5") == 0, "the check that Python's hmac computes");
    return tap_done();
}
