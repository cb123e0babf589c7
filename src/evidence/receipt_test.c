/* SPDX-License-Identifier: Apache-2.0 */
/* Against tests/data/receipts.txt, which tests/data/make_receipts.py computed. */
#include "evidence/receipt.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/codec.h"
#include "base/err.h"
#include "base/file.h"
#include "evidence/history.h"
#include "tests/tap.h"
#include "json/jcs.h"

#define VECTORS "tests/data/receipts.txt"
#define POLICY  "sha256:4791aaa760a131484e3c971c4f9b171ad1ef2f6fb9c2e4858fdad6d8fc8f6c0f"
#define NOTHING ((str){ NULL, 0 })

static struct receipt_session session(void)
{
    return (struct receipt_session){ .id = STR("mcp_00112233445566aa"),
                                     .server_id = STR("srv \xc3\xa9"),
                                     .transport = STR("stdio"),
                                     .client_transport = STR("stdio"),
                                     .profile = STR("guard"),
                                     .proxy_version = STR("9.9.9"),
                                     .started_at = 1773574200000 };
}

/* The next field of a line that tabs divide; "-" is nothing. */
static str field(str *rest)
{
    const char *tab = rest->n ? memchr(rest->p, '\t', rest->n) : NULL;
    str f = str_first(*rest, tab ? (size_t)(tab - rest->p) : rest->n);

    *rest = str_skip(*rest, f.n + 1);
    return str_is(f, "-") ? NOTHING : f;
}

/* One vector file being walked. */
struct run {
    char name[512];
    struct call call;
    struct json json;
    struct event_view view; /* of the newest event */
    struct receipt_line line;
    int64_t last_ts;
};

static void compose_vector_receipt(struct run *r, str text)
{
    const struct receipt_session s = session();
    struct receipt_place place = { .session = &s, .ts = r->view.ts };
    struct receipt receipt;
    struct err err = { 0 };
    uint64_t seq = 0;

    place.receipt_id = field(&text);
    place.parent = field(&text);
    u64_parse(&seq, field(&text));
    place.seq = seq;
    place.arguments_content = field(&text);
    place.result_content = field(&text);
    receipt_of_call(&receipt, &r->call, &place);
    if (receipt_compose(&r->line, &receipt, &err) < 0)
        printf("# %s\n", err.msg);
    call_fold(&r->call, &r->view);
}

static void compose_vector_metadata(struct run *r, bool final)
{
    struct receipt_session s = session();
    struct metadata m = { .session = &s,
                          .receipt_id = STR("smd_00000000000000aa"),
                          .timestamp = 1773574260000,
                          .seq = 5,
                          .counts = { .requests = 9,
                                      .calls = 4,
                                      .denied = 1,
                                      .lost = 2,
                                      .interventions = 3,
                                      .received = 6,
                                      .sent = 5,
                                      .events = 77 },
                          .ended_at = RECEIPT_NO_TIME,
                          .part = 1,
                          .log_from = 10,
                          .log_to = 200,
                          .calls_open = 3 };
    struct err err = { 0 };

    if (final) {
        s.policy_hash = STR(POLICY);
        m.complete = m.final = true;
        m.reason = STR("client_eof");
        m.ended_at = 1773574259999;
        m.part = 2;
        m.calls_open = 0;
        m.previous_pack_root_sha256 =
            STR("abababababababababababababababababababababababababababababababab");
    }
    if (metadata_compose(&r->line, &m, &err) < 0)
        printf("# %s\n", err.msg);
}

/* The receipt's own event comes before its R line: it is folded after the receipt. */
static void take_event(struct run *r, str line)
{
    struct err err = { 0 };

    if (event_parse(&r->view, &r->json, line, &err) < 0)
        ok(false, "%s: %s", r->name, err.msg);
    else if (r->view.type != EVENT_RECEIPT)
        call_fold(&r->call, &r->view);
}

static void check_line(struct run *r, str want)
{
    if (!ok(str_equal(r->line.line, want), "%s: the line", r->name))
        printf("# want %.*s\n# have %.*s\n", STR_ARG(want), STR_ARG(r->line.line));
}

static void check_hash(struct run *r, str want)
{
    CLEANUP(json_release) struct json json = { 0 };
    struct digest wanted = { { 0 } }, read = { { 0 } };
    struct err err = { 0 };

    digest_from_hex(&wanted, want);
    ok(digest_equal(&wanted, &r->line.hash), "%s: its hash", r->name);
    ok(json_parse(&json, r->line.line, NULL, &err) == 0 &&
           receipt_hash(&read, &json, &err) == 0 && digest_equal(&read, &wanted),
       "%s: the same hash when the line is read", r->name);
}

static void check_content(str text)
{
    CLEANUP(json_release) struct json json = { 0 };
    CLEANUP(buf_release) struct buf out = { .max = RECEIPT_MAX };
    struct err err = { 0 };
    str source = field(&text);
    bool good = json_parse(&json, source, NULL, &err) == 0 &&
                content_add(&out, &json, JSON_ROOT) && str_equal(buf_str(&out), text);

    ok(good, "content of %.60s", buf_cstr(&out));
}

static void take_line(struct run *r, str line)
{
    str rest = str_skip(line, 2);

    switch (line.p[0]) {
    case 'C':
        call_reset(&r->call);
        snprintf(r->name, sizeof(r->name), "%.*s", STR_ARG(str_first(rest, 100)));
        break;
    case 'E':
        take_event(r, rest);
        break;
    case 'R':
        compose_vector_receipt(r, rest);
        break;
    case 'M':
        snprintf(r->name, sizeof(r->name), "metadata, %.*s", STR_ARG(rest));
        compose_vector_metadata(r, str_is(rest, "final"));
        break;
    case 'L':
        check_line(r, rest);
        break;
    case 'H':
        check_hash(r, rest);
        break;
    case 'K':
        check_content(rest);
        break;
    default:
        ok(false, "unknown line in " VECTORS);
    }
}

static void test_receipts_are_what_other_code_computes(void)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct run r = { 0 };
    struct err err = { 0 };
    str rest, line;

    if (!ok(file_read(VECTORS, &text, &err) == 0, "read the vectors: %s", err.msg))
        return;
    rest = buf_str(&text);
    while (str_line(&rest, &line))
        take_line(&r, line);
    call_release(&r.call);
    json_release(&r.json);
    receipt_line_release(&r.line);
}

static char *filled(size_t n, char c)
{
    char *p = malloc(n);

    if (!p)
        exit(1);
    memset(p, c, n);
    return p;
}

static void test_content_up_to_its_limit(void)
{
    char *text = filled(CONTENT_MAX, 'x');
    CLEANUP(buf_release) struct buf out = { .max = RECEIPT_MAX };

    ok(content_add_raw(&out, str_of(text, CONTENT_MAX - 2)) && out.n == CONTENT_MAX,
       "content of CONTENT_MAX bytes is kept");
    buf_reset(&out);
    ok(!content_add_raw(&out, str_of(text, CONTENT_MAX - 1)) && out.n == 0,
       "one byte more is not, and leaves nothing");
    ok(!content_add_raw(&out, STR("\xff")) && out.n == 0, "nor is what is no UTF-8");
    free(text);
}

static void test_a_receipt_up_to_its_limit(void)
{
    const struct receipt_session s = session();
    struct receipt r = { .session = &s, .outcome = "forwarded" };
    CLEANUP(receipt_line_release) struct receipt_line line = { 0 };
    char *text = filled(RECEIPT_MAX, '1');
    struct err err = { 0 };
    size_t frame;

    r.arguments_content = STR("1");
    ok(receipt_compose(&line, &r, &err) == 0, "a small one");
    frame = line.line.n - 1;
    r.arguments_content = str_of(text, RECEIPT_MAX - frame);
    ok(receipt_compose(&line, &r, &err) == 0 && line.line.n == RECEIPT_MAX,
       "a line of RECEIPT_MAX bytes");
    r.arguments_content = str_of(text, RECEIPT_MAX - frame + 1);
    ok(receipt_compose(&line, &r, &err) < 0 && err.code == ERR_LIMIT, "one more: %s",
       err.msg);
    free(text);
}

static void test_hashes_of_values(void)
{
    static const struct {
        const char *json, *hash;
        bool raw;
    } cases[] = {
        { "{}", "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
          false },
        { "null", "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b",
          false },
        { " { \"city\" : \"Z\\u00fcrich\" } ",
          "c7d1343095f01d29a6a2d389daa794717f5da34c32278aa244251fe2d4fca314", false },
        { "{\"a\":1,\"a\":2}", /* printf '{"a":1,"a":2}' | sha256sum */
          "1c53ee0df7b12fd4d65b976120c7fa6b847dc41dffd7f0331c3237a1ceab1756", true },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        CLEANUP(json_release) struct json json = { 0 };
        struct content_hash h = { 0 };
        struct err err = { 0 };
        const char *tag = cases[i].raw ? "raw-sha256:" : "sha256:";

        ok(json_parse(&json, str_from(cases[i].json), NULL, &err) == 0 &&
               content_hash(&h, &json, JSON_ROOT, NOTHING, &err) == 0 &&
               str_starts(str_from(h.text), str_from(tag)) &&
               strcmp(h.text + strlen(tag), cases[i].hash) == 0 &&
               (h.reason[0] != '\0') == cases[i].raw,
           "%s is %s %s", cases[i].json, h.text, h.reason);
    }
}

static void test_hashes_with_a_pepper(void)
{
    /* printf '{"a":1}' | openssl dgst -sha256 -hmac pepper */
    static const char want[] =
        "hmac-sha256:d094cba166cd7dd5f24620e4619e2967b899634cf663916f462dc731b7ed1cfb";
    CLEANUP(json_release) struct json json = { 0 };
    struct content_hash h = { 0 };
    struct err err = { 0 };

    ok(json_parse(&json, STR("{ \"a\": 1 }"), NULL, &err) == 0 &&
           content_hash(&h, &json, JSON_ROOT, STR("pepper"), &err) == 0 &&
           strcmp(h.text, want) == 0,
       "keyed: %s", h.text);
}

int main(void)
{
    test_receipts_are_what_other_code_computes();
    test_content_up_to_its_limit();
    test_a_receipt_up_to_its_limit();
    test_hashes_of_values();
    test_hashes_with_a_pepper();
    return tap_done();
}
