/* SPDX-License-Identifier: Apache-2.0 */
/* Every code of logcheck.h is the answer to a log that was spoiled in its way. */
#include "evidence/logcheck.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/codec.h"
#include "base/err.h"
#include "evidence/origin.h"
#include "evidence/segment.h"
#include "evidence/tree.h"
#include "tests/lab.h"
#include "tests/tap.h"

#define FIRST "log/segments/00000000000000000000.jsonl"

/* --- a small log: two segments, three checkpoints, a session --- */

static int put_session_event(struct log *log, int64_t n, struct err *err)
{
    CLEANUP(event_release) struct event e = { 0 };
    const struct event *events[] = { &e };

    event_init(&e, EVENT_HEARTBEAT);
    event_add_cstr(&e, "session", "mcp_0123456789abcdef");
    event_add_int(&e, "n", n);
    return log_append(log, events, 1, NULL, err);
}

/* 14 events: chain_start, 4, checkpoint, 4, checkpoint, 4, chain_end, checkpoint. */
static struct lab make_log(void)
{
    struct lab l = lab_make();
    struct log_options o = lab_options(&l);
    struct log *log = NULL;
    struct err err = { 0 };
    int r;

    o.segment_max = 1800;
    o.say = NULL;
    r = log_open(&log, &o, &err);
    for (int i = 0; i < 12 && r == 0; i++) {
        r = i % 3 == 0 ? put_session_event(log, i / 3, &err)
                       : lab_append(log, i, NULL, &err);
        if (r == 0 && (i == 3 || i == 7))
            r = log_checkpoint(log, true, &err);
    }
    if (r < 0 || log_close(log, &err) < 0) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    return l;
}

static void read_file(const struct lab *l, const char *name, struct buf *text)
{
    struct err err = { 0 };

    buf_reset(text);
    if (file_read(lab_path(l, name), text, &err) < 0)
        ok(false, "%s", err.msg);
}

static void write_file(const struct lab *l, const char *name, str text)
{
    struct err err = { 0 };

    if (file_put(lab_path(l, name), text, 0600, &err) < 0)
        ok(false, "%s", err.msg);
}

/* The file again, with line `from` (0-based) twice, absent, or after the next one. */
enum rearrange {
    TWICE,
    ABSENT,
    SWAPPED,
};

static void rearrange(const struct lab *l, const char *name, unsigned at,
                      enum rearrange how)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    CLEANUP(buf_release) struct buf out = { 0 };
    str rest, line, held = { NULL, 0 };

    read_file(l, name, &text);
    rest = buf_str(&text);
    for (unsigned i = 0; str_line(&rest, &line); i++) {
        unsigned times = i != at ? 1 : how == TWICE ? 2 : 0;

        for (unsigned k = 0; k < times; k++) {
            buf_add(&out, line);
            buf_add_char(&out, '\n');
        }
        if (i == at && how == SWAPPED)
            held = line;
        if (i == at + 1 && held.n) {
            buf_add(&out, held);
            buf_add_char(&out, '\n');
        }
    }
    write_file(l, name, buf_str(&out));
}

/* Flip a bit of the byte at `offset`; from the end when negative. */
static void flip(const struct lab *l, const char *name, long offset)
{
    CLEANUP(buf_release) struct buf text = { 0 };

    read_file(l, name, &text);
    if (offset < 0)
        offset += (long)text.n;
    text.p[offset] ^= 4;
    write_file(l, name, buf_str(&text));
}

static void cut(const struct lab *l, const char *name, long bytes)
{
    CLEANUP(buf_release) struct buf text = { 0 };

    read_file(l, name, &text);
    write_file(l, name, str_first(buf_str(&text), text.n - (size_t)bytes));
}

/* The name of the last segment. */
static const char *last_segment(const struct lab *l)
{
    static char name[64];
    CLEANUP(segment_list_release) struct segment_list list = { 0 };
    struct err err = { 0 };

    if (segment_list_read(&list, lab_path(l, "log"), &err) < 0 || list.count < 2)
        ok(false, "two segments: %s", err.msg);
    else
        snprintf(name, sizeof(name), "log/segments/%020llu.jsonl",
                 (unsigned long long)list.first[list.count - 1]);
    return name;
}

/* --- ways to spoil it --- */

static void leave_it(const struct lab *l)
{
    (void)l;
}

static void cut_tail(const struct lab *l)
{
    unlink(lab_path(l, last_segment(l)));
}

static void remove_middle_line(const struct lab *l)
{
    rearrange(l, FIRST, 2, ABSENT);
}

static void swap_lines(const struct lab *l)
{
    rearrange(l, FIRST, 2, SWAPPED);
}

static void double_line(const struct lab *l)
{
    rearrange(l, FIRST, 2, TWICE);
}

/* In the mark of a heartbeat: still canonical, still an event. */
static void change_a_value(const struct lab *l)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    char *at;

    read_file(l, FIRST, &text);
    at = memmem(text.p, text.n, "{\"mark\":1,", 10);
    if (at)
        at[8] = '5';
    write_file(l, FIRST, buf_str(&text));
}

static void break_json(const struct lab *l)
{
    flip(l, FIRST, 0);
}

static void remove_first_segment(const struct lab *l)
{
    unlink(lab_path(l, FIRST));
}

static void cut_first_segment(const struct lab *l)
{
    CLEANUP(buf_release) struct buf text = { 0 };

    read_file(l, FIRST, &text);
    write_file(l, FIRST, str_first(buf_str(&text), text.n - 10));
}

static void drop_last_line_of_first_segment(const struct lab *l)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    size_t n;

    read_file(l, FIRST, &text);
    for (n = text.n - 1; n > 0 && text.p[n - 1] != '\n'; n--)
        continue;
    write_file(l, FIRST, str_first(buf_str(&text), n));
}

static void tear_tail(const struct lab *l)
{
    CLEANUP(buf_release) struct buf text = { 0 };

    read_file(l, last_segment(l), &text);
    buf_add(&text, STR("{\"half\":"));
    write_file(l, last_segment(l), buf_str(&text));
}

static void damage_last_line(const struct lab *l)
{
    cut(l, last_segment(l), 2);
}

/* Everything after a changed event is chained anew: only the signature tells. */
static void rewrite_history(const struct lab *l)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    CLEANUP(buf_release) struct buf out = { 0 };
    CLEANUP(segment_list_release) struct segment_list list = { 0 };
    struct digest last = { { 0 } };
    struct err err = { 0 };
    str rest, line;

    change_a_value(l);
    if (segment_list_read(&list, lab_path(l, "log"), &err) < 0)
        ok(false, "%s", err.msg);
    for (size_t i = 0; i < list.count; i++) {
        char name[64];

        snprintf(name, sizeof(name), "log/segments/%020llu.jsonl",
                 (unsigned long long)list.first[i]);
        read_file(l, name, &text);
        buf_reset(&out);
        for (rest = buf_str(&text); str_line(&rest, &line);) {
            char *prev = memmem(line.p, line.n, "\"prev\":\"", 8);

            digest_hex(prev + 8, &last);
            last = tree_leaf(line);
        }
        write_file(l, name, buf_str(&text));
    }
}

static void flip_signature(const struct lab *l)
{
    flip(l, "log/checkpoint", -20);
}

static void flip_root(const struct lab *l)
{
    flip(l, "log/checkpoints", 40);
}

static void half_note(const struct lab *l)
{
    cut(l, "log/checkpoints", 30);
}

static void sizes_out_of_order(const struct lab *l)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    CLEANUP(buf_release) struct buf out = { 0 };
    str rest, note;

    read_file(l, "log/checkpoints", &text);
    rest = buf_str(&text);
    buf_add(&out, rest);
    if (origin_next_note(&rest, &note))
        buf_add(&out, note);
    buf_add_char(&out, '\n');
    write_file(l, "log/checkpoints", buf_str(&out));
}

static void foreign_checkpoint(const struct lab *l)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct lab other = make_log();

    read_file(&other, "log/checkpoint", &text);
    write_file(l, "log/checkpoint", buf_str(&text));
    lab_remove(&other);
}

/* The right text, the right key name and id, signed with another secret. */
static void other_key(const struct lab *l)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    CLEANUP(buf_release) struct buf out = { 0 };
    uint8_t seed[SEED_SIZE] = { 1, 2, 3 }, line[4 + SIGNATURE_SIZE];
    struct secret_key secret;
    struct origin o;
    struct note n;
    struct err err = { 0 };

    read_file(l, "log/checkpoint", &text);
    if (origin_read(&o, lab_path(l, "log"), &err) < 0 ||
        note_parse(&n, buf_str(&text), &err) < 0 ||
        secret_key_from_seed(&secret, seed, &err) < 0)
        ok(false, "%s", err.msg);
    buf_add(&out, n.text);
    buf_add_char(&out, '\n');
    memcpy(line, o.keys[0].id, 4);
    if (sign(line + 4, &secret, n.text, &err) < 0)
        ok(false, "%s", err.msg);
    buf_printf(&out, "\u2014 %s ", o.name);
    base64_add(&out, line, sizeof(line));
    buf_add_char(&out, '\n');
    write_file(l, "log/checkpoint", buf_str(&out));
}

static void change_tile(const struct lab *l)
{
    flip(l, "log/tile/0/000.p/14", 100);
}

static void change_old_tile(const struct lab *l)
{
    flip(l, "log/tile/0/000.p/5", 0);
}

static void remove_tile(const struct lab *l)
{
    unlink(lab_path(l, "log/tile/0/000.p/14"));
}

static void garble_head(const struct lab *l)
{
    CLEANUP(buf_release) struct buf text = { 0 };

    read_file(l, "log/head", &text);
    memset(text.p, 0x5a, text.n);
    write_file(l, "log/head", buf_str(&text));
}

/* The newest slot is lost: the one before is true, but old. */
static void rewind_head(const struct lab *l)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    char *newest;

    read_file(l, "log/head", &text);
    newest = text.p + 112;
    if (memcmp(newest + 32, "\16\0\0\0\0\0\0\0", 8) != 0)
        newest += 72;
    newest[0] ^= 2;
    write_file(l, "log/head", buf_str(&text));
}

/* Put the log as it was at its second checkpoint, that checkpoint included. */
static void roll_back(const struct lab *l)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    CLEANUP(buf_release) struct buf kept = { 0 };
    CLEANUP(segment_list_release) struct segment_list list = { 0 };
    struct err err = { 0 };
    str rest, note = { NULL, 0 }, line;
    unsigned left = 9;

    read_file(l, "log/checkpoints", &text);
    rest = buf_str(&text);
    if (!origin_next_note(&rest, &note) || !origin_next_note(&rest, &note) ||
        segment_list_read(&list, lab_path(l, "log"), &err) < 0)
        ok(false, "two checkpoints %s", err.msg);
    write_file(l, "log/checkpoint", note);
    write_file(l, "log/checkpoints", str_first(buf_str(&text), text.n - rest.n));
    unlink(lab_path(l, "log/head"));
    unlink(lab_path(l, "log/tile/0/000.p/14"));
    for (size_t i = 0; i < list.count; i++) {
        char name[64];

        snprintf(name, sizeof(name), "log/segments/%020llu.jsonl",
                 (unsigned long long)list.first[i]);
        read_file(l, name, &text);
        buf_reset(&kept);
        for (rest = buf_str(&text); left > 0 && str_line(&rest, &line); left--) {
            buf_add(&kept, line);
            buf_add_char(&kept, '\n');
        }
        if (kept.n)
            write_file(l, name, buf_str(&kept));
        else
            unlink(lab_path(l, name));
    }
}

static void forget_wrongly(const struct lab *l)
{
    char path[700];
    struct origin o;
    struct err err = { 0 };

    if (origin_read(&o, lab_path(l, "log"), &err) < 0)
        ok(false, "%s", err.msg);
    snprintf(path, sizeof(path), "../home/logs/%s", strchr(o.name, '/') + 1);
    flip(l, path, 60);
}

/* A chain as good as any, but a session jumps from n 3 to n 5. */
static void leave_hole(const struct lab *l)
{
    struct err err = { 0 };
    struct log_options o = lab_options(l);
    struct log *log = NULL;

    if (log_open(&log, &o, &err) < 0 || put_session_event(log, 5, &err) < 0 ||
        log_close(log, &err) < 0)
        ok(false, "%s", err.msg);
}

static void exchange_key(const struct lab *l)
{
    uint8_t public_key[PUBLIC_SIZE] = { 9 };
    struct origin o;
    struct note_key k;
    struct err err = { 0 };

    if (origin_read(&o, lab_path(l, "log"), &err) < 0 ||
        note_key_make(&k, str_from(o.name), public_key, &err) < 0 ||
        origin_add_key(&o, lab_path(l, "log"), &k, 0600, &err) < 0)
        ok(false, "%s", err.msg);
}

#define NOTHING (-1)

static const struct {
    const char *what;
    void (*spoil)(const struct lab *l);
    int code;        /* the first finding; NOTHING for a sound log */
    int also;        /* a later one, or NOTHING */
    uint64_t events; /* that could be checked */
} cases[] = {
    { "left as it was", leave_it, NOTHING, NOTHING, 14 },
    { "a cut tail", cut_tail, LOGCHECK_SHORT, NOTHING, 0 },
    { "a removed middle line", remove_middle_line, LOGCHECK_ORDER, LOGCHECK_SHORT, 2 },
    { "swapped lines", swap_lines, LOGCHECK_ORDER, LOGCHECK_SHORT, 2 },
    { "a doubled line", double_line, LOGCHECK_ORDER, LOGCHECK_SHORT, 3 },
    { "a changed value", change_a_value, LOGCHECK_CHAIN, LOGCHECK_SHORT, 3 },
    { "a bit that breaks the JSON", break_json, LOGCHECK_LINE, LOGCHECK_SHORT, 0 },
    { "a history chained anew", rewrite_history, LOGCHECK_ROOT, LOGCHECK_ROLLBACK, 14 },
    { "no first segment", remove_first_segment, LOGCHECK_SEGMENT, LOGCHECK_SHORT, 0 },
    { "a segment cut in the middle", cut_first_segment, LOGCHECK_SEGMENT, LOGCHECK_SHORT,
      0 },
    { "a segment without its last line", drop_last_line_of_first_segment,
      LOGCHECK_SEGMENT, LOGCHECK_SHORT, 0 },
    { "a torn tail", tear_tail, LOGCHECK_TORN, NOTHING, 14 },
    { "a damaged last line", damage_last_line, LOGCHECK_LINE, LOGCHECK_SHORT, 13 },
    { "a changed signature", flip_signature, LOGCHECK_CHECKPOINT, NOTHING, 14 },
    { "a changed root in the list", flip_root, LOGCHECK_CHECKPOINT, NOTHING, 14 },
    { "a checkpoint of another log", foreign_checkpoint, LOGCHECK_CHECKPOINT, NOTHING,
      14 },
    { "a checkpoint signed by another key", other_key, LOGCHECK_CHECKPOINT, NOTHING, 14 },
    { "half a note at the end of the list", half_note, LOGCHECK_CHECKPOINT, NOTHING, 14 },
    { "a smaller checkpoint after a larger", sizes_out_of_order, LOGCHECK_CHECKPOINT,
      NOTHING, 14 },
    { "a changed tile", change_tile, LOGCHECK_TILE, NOTHING, 14 },
    { "a changed tile of an old checkpoint", change_old_tile, LOGCHECK_TILE, NOTHING,
      14 },
    { "a removed tile", remove_tile, LOGCHECK_TILE, NOTHING, 14 },
    { "a garbled head", garble_head, LOGCHECK_HEAD, NOTHING, 14 },
    { "a rewound head", rewind_head, LOGCHECK_HEAD, NOTHING, 14 },
    { "rolled back to an older checkpoint", roll_back, LOGCHECK_ROLLBACK, NOTHING, 9 },
    { "an unusable memory", forget_wrongly, LOGCHECK_ROLLBACK, NOTHING, 14 },
    { "a hole in a session", leave_hole, LOGCHECK_SESSION, NOTHING, 17 },
    { "a key that no event names", exchange_key, LOGCHECK_CHECKPOINT, NOTHING, 14 },
};

static bool has(const struct logcheck *c, int code)
{
    for (unsigned i = 0; i < c->findings && i < LOGCHECK_FINDINGS_MAX; i++) {
        if ((int)c->finding[i].code == code)
            return true;
    }
    return false;
}

static bool as_expected(const struct logcheck *c, size_t i)
{
    if (cases[i].code == NOTHING)
        return c->findings == 0;
    return c->findings > 0 && (int)c->finding[0].code == cases[i].code &&
           (cases[i].also == NOTHING || has(c, cases[i].also)) &&
           c->finding[0].message[0];
}

static void test_cases(void)
{
    static struct logcheck c;

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct lab l = make_log();
        struct logcheck_options options = { .keys = &l.keys };
        struct err err = { 0 };
        int r;

        cases[i].spoil(&l);
        r = logcheck_run(&c, l.audit, &options, &err);
        ok(r == 0 && as_expected(&c, i), "%s: %s %s", cases[i].what,
           c.findings ? logcheck_code_name(c.finding[0].code) : "sound",
           c.findings ? c.finding[0].message : err.msg);
        if (cases[i].events)
            ok(c.events == cases[i].events, "%s: %llu events were checked", cases[i].what,
               (unsigned long long)c.events);
        lab_remove(&l);
    }
}

static const enum logcheck_code mendable[] = { LOGCHECK_TILE, LOGCHECK_HEAD,
                                               LOGCHECK_TORN };

static void test_verdicts(void)
{
    for (size_t i = 0; i < COUNT(mendable); i++) {
        struct logcheck c = { .findings = 1 };

        ok(logcheck_verdict_of(&c) == LOGCHECK_MENDABLE, "%s alone can be mended",
           logcheck_code_name(mendable[i]));
        c.serious = 1;
        ok(logcheck_verdict_of(&c) == LOGCHECK_DAMAGED, "but not with more");
    }
}

/* What a stranger without our keys sees: a rolled back log is sound, and that is why
 * checkpoints are kept elsewhere. */
static void test_without_memory(void)
{
    static struct logcheck c;
    struct lab l = make_log();
    struct logcheck_options options = { .keys = NULL };
    struct err err = { 0 };

    roll_back(&l);
    ok(logcheck_run(&c, l.audit, &options, &err) == 0 && c.findings == 0 &&
           c.signed_size == 9 && !c.remembered,
       "without memory a log rolled back to a checkpoint is a shorter log");
    lab_remove(&l);
}

static void test_no_log(void)
{
    static struct logcheck c;
    struct lab l = lab_make();
    struct logcheck_options options = { .keys = &l.keys };
    struct err err = { 0 };

    ok(logcheck_run(&c, l.audit, &options, &err) < 0 && err.code == ERR_NOTFOUND,
       "no log: %s", err.msg);
    lab_remove(&l);
}

static void test_many_findings(void)
{
    static struct logcheck c;
    CLEANUP(buf_release) struct buf text = { 0 };
    struct lab l = make_log();
    struct logcheck_options options = { .keys = &l.keys };
    struct err err = { 0 };

    for (int i = 0; i < LOGCHECK_FINDINGS_MAX + 1; i++)
        buf_add(&text, STR("not a checkpoint\n\nnot a signature\n\n"));
    write_file(&l, "log/checkpoints", buf_str(&text));
    ok(logcheck_run(&c, l.audit, &options, &err) == 0 &&
           c.findings == LOGCHECK_FINDINGS_MAX + 1,
       "%d findings are kept, one more is counted", LOGCHECK_FINDINGS_MAX);
    lab_remove(&l);
}

static int64_t an_hour_later(void *ctx)
{
    (void)ctx;
    return clock_now(&clock_system) + 3600000;
}

/* The recorder died after it wrote these, and before it signed them. */
static bool leave_unsigned(const struct lab *l, int events, struct err *err)
{
    struct log *log = lab_open(l, err);
    bool good =
        log && lab_append(log, 0, NULL, err) == 0 && log_checkpoint(log, true, err) == 0;

    for (int i = 1; good && i <= events; i++)
        good = lab_append(log, i, NULL, err) == 0;
    if (log)
        log_abandon(log);
    return good;
}

static void test_one_event_is_counted_as_one(void)
{
    static const char *const words[] = { "the last event, of 2",
                                         "the last 2 events, up" };
    static struct logcheck c;
    const struct clock later = { an_hour_later, NULL };

    for (int i = 0; i < 2; i++) {
        struct lab l = lab_make();
        struct logcheck_options options = { .keys = &l.keys, .clock = &later };
        struct err err = { 0 };

        ok(leave_unsigned(&l, i + 1, &err), "%d not signed %s", i + 1, err.msg);
        ok(logcheck_run(&c, l.audit, &options, &err) == 0 && c.findings == 1 &&
               strncmp(c.finding[0].message, words[i], strlen(words[i])) == 0,
           "%s", c.finding[0].message);
        lab_remove(&l);
    }
}

int main(void)
{
    test_cases();
    test_one_event_is_counted_as_one();
    test_verdicts();
    test_without_memory();
    test_no_log();
    test_many_findings();
    return tap_done();
}
