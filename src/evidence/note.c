/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/note.h"

#include "base/codec.h"
#include "base/err.h"
#include "base/utf8.h"

#define TYPE_ED25519 1
#define ID_SIZE      4
#define DASH         "\xe2\x80\x94 " /* U+2014, space */

/* What Unicode calls white space; other implementations end a name there. */
static bool is_space(uint32_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

static bool is_name(str name)
{
    if (name.n == 0)
        return false;
    while (name.n) {
        uint32_t c;
        size_t n = utf8_next(name, &c);

        if (n == 0 || c == '+' || is_space(c))
            return false;
        name = str_skip(name, n);
    }
    return true;
}

/* U+0000 to U+001F, U+007F to U+009F, in valid UTF-8. */
static bool has_control(str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c < 0x20 || c == 0x7f)
            return true;
        if (c == 0xc2 && i + 1 < s.n && (unsigned char)s.p[i + 1] < 0xa0)
            return true;
    }
    return false;
}

static void set_id(struct note_key *k)
{
    static const char newline_and_type[] = { '\n', TYPE_ED25519 };
    const str parts[] = { str_from(k->name),
                          str_of(newline_and_type, sizeof(newline_and_type)),
                          str_of(k->public_key, PUBLIC_SIZE) };
    struct digest d = digest_of_parts(parts, COUNT(parts));

    memcpy(k->id, d.bytes, sizeof(k->id));
}

int note_key_make(struct note_key *k, str name,
                  const uint8_t public_key[static PUBLIC_SIZE], struct err *err)
{
    struct note_key made = { 0 };

    if (name.n > NOTE_NAME_MAX)
        return err_set(err, ERR_LIMIT, "a key name is longer than %d bytes",
                       NOTE_NAME_MAX);
    if (!is_name(name) || has_control(name))
        return err_set(
            err, ERR_FORMAT,
            "a key name is empty or has a space, a '+' or a control character");
    memcpy(made.name, name.p, name.n);
    memcpy(made.public_key, public_key, PUBLIC_SIZE);
    set_id(&made);
    *k = made;
    return 0;
}

/* The bytes up to the first `c`, which goes too; false when there is none. */
static bool take_until(str *rest, char c, str *out)
{
    const char *at = rest->n ? memchr(rest->p, c, rest->n) : NULL;

    if (!at)
        return false;
    *out = str_first(*rest, (size_t)(at - rest->p));
    *rest = str_skip(*rest, out->n + 1);
    return true;
}

int note_key_parse(struct note_key *k, str vkey, struct err *err)
{
    uint8_t typed[1 + PUBLIC_SIZE], id[ID_SIZE];
    struct note_key made;
    str name, hex;

    if (!take_until(&vkey, '+', &name) || !take_until(&vkey, '+', &hex) ||
        !hex_decode(id, sizeof(id), hex))
        return err_set(err, ERR_FORMAT, "a verifier key reads <name>+<8 hex>+<base64>");
    if (!base64_decode_exact(typed, sizeof(typed), vkey) || typed[0] != TYPE_ED25519)
        return err_set(err, ERR_FORMAT, "a verifier key holds no Ed25519 key in base64");
    if (note_key_make(&made, name, typed + 1, err) < 0)
        return -1;
    if (memcmp(made.id, id, sizeof(id)) != 0)
        return err_set(err, ERR_FORMAT,
                       "a verifier key's id does not belong to its name and key");
    *k = made;
    return 0;
}

void note_key_add(struct buf *out, const struct note_key *k)
{
    uint8_t typed[1 + PUBLIC_SIZE] = { TYPE_ED25519 };

    memcpy(typed + 1, k->public_key, PUBLIC_SIZE);
    buf_add(out, str_from(k->name));
    buf_add_char(out, '+');
    hex_add(out, k->id, sizeof(k->id));
    buf_add_char(out, '+');
    base64_add(out, typed, sizeof(typed));
}

bool note_key_equal(const struct note_key *a, const struct note_key *b)
{
    return str_equal(str_from(a->name), str_from(b->name)) &&
           memcmp(a->public_key, b->public_key, PUBLIC_SIZE) == 0;
}

/* One signature line without its newline. */
struct signature {
    str name;
    str base64;
    size_t bytes; /* that base64 stands for */
};

static bool parse_signature(struct signature *s, str line)
{
    if (!str_starts(line, STR(DASH)))
        return false;
    line = str_skip(line, sizeof(DASH) - 1);
    if (!take_until(&line, ' ', &s->name) || !is_name(s->name))
        return false;
    s->base64 = line;
    return base64_length(&s->bytes, line) && s->bytes > ID_SIZE;
}

static int check_signatures(str lines, struct err *err)
{
    struct signature s;
    unsigned count = 0;
    str line;

    while (str_line(&lines, &line)) {
        if (!parse_signature(&s, line))
            return err_set(err, ERR_FORMAT, "line %u of a note's signatures is malformed",
                           count + 1);
        if (++count > NOTE_SIGNATURES_MAX)
            return err_set(err, ERR_LIMIT, "a note has more than %d signatures",
                           NOTE_SIGNATURES_MAX);
    }
    if (count == 0 || lines.n)
        return err_set(err, ERR_FORMAT, "a note does not end in a signature line");
    return 0;
}

/* UTF-8 without control characters below U+0020 except newline. */
static bool is_text(str bytes)
{
    for (size_t i = 0; i < bytes.n; i++) {
        if ((unsigned char)bytes.p[i] < 0x20 && bytes.p[i] != '\n')
            return false;
    }
    return utf8_valid(bytes);
}

/* Where the newline of the last empty line stands; 0 when there is none. */
static size_t last_blank_line(str bytes)
{
    size_t at = bytes.n ? bytes.n - 1 : 0;

    while (at > 0 && (bytes.p[at] != '\n' || bytes.p[at - 1] != '\n'))
        at--;
    return at;
}

int note_parse(struct note *n, str bytes, struct err *err)
{
    struct note parsed;
    size_t blank;

    if (bytes.n > NOTE_MAX)
        return err_set(err, ERR_LIMIT, "a note is larger than %zu bytes", NOTE_MAX);
    if (!is_text(bytes))
        return err_set(err, ERR_FORMAT,
                       "a note is not UTF-8 text without control characters");
    blank = last_blank_line(bytes);
    if (blank == 0)
        return err_set(err, ERR_FORMAT,
                       "a note has no blank line between its text and its signatures");
    parsed.text = str_first(bytes, blank);
    parsed.signatures = str_skip(bytes, blank + 1);
    if (check_signatures(parsed.signatures, err) < 0)
        return -1;
    *n = parsed;
    return 0;
}

static bool verifies(const struct signature *s, const struct note_key *k, str text)
{
    uint8_t bytes[ID_SIZE + SIGNATURE_SIZE];

    return base64_decode_exact(bytes, sizeof(bytes), s->base64) &&
           signature_valid(bytes + ID_SIZE, k->public_key, text);
}

/* Whether a line says that it is by this key. */
static bool names(const struct signature *s, const struct note_key *k)
{
    uint8_t start[6]; /* the first two groups of base64 */
    size_t n;

    return str_is(s->name, k->name) &&
           base64_decode(start, sizeof(start), &n, str_first(s->base64, 8)) &&
           memcmp(start, k->id, ID_SIZE) == 0;
}

enum note_verdict note_verify(const struct note *n, const struct note_key *keys,
                              size_t count)
{
    enum note_verdict verdict = NOTE_UNSIGNED;
    str rest = n->signatures, line;
    struct signature s;

    while (str_line(&rest, &line)) {
        if (!parse_signature(&s, line))
            return NOTE_FORGED; /* not a parsed note */
        for (size_t i = 0; i < count; i++) {
            if (!names(&s, &keys[i]))
                continue;
            if (!verifies(&s, &keys[i], n->text))
                return NOTE_FORGED;
            verdict = NOTE_SIGNED;
        }
    }
    return verdict;
}

int note_sign(struct buf *out, str text, const struct note_key *k,
              const struct secret_key *secret, struct err *err)
{
    uint8_t bytes[ID_SIZE + SIGNATURE_SIZE];

    if (!str_ends(text, STR("\n")) || !is_text(text))
        return err_set(err, ERR_REFUSED, "only lines of text can be signed as a note");
    if (memcmp(k->public_key, secret->public_key, PUBLIC_SIZE) != 0)
        return err_set(err, ERR_REFUSED, "the signing key is not that of '%s'", k->name);
    memcpy(bytes, k->id, ID_SIZE);
    if (sign(bytes + ID_SIZE, secret, text, err) < 0)
        return -1;
    buf_add(out, STR(DASH));
    buf_add(out, str_from(k->name));
    buf_add_char(out, ' ');
    base64_add(out, bytes, sizeof(bytes));
    buf_add_char(out, '\n');
    return buf_check(out, "a note", err);
}
