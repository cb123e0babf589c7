/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a small log for tests/cli/log.t:  log DIR EVENTS CHECKPOINT-EVERY */
#include <stdlib.h>

#include "tests/lab.h"

static int append(struct log *log, long i, long every, struct err *err)
{
    if (lab_append(log, i, NULL, err) < 0)
        return -1;
    return i % every == 0 ? log_checkpoint(log, true, err) : 0;
}

int main(int argc, char **argv)
{
    struct lab l = { .root = "" };
    struct err err = { 0 };
    struct log *log;
    int r = 0;

    if (argc != 4 || keys_open(&l.keys, NULL, &err) < 0)
        return 1;
    snprintf(l.audit, sizeof(l.audit), "%s", argv[1]);
    log = lab_open(&l, &err);
    for (long i = 0; log && r == 0 && i < strtol(argv[2], NULL, 10); i++)
        r = append(log, i, strtol(argv[3], NULL, 10), &err);
    if (log && log_close(log, &err) == 0 && r == 0)
        return 0;
    fprintf(stderr, "%s\n", err.msg);
    return 1;
}
