/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"

void intake_init(struct intake *i, const char *dir, uint64_t max_bytes)
{
    /* The window and one more span fit. */
    *i = (struct intake){ .dir = dir,
                          .max_bytes = max_bytes,
                          .held = { .max = 4 * INTAKE_HOLD },
                          .spool = -1 };
}

void intake_release(struct intake *i)
{
    intake_done(i);
    buf_release(&i->held);
}

void intake_done(struct intake *i)
{
    mapping_release(&i->map);
    file_close(&i->spool);
    buf_reset(&i->held);
    i->bytes = 0;
    i->kept = false;
    i->lost = false;
}

/* A file without a name: nothing is left of it, however we end. */
static int open_spool(struct intake *i, struct err *err)
{
    char path[FILE_PATH_MAX];

    i->spool = open(i->dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (i->spool < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
        if (path_join(path, i->dir, ".spool-XXXXXX", err) < 0)
            return -1;
        i->spool = mkostemp(path, O_CLOEXEC);
        if (i->spool >= 0)
            unlink(path);
    }
    return i->spool < 0 ? err_errno(err, "cannot spool a large message in '%s'", i->dir)
                        : 0;
}

static int spool(struct intake *i, str bytes, struct err *err)
{
    if (i->spool < 0) {
        i->kept = i->whole;
        if (open_spool(i, err) < 0 ||
            file_write(i->spool, buf_str(&i->held), NULL, err) < 0)
            return -1;
    }
    return file_write(i->spool, bytes, NULL, err);
}

/* All but the last INTAKE_HOLD bytes of the window may go. */
static void slide(struct intake *i, struct intake_result *out)
{
    size_t go = i->held.n > INTAKE_HOLD ? i->held.n - INTAKE_HOLD : 0;

    if (i->kept)
        return; /* the spool has it */
    out->pass = str_first(buf_str(&i->held), go);
    out->step = go ? INTAKE_PASS : INTAKE_MORE;
}

/* It is too large to be judged: from here on it is like any other long one. */
static int yield(struct intake *i, struct intake_result *out, struct err *err)
{
    i->kept = false;
    if (mapping_open(&i->map, i->spool, "the spool", err) < 0)
        return -1;
    out->pass = str_first(i->map.bytes, i->map.bytes.n - INTAKE_HOLD);
    out->step = INTAKE_PASS;
    return 0;
}

/* Drop from the window what went on with the last call. */
static void forget_passed(struct intake *i)
{
    mapping_release(&i->map);
    if (i->spool < 0 || i->held.n <= INTAKE_HOLD)
        return;
    memmove(i->held.p, i->held.p + i->held.n - INTAKE_HOLD, INTAKE_HOLD);
    i->held.n = INTAKE_HOLD;
}

static int complete(struct intake *i, struct intake_result *out, struct err *err)
{
    *out = (struct intake_result){ .step = INTAKE_MESSAGE,
                                   .frame = buf_str(&i->held),
                                   .pass = buf_str(&i->held) };
    if (i->spool < 0)
        return 0;
    if (mapping_open(&i->map, i->spool, "the spool", err) < 0)
        return -1;
    out->frame = i->map.bytes;
    out->streamed = !i->kept;
    if (i->kept)
        out->pass = out->frame;
    return 0;
}

/* What is in the window has not gone on yet; from here on everything does. */
static int lose(struct intake *i, str span, bool end, struct intake_result *out)
{
    file_close(&i->spool);
    i->lost = true;
    buf_add(&i->held, span);
    *out = (struct intake_result){ .step = end ? INTAKE_LOST : INTAKE_PASS,
                                   .pass = buf_str(&i->held),
                                   .streamed = true };
    return 0;
}

static int pass_lost(struct intake *i, str span, bool end, struct intake_result *out)
{
    buf_reset(&i->held);
    return lose(i, span, end, out);
}

int intake_add(struct intake *i, str span, bool end, struct intake_result *out,
               struct err *err)
{
    forget_passed(i);
    *out = (struct intake_result){ .step = INTAKE_MORE };
    i->bytes += span.n;
    if (i->kept && i->bytes > INTAKE_WHOLE && !i->yields)
        return err_set(err, ERR_LIMIT,
                       "a message that must be judged is larger than %zu bytes",
                       INTAKE_WHOLE);
    if (i->bytes > i->max_bytes)
        return err_set(err, ERR_LIMIT, "a message is larger than %llu bytes",
                       (unsigned long long)i->max_bytes);
    if (i->lost)
        return pass_lost(i, span, end, out);
    if (end && i->spool < 0 &&
        i->held.n == 0) { /* whole in one span: nothing is copied */
        *out = (struct intake_result){ INTAKE_MESSAGE, span, span, false };
        return 0;
    }
    if ((i->spool >= 0 || i->held.n + span.n > INTAKE_HOLD) && spool(i, span, err) < 0)
        return i->may_lose && !i->kept ? lose(i, span, end, out) : -1;
    buf_add(&i->held, span);
    if (buf_check(&i->held, "the window of a message", err) < 0)
        return -1;
    if (end)
        return complete(i, out, err);
    if (i->kept && i->bytes > INTAKE_WHOLE)
        return yield(i, out, err);
    if (i->spool >= 0)
        slide(i, out);
    return 0;
}
