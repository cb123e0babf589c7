/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/checkpoint.h"

#include "base/codec.h"
#include "base/err.h"
#include "base/utf8.h"
#include "evidence/tree.h"

static bool is_origin(str line)
{
    for (size_t i = 0; i < line.n; i++) {
        if ((unsigned char)line.p[i] < 0x20)
            return false;
    }
    return line.n > 0 && utf8_valid(line);
}

static int parse_origin(struct checkpoint *c, str *text, struct err *err)
{
    str line;

    if (!str_line(text, &line) || !is_origin(line))
        return err_set(err, ERR_FORMAT, "a checkpoint begins with the log's origin");
    if (line.n > NOTE_NAME_MAX)
        return err_set(err, ERR_LIMIT, "a checkpoint's origin is longer than %d bytes",
                       NOTE_NAME_MAX);
    memcpy(c->origin, line.p, line.n);
    return 0;
}

static int parse_tree(struct checkpoint *c, str *text, struct err *err)
{
    struct digest empty = tree_empty();
    str line;

    if (!str_line(text, &line) || !u64_parse(&c->size, line) ||
        c->size > CHECKPOINT_SIZE_MAX)
        return err_set(err, ERR_FORMAT, "a checkpoint's size is not a plain number");
    if (!str_line(text, &line) || !base64_decode_exact(c->root.bytes, DIGEST_SIZE, line))
        return err_set(err, ERR_FORMAT, "a checkpoint's root is not 32 bytes in base64");
    if (c->size == 0 && !digest_equal(&c->root, &empty))
        return err_set(err, ERR_FORMAT, "a checkpoint's empty tree has a wrong root");
    return 0;
}

int checkpoint_parse(struct checkpoint *c, str text, struct err *err)
{
    struct checkpoint parsed = { 0 };
    str line;

    if (parse_origin(&parsed, &text, err) < 0 || parse_tree(&parsed, &text, err) < 0)
        return -1;
    while (str_line(&text, &line)) {
        if (line.n == 0)
            return err_set(err, ERR_FORMAT, "a checkpoint has an empty line");
    }
    if (text.n)
        return err_set(err, ERR_FORMAT, "a checkpoint's last line does not end");
    *c = parsed;
    return 0;
}

void checkpoint_add(struct buf *out, const struct checkpoint *c)
{
    buf_add(out, str_from(c->origin));
    buf_add_char(out, '\n');
    buf_add_u64(out, c->size);
    buf_add_char(out, '\n');
    base64_add(out, c->root.bytes, DIGEST_SIZE);
    buf_add_char(out, '\n');
}

int checkpoint_open(struct checkpoint *c, enum note_verdict *verdict, str bytes,
                    const struct note_key *keys, size_t count, struct err *err)
{
    struct checkpoint parsed;
    struct note note;

    if (note_parse(&note, bytes, err) < 0 ||
        checkpoint_parse(&parsed, note.text, err) < 0)
        return -1;
    *verdict = note_verify(&note, keys, count);
    if (*verdict == NOTE_SIGNED)
        *c = parsed;
    return 0;
}
