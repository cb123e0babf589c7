/* SPDX-License-Identifier: Apache-2.0 */
/* Every member of every receipt, and the parts of a session. */
#include "evidence/packreceipt.h"

#include "tests/forgebench.h"

/* --- every member of every receipt --- */

/* Another value of the same kind. */
static void other_value(struct buf *out, str raw)
{
    uint64_t number;

    buf_reset(out);
    if (u64_parse(&number, raw))
        buf_add_u64(out, number + 1);
    else if (str_is(raw, "true"))
        buf_add(out, STR("false"));
    else if (str_is(raw, "false"))
        buf_add(out, STR("true"));
    else if (raw.p[0] == '[')
        buf_add(out, STR("[0,1]"));
    else if (str_ends(raw, STR("Z\"")) && raw.n == 26)
        buf_printf(out, STR_FMT "%cZ\"", STR_ARG(str_first(raw, raw.n - 3)),
                   raw.p[raw.n - 3] == '9' ? '0' : raw.p[raw.n - 3] + 1);
    else if (raw.p[0] == '"')
        buf_printf(out, STR_FMT "0\"", STR_ARG(str_first(raw, raw.n - 1)));
    else
        buf_add(out, STR("\"x\""));
}

/* Only the receipt has it; the log has its hash. */
static bool only_in_receipt(size_t k, const char *name)
{
    return strcmp(name, "arguments_content") == 0 ||
           (k != 1 && strcmp(name, "result_content") == 0); /* 1 was denied */
}

/* What is said when the log, too, is made anew to fit. */
static void expect_relogged(const struct bench *b, size_t k, const char *name,
                            const char *what)
{
    char text[100];

    if (only_in_receipt(k, name)) {
        expect(b->dir, NULL, NULL, what);
        return;
    }
    snprintf(text, sizeof(text), "its \"%s\" is another", name);
    if (strcmp(name, "proxy_version") == 0)
        snprintf(text, sizeof(text), "its \"proxy_version\"");
    if (strcmp(name, "previous_pack_root_sha256") == 0)
        snprintf(text, sizeof(text), "part 1 of a session names a part before it");
    expect(b->dir, NULL, text, what);
}

static void forge_receipt_member(struct bench *b, size_t k, const char *name)
{
    CLEANUP(buf_release) struct buf value = { 0 };
    struct forge f;
    char what[120];

    forge_load(&f, b->good.path, b->dir, &b->key);
    other_value(&value, forge_get_line(RECEIPTS(&f), k, name));
    forge_set_line(RECEIPTS(&f), k, name, buf_str(&value));
    forge_sign(&f);
    snprintf(what, sizeof(what), "receipt %zu, %s", k, name);
    expect(b->dir, NULL, strcmp(name, "receipt_id") == 0 ? OTHER_PLACE : CHANGED, what);
    snprintf(what, sizeof(what), "receipt %zu, %s, and a log to fit", k, name);
    forge_relog(&f);
    if (strcmp(name, "type") != 0) /* then it is a receipt that no pack may hold */
        expect_relogged(b, k, name, what);
    forge_release(&f);
}

static void test_no_member_of_a_receipt_can_be_changed(void)
{
    struct bench b;
    struct forge f;

    bench_open(&b);
    forge_load(&f, b.good.path, b.dir, &b.key);
    for (size_t k = 0; k < forge_lines(RECEIPTS(&f)); k++) {
        CLEANUP(json_release) struct json j = { 0 };

        forge_parse(&j, forge_line(RECEIPTS(&f), k));
        json_each (&j, JSON_ROOT, at) {
            str raw = json_raw(&j, at);
            char name[64];

            snprintf(name, sizeof(name), STR_FMT, STR_ARG(str_of(raw.p + 1, raw.n - 2)));
            forge_receipt_member(&b, k, name);
        }
    }
    forge_release(&f);
    recording_close(&b.r);
}

/* --- parts --- */

/* A session in three parts, with a call open over both cuts, and another session. */
struct three {
    struct recording r;
    struct pack_result part[3], other;
    struct secret_key key;
    char dir[FILE_PATH_MAX];
};

static void three_open(struct three *t)
{
    struct session *s = recording_session(&t->r, "guard");
    struct session *o = recording_another(&t->r, "guard");
    struct open_call *spanning =
        recording_call(&t->r, s, STR("9"), STR("slow"), STR("{}"));

    allow(s, spanning);
    good_call(&t->r, s, STR("1"), (str){ NULL, 0 });
    t->part[0] = cut_part(&t->r, s, NULL);
    good_call(&t->r, o, STR("1"), (str){ NULL, 0 });
    good_call(&t->r, s, STR("2"), STR("{\"x\":2}"));
    denied_call(&t->r, s, STR("3"));
    t->part[1] = cut_part(&t->r, s, t->part[0].root);
    recording_answer(&t->r, s, spanning, false, STR("[]"));
    session_release(s, spanning);
    t->part[2] = finish(&t->r, s, t->part[1].root);
    t->other = finish(&t->r, o, NULL);
    t->key = key_of(&t->r);
    snprintf(t->dir, sizeof(t->dir), "%s/forged", t->r.root);
    session_free(s);
    session_free(o);
}

/* Verify these directories one after the other; the last must say `text`. */
static void expect_parts(const char *const *dirs, size_t count, const char *text,
                         const char *what)
{
    CLEANUP(packlog_release) struct packlog parts = { .parts = 0 };

    for (size_t i = 0; i + 1 < count; i++) {
        struct verify_result v = verdict_on(dirs[i], &parts);

        if (v.verdict != VERIFY_SOUND)
            show(&v);
        ok(v.verdict == VERIFY_SOUND, "%s: %zu is sound", what, i + 1);
        verify_result_release(&v);
    }
    expect(dirs[count - 1], &parts, text, what);
}

static void test_parts_are_checked_together(void)
{
    struct three t;

    three_open(&t);
    {
        const char *one = t.part[0].path, *two = t.part[1].path, *three = t.part[2].path;
        const struct {
            const char *what, *says;
            const char *dirs[3];
            size_t count;
        } rows[] = {
            { "all three in order", NULL, { one, two, three }, 3 },
            { "the last two", NULL, { two, three }, 2 },
            { "the middle one missing", "was expected", { one, three }, 2 },
            { "one twice", "was expected", { one, one }, 2 },
            { "in disorder", "was expected", { two, one }, 2 },
            { "another session", "is of another session", { one, t.other.path }, 2 },
        };

        for (size_t i = 0; i < COUNT(rows); i++)
            expect_parts(rows[i].dirs, rows[i].count, rows[i].says, rows[i].what);
    }
    recording_close(&t.r);
}

static void test_a_later_part_alone_says_what_it_cannot_show(void)
{
    struct three t;

    three_open(&t);
    for (int i = 0; i < 3; i++) {
        struct verify_result v = verdict_on(t.part[i].path, NULL);

        ok(v.verdict == VERIFY_SOUND &&
               warns(&v, "calls that span the cut are not closed") == (i > 0),
           "part %d alone", i + 1);
        verify_result_release(&v);
    }
    recording_close(&t.r);
}

static void previous_root(struct forge *f)
{
    forge_set_line(RECEIPTS(f), forge_lines(RECEIPTS(f)) - 1, "previous_pack_root_sha256",
                   STR("\"0000000000000000000000000000000000000000000000000000000000000"
                       "000\""));
}

static void rebuilt_receipt(struct forge *f)
{
    forge_add_line(RECEIPTS(f), 0, "rebuilt", STR("true"));
    forge_set_line(RECEIPTS(f), 0, "arguments_content", STR("null"));
    forge_set_line(RECEIPTS(f), 0, "result_content", STR("null"));
    forge_set_line(RECEIPTS(f), 0, "tool_name", STR("\"harmless\""));
}

static void rebuilt_metadata(struct forge *f)
{
    size_t last = forge_lines(RECEIPTS(f)) - 1;

    forge_add_line(RECEIPTS(f), last, "rebuilt", STR("true"));
    forge_set_line(RECEIPTS(f), last, "previous_pack_root_sha256", STR("null"));
    forge_set_line(RECEIPTS(f), last, "part", STR("3"));
}

static const struct {
    const char *what;
    void (*forge)(struct forge *f);
    bool relog;    /* the log is made to fit */
    bool together; /* after part 1 */
    const char *says;
} part_forgeries[] = {
    { "another pack before", previous_root, false, false, CHANGED },
    { "another pack before", previous_root, false, true, CHANGED },
    { "another pack before, and a log to fit", previous_root, true, true,
      "this part does not follow the one before" },
    { "a receipt that says it was rebuilt", rebuilt_receipt, false, false,
      "its \"tool_name\" is another" },
    { "a receipt that says it was rebuilt", rebuilt_receipt, false, true,
      "its \"tool_name\" is another" },
    { "metadata that say they were rebuilt", rebuilt_metadata, false, true,
      "its \"part\" is another" },
    { "the request left out", first_event_left_out, false, false, NOT_IN_LOG },
    { "the request left out, and a log to fit", first_event_left_out, true, false,
      "a receipt is of a call whose first events were left out of this part" },
    { "the request left out, and a log to fit", first_event_left_out, true, true,
      "was expected" },
    { "an event left out", event_left_out, true, false, LEFT_OUT },
    { "the last event left out", last_event_left_out, true, false,
      "has no event in the log" },
};

static void test_no_part_can_be_changed(void)
{
    struct three t;

    three_open(&t);
    for (size_t i = 0; i < COUNT(part_forgeries); i++) {
        const char *dirs[] = { t.part[0].path, t.dir };
        bool together = part_forgeries[i].together;
        struct forge f;

        forge_load(&f, t.part[1].path, t.dir, &t.key);
        part_forgeries[i].forge(&f);
        if (part_forgeries[i].relog)
            forge_relog(&f);
        else
            forge_sign(&f);
        expect_parts(dirs + !together, 1 + together, part_forgeries[i].says,
                     part_forgeries[i].what);
        forge_release(&f);
    }
    recording_close(&t.r);
}

static void test_a_pack_says_which_part_it_is(void)
{
    struct three t;
    struct packlog_place place;

    three_open(&t);
    for (int i = 0; i < 3; i++)
        ok(packlog_peek(t.part[i].path, &place) && place.part == (uint64_t)i + 1 &&
               place.final == (i == 2) && strlen(place.session) == 20,
           "part %d", i + 1);
    ok(!packlog_peek("tests/data/good/minimal", &place), "a pack without parts");
    ok(!packlog_peek("/dev/null", &place), "no directory");
    ok(!packlog_peek("tests", &place), "no pack");
    recording_close(&t.r);
}

int main(void)
{
    test_no_member_of_a_receipt_can_be_changed();
    test_parts_are_checked_together();
    test_a_later_part_alone_says_what_it_cannot_show();
    test_no_part_can_be_changed();
    test_a_pack_says_which_part_it_is();
    return tap_done();
}
