/* SPDX-License-Identifier: Apache-2.0 */
/* The hash here is the text itself, as far as it fits: what is hashed can be read. */
#include "policy/pin.h"

#include "base/err.h"
#include "tests/tap.h"

static void finish(void *ctx, uint8_t out[static PIN_HASH_SIZE])
{
    struct buf *b = ctx;
    uint64_t h = 14695981039346656037u;

    for (size_t i = 0; i < b->n; i++)
        h = (h ^ (unsigned char)b->p[i]) * 1099511628211u;
    memset(out, 0, PIN_HASH_SIZE);
    memcpy(out, &h, sizeof(h));
    buf_reset(b);
}

static int read_tool(struct pin *pin, const char *tool, struct buf *text, struct err *err)
{
    CLEANUP(buf_release) struct buf hashed = { 0 };
    CLEANUP(json_release) struct json j = { 0 };
    struct pin_hasher hasher = { buf_sink(&hashed), finish, &hashed };

    if (json_parse(&j, str_from(tool), NULL, err) < 0)
        return -1;
    return pin_of(pin, &j, JSON_ROOT, &hasher, text, err);
}

static enum pin_state check(struct pins *p, const char *tool, bool put, str *was)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    const struct pin *old = NULL;
    struct err err = { 0 };
    struct pin pin;
    enum pin_state state;

    if (read_tool(&pin, tool, &text, &err) < 0) {
        ok(false, "%s", err.msg);
        return PIN_NEW;
    }
    state = pins_check(p, &pin, &old);
    *was = old ? old->name : (str){ NULL, 0 };
    if (put && pins_put(p, &pin, &err) < 0)
        ok(false, "%s", err.msg);
    return state;
}

static void test_states(void)
{
    struct pins p = { 0 };
    str was;

    ok(check(&p, "{\"name\":\"b\",\"description\":\"x\"}", true, &was) == PIN_NEW, "new");
    ok(check(&p, "{\"name\":\"a\",\"description\":\"y\"}", true, &was) == PIN_NEW,
       "another");
    ok(p.count == 2 && str_is(p.at[0].name, "a"), "by name");
    ok(check(&p, "{ \"description\" : \"\\u0078\", \"n\\u0061me\" : \"b\" }", false,
             &was) == PIN_SAME,
       "the same in other letters");
    ok(check(&p, "{\"name\":\"b\",\"description\":\"z\"}", false, &was) == PIN_CHANGED &&
           str_is(was, "b"),
       "a description that changed");
    ok(check(&p, "{\"name\":\"b\",\"description\":\"z\"}", false, &was) == PIN_CHANGED,
       "and stays changed");
    ok(check(&p, "{\"name\":\"b\",\"description\":\"x\",\"annotations\":{}}", false,
             &was) == PIN_CHANGED,
       "a member more");
    ok(check(&p, "{\"name\":\"c\",\"description\":\"y\"}", false, &was) == PIN_RENAMED &&
           str_is(was, "a"),
       "another name for the same");
    ok(check(&p, "{\"name\":\"b\",\"description\":\"z\"}", true, &was) == PIN_CHANGED &&
           check(&p, "{\"name\":\"b\",\"description\":\"z\"}", false, &was) == PIN_SAME,
       "accepted");
    pins_unsee(&p);
    check(&p, "{\"name\":\"b\",\"description\":\"z\"}", false, &was);
    ok(!pins_find(&p, STR("a"))->seen && pins_find(&p, STR("b"))->seen &&
           !pins_find(&p, STR("zz")),
       "what was not seen is known");
    pins_release(&p);
}

static void test_bad_tools(void)
{
    static const char *const tools[] = {
        "{}",
        "[]",
        "{\"name\":1}",
        "{\"name\":\"a\",\"name\":\"b\"}",
        "{\"name\":\"a\",\"x\":1e999}",
        "{\"name\":\"\\ud800\"}",
    };

    for (size_t i = 0; i < COUNT(tools); i++) {
        CLEANUP(buf_release) struct buf text = { 0 };
        struct err err = { 0 };
        struct pin pin;

        ok(read_tool(&pin, tools[i], &text, &err) < 0 && err.code == ERR_FORMAT, "%s: %s",
           tools[i], err.msg);
    }
}

static void test_file(void)
{
    CLEANUP(buf_release) struct buf first = { 0 }, second = { 0 };
    struct pins p = { 0 }, q = { 0 };
    struct err err = { 0 };
    str was;

    check(&p, "{\"name\":\"q\\\"\\u0001\"}", true, &was);
    check(&p, "{\"name\":\"\xc3\xa9\"}", true, &was);
    check(&p, "{\"name\":\"\"}", true, &was);
    pins_write(&p, &first);
    ok(pins_read(&q, buf_str(&first), &err) == 0 && q.count == 3, "is read again %s",
       err.msg);
    pins_write(&q, &second);
    ok(str_equal(buf_str(&first), buf_str(&second)), "and is the same");
    ok(!q.at[0].seen, "nothing of it is seen yet");
    pins_release(&p);
    pins_release(&q);
}

static void test_bad_files(void)
{
    static const char *const files[] = {
        "",
        "[]",
        "{}",
        "{\"pins\":{},\"version\":2}",
        "{\"pins\":[],\"version\":1}",
        "{\"pins\":{},\"version\":1,\"x\":1}",
        "{\"pins\":{\"a\":1},\"version\":1}",
        "{\"pins\":{\"a\":{}},\"version\":1}",
        "{\"pins\":{\"a\":{\"body\":\"00\",\"hash\":\"00\"}},\"version\":1}",
        "{\"pins\":{\"a\":{},\"a\":{}},\"version\":1}",
    };
    struct pins p = { 0 };
    str was;

    check(&p, "{\"name\":\"a\"}", true, &was);
    for (size_t i = 0; i < COUNT(files); i++) {
        struct err err = { 0 };

        ok(pins_read(&p, str_from(files[i]), &err) < 0 && err.code == ERR_FORMAT &&
               p.count == 1,
           "'%s': %s", files[i], err.msg);
    }
    pins_release(&p);
}

int main(void)
{
    test_states();
    test_bad_tools();
    test_file();
    test_bad_files();
    return tap_done();
}
