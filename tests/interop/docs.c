/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the log that docs.t has other tools check:  docs DIR */
#include "tests/lab.h"

int main(int argc, char **argv)
{
    struct lab l = { .root = "" };
    struct err err = { 0 };
    struct log_options o;
    struct log *log = NULL;
    int r;

    if (argc != 2 || keys_open(&l.keys, NULL, &err) < 0)
        return 1;
    snprintf(l.audit, sizeof(l.audit), "%s", argv[1]);
    o = lab_options(&l);
    o.segment_max = 8192;
    r = log_open(&log, &o, &err);
    for (int i = 0; r == 0 && i < 98; i++) {
        r = lab_append(log, i, NULL, &err);
        if (r == 0 && i % 40 == 0)
            r = log_checkpoint(log, true, &err);
    }
    if (r == 0 && log_close(log, &err) == 0)
        return 0;
    fprintf(stderr, "%s\n", err.msg);
    return 1;
}
