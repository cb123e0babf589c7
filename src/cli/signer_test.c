/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/signer.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "tests/tap.h"

/* Open the signer and catch what is said on stderr. */
static int open_and_listen(struct signer *s, char *said, size_t size, struct err *err)
{
    FILE *catch = tmpfile();
    int saved = dup(STDERR_FILENO);
    struct keys keys;
    int r;

    dup2(fileno(catch), STDERR_FILENO);
    r = signer_open(&keys, s, err);
    dup2(saved, STDERR_FILENO);
    close(saved);
    rewind(catch);
    said[fread(said, 1, size - 1, catch)] = '\0';
    fclose(catch);
    return r;
}

int main(void)
{
    CLEANUP(signer_release) struct signer first = { .id = "" };
    CLEANUP(signer_release) struct signer second = { .id = "" };
    struct err err = { .code = ERR_NONE };
    char home[] = "/tmp/assay-signer-XXXXXX";
    char said[4096];

    if (!mkdtemp(home) || setenv("ASSAY_HOME", home, 1) < 0)
        abort();
    ok(open_and_listen(&first, said, sizeof(said), &err) == 0 &&
           str_starts(str_from(said), STR("assay: made the signing key 'assay-local'")),
       "the first use makes a key and says so");
    ok(open_and_listen(&second, said, sizeof(said), &err) == 0 && said[0] == '\0',
       "the second use is silent");
    ok(memcmp(&first, &second, sizeof(first)) == 0, "and has the same key");
    ok(file_remove_tree(home, &err) == 0, "clean up %s", err.msg);
    return tap_done();
}
