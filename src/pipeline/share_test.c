/* SPDX-License-Identifier: Apache-2.0 */
/* The lives of a shared server, and its limits. */
#include "pipeline/share_line.h"
#include "pipeline/splice.h"
#include "tests/share_lab.h"

/* --- an end and a new beginning --- */

static bool all_know(unsigned ends, const char *reason, unsigned status)
{
    for (int i = 0; i < 2; i++) {
        const struct fake *f = &lab.m[i];

        if (f->ends != ends || strcmp(f->how.reason, reason) != 0 ||
            f->how.status != status)
            return false;
    }
    return true;
}

static void test_restart(void)
{
    begin(2);
    tell(0, 1, "{\"id\":\"i\",\"method\":\"initialize\",\"params\":{\"n\":1}}\n");
    act("say {\"id\":1,\"result\":{}}\n");
    expect_told(0, "1:{\"id\":\"i\",\"result\":{}}\n", "it is initialised");
    tell(0, 1, "{\"method\":\"notifications/initialized\"}");
    tell(1, 1, "{\"id\":2,\"method\":\"initialize\",\"params\":{\"n\":2}}\n");
    tell(1, 2, RESOURCE("3", "subscribe", "\"r\""));
    tell(0, 2, "{\"id\":\"open\",\"method\":\"x\"}\n");
    tell(0, 3, "{\"id\":\"cancelled\",\"method\":\"x\"}\n");
    tell(0, 3, CANCEL("\"cancelled\""));
    expect_got(
        "{\"id\":1,\"method\":\"initialize\",\"params\":{\"n\":1}}\n"
        "{\"method\":\"notifications/initialized\"}\n"
        "{\"id\":2,\"method\":\"initialize\",\"params\":{\"n\":2}}\n" RESOURCE(
            "3", "subscribe",
            "\"r\"") "{\"id\":4,\"method\":\"x\"}\n{\"id\":5,\"method\":\"x\"}\n" CANCEL("5"),
        "by both");
    act("say {\"id\":2,\"result\":{}}\nsay {\"method\":\"last\"}\nexit 3\n");
    expect_told(0, "0:{\"method\":\"last\"}\n2:lost \"open\" (8)\n",
                "its last words, and what is lost");
    expect_told(1, "1:{\"id\":2,\"result\":{}}\n0:{\"method\":\"last\"}\n2:lost 3 (8)\n",
                "to both");
    expect_said("the server exited with status 3; it is started again in 250 ms",
                "which is said");
    ok(all_know(1, "exit", 3), "and each member knows how");
    tell(0, 1, "{\"id\":\"held\",\"method\":\"y\"}\n");
    ok(lab.m[0].e->type->queued(lab.m[0].e) > 0, "what is sent meanwhile waits");
    expect_said("the server was started again", "it is started again");
    expect_got("{\"id\":7,\"method\":\"initialize\",\"params\":{\"n\":1}}\n",
               "and initialised first");
    act("exit 0\n");
    expect_said("the server exited with status 0; it is started again in 500 ms",
                "the next pause is longer");
    ok(all_know(2, "exit", 0), "and so do those with nothing open");
    expect_got("{\"id\":8,\"method\":\"initialize\",\"params\":{\"n\":1}}\n",
               "and initialised again");
    act("say {\"method\":\"early\"}\nsay {\"id\":8,\"result\":{}}\n");
    expect_got("{\"method\":\"notifications/initialized\"}\n" OUR_RESOURCE(
                   "9", "subscribe", "\"r\"") "{\"id\":6,\"method\":\"y\"}\n",
               "then what waited goes");
    act("say {\"id\":6,\"result\":0}\n");
    expect_told(0, "0:{\"method\":\"early\"}\n1:{\"id\":\"held\",\"result\":0}\n",
                "and is answered; nobody sees the other answers");
    ok(lab.m[0].drained > 0 && lab.m[0].e->type->queued(lab.m[0].e) == 0,
       "nothing waits");
    act("close\n");
    expect_said("the server closed its end; it is started again in 1000 ms",
                "one that closes its stdout is ended, too");
    ok(all_know(3, "closed", 0), "which is told apart");
    expect_got("{\"id\":10,\"method\":\"initialize\",\"params\":{\"n\":1}}\n",
               "and started again");
    act("say {\"id\":10,\"error\":{}}\n");
    expect_said("the server refused to be initialised again", "which may be refused");
    end();
}

static void test_held(void)
{
    CLEANUP(buf_release) struct buf big = { .max = SHARE_HELD_MAX * 2 };
    size_t room = SHARE_HELD_MAX - sizeof("{\"id\":1,\"method\":\"\"}\n") + 1;
    char *to;

    begin(1);
    act("exit 0\n");
    expect_said("250 ms", "it exits");
    buf_add(&big, STR("{\"id\":1,\"method\":\""));
    to = buf_room(&big, room);
    memset(to, 'm', room);
    big.n += room;
    buf_add(&big, STR("\"}\n"));
    ok(big.n == SHARE_HELD_MAX && sendx(0, 1, buf_str(&big)) == 0, "as much as may wait");
    tell(0, 2, "{\"id\":2,\"method\":\"x\"}\n");
    expect_told(0, "2:lost 2 (2)\n", "more is lost at once");
    expect(&lab.got, buf_cstr(&big), "what waited goes");
    end();
}

static bool is_noticed(void)
{
    sendx(0, 0, STR("{\"method\":\"x\"}\n"));
    return lab.said.n > 0;
}

static void test_deaf(void)
{
    begin(1);
    act("deaf\n");
    ok(wait_until(is_noticed), "one that reads no more is noticed");
    expect_said("250 ms", "and started again");
    end();
}

/* --- limits --- */

static bool has_loss(void)
{
    return lab.m[0].losses > 0;
}

static void test_open_max(void)
{
    char text[64];
    int bad = 0;

    begin(1);
    for (int i = 0; i < SHARE_OPEN_MAX; i++) {
        int n = snprintf(text, sizeof(text), "{\"id\":%d,\"method\":\"x\"}\n", i);

        bad += sendx(0, 0, str_of(text, (size_t)n)) < 0;
    }
    ok(bad == 0 && lab.m[0].losses == 0, "so many may be open");
    tell(0, 0, "{\"id\":\"more\",\"method\":\"x\"}\n");
    expect_told(0, "0:lost \"more\" (2)\n", "but not one more");
    tell(0, 0, CANCEL("7"));
    tell(0, 0, "{\"id\":\"again\",\"method\":\"x\"}\n");
    tell(0, 0, "{\"id\":\"more\",\"method\":\"x\"}\n");
    expect_told(0, "0:lost \"more\" (2)\n", "unless one is cancelled");
    ok(lab.m[0].losses == 2, "which then has room");
    tell(0, 0,
         "[{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":8}},"
         "{\"id\":1,\"method\":\"x\"}]\n");
    wanted = "[{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":9}},"
             "{\"id\":65538,\"method\":\"x\"}]\n";
    wanted_in = &lab.got;
    ok(wait_until(has_part), "in the same message, too");
    act("exit 1\n");
    lab.m[0].losses = 0;
    ok(wait_until(has_loss) && lab.m[0].losses == SHARE_OPEN_MAX, "all are lost with it");
    end();
}

static bool has_refusal(void)
{
    return lab.got.n && memmem(lab.got.p, lab.got.n, "too many requests", 17);
}

static unsigned lines(str text)
{
    unsigned n = 0;

    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    return n;
}

static void test_small_limits(void)
{
    CLEANUP(buf_release) struct buf b = { .max = (size_t)16 << 20 };

    begin(1);
    for (int i = 0; i <= SHARE_ASKED_MAX; i++) {
        buf_reset(&b);
        buf_printf(&b, "say {\"id\":%d,\"method\":\"ping\"}\n", i);
        act(buf_cstr(&b));
    }
    ok(wait_until(has_refusal), "the server asks too much");
    ok(lines(buf_str(&lab.got)) == 1 && lines(buf_str(&lab.m[0].log)) == SHARE_ASKED_MAX,
       "by one");
    leave(0);
    join(0);
    buf_reset(&b);
    for (int i = 0; i <= SHARE_BATCH_MAX; i++)
        buf_printf(&b, "%s{\"id\":%d,\"method\":\"x\"}", i ? "," : "[", i);
    buf_add(&b, STR("]\n"));
    tell(0, 1, buf_cstr(&b));
    buf_reset(&b);
    buf_printf(&b, "1:lost %d (2)\n", SHARE_BATCH_MAX);
    expect_told(0, buf_cstr(&b), "a batch with one too many");
    for (int i = 0; i <= SHARE_SUBSCRIBE_MAX; i++) {
        buf_reset(&b);
        buf_printf(&b, RESOURCE("\"s%d\"", "subscribe", "\"u:%d\""), i, i);
        tell(0, 2, buf_cstr(&b));
    }
    buf_reset(&b);
    buf_printf(&b, "2:lost \"s%d\" (2)\n", SHARE_SUBSCRIBE_MAX);
    expect_told(0, buf_cstr(&b), "one subscription too many");
    end();
}

static bool is_told(void)
{
    return lab.m[1].log.n >= LINE_MAX_BYTES && has_loss();
}

static void test_large(void)
{
    CLEANUP(buf_release) struct buf b = { .max = SPLICE_MAX * 2 };
    str before = STR("{\"result\":[\""), after = STR("\"],\"id\":2}\n");
    struct endpoint *e;
    struct err err = { 0 };
    char *to;

    begin(2);
    lab.m[1].log.max = LINE_MAX_BYTES * 2;
    tell(0, 1, "{\"id\":\"a\",\"method\":\"x\"}\n");
    tell(1, 2, "{\"id\":3,\"method\":\"x\"}\n");
    buf_printf(
        &b,
        "huge {\"result\":[\" %zu \"],\"id\":2}\nhuge {\"result\":[\" %zu \"],\"id\":1}\n",
        LINE_MAX_BYTES - before.n - after.n, LINE_MAX_BYTES - before.n - after.n + 1);
    act(buf_cstr(&b));
    ok(wait_until(is_told) && lab.m[1].log.n == LINE_MAX_BYTES + 2 &&
           str_ends(buf_str(&lab.m[1].log), STR("y\"],\"id\":3}\n")),
       "a line as long as it may be");
    expect_told(0, "1:lost \"a\" (2)\n", "one byte more is lost");
    expect_said("the server wrote a line of more than 67108864 bytes", "which is said");
    buf_reset(&b);
    buf_add(&b, STR("{\"method\":\""));
    to = buf_room(&b, SPLICE_MAX);
    memset(to, 'm', SPLICE_MAX);
    b.n += SPLICE_MAX;
    buf_add(&b, STR("\"}\n"));
    e = lab.m[0].e;
    ok(e->type->send(e, NULL, buf_str(&b), true, &err) < 0 && err.code == ERR_LIMIT,
       "nor is more sent: %s", err.msg);
    tell(0, 0, "{\"id\":1,\"method\":\"x\"}\n");
    act("say {\"id\":3,\"result\":0}\n");
    expect_told(0, "0:{\"id\":1,\"result\":0}\n", "the next is as good as ever");
    end();
}

/* --- the rest --- */

static void test_stubborn(void)
{
    begin(1);
    act("stubborn\nsay {\"method\":\"ready\"}\n");
    expect_told(0, "0:{\"method\":\"ready\"}\n", "it stays, whatever comes");
    end();
}

static void test_no_json(void)
{
    begin(1);
    tell(0, 0, "{\"id\":1,\"method\":\"x\",\"params\":{\"a\":NaN}}\n");
    tell(0, 0, "\n");
    tell(0, 0, "7\n");
    tell(0, 0, "{\"id\":1,\"method\":\"x\"}\n");
    expect_got("{\"id\":1,\"method\":\"x\"}\n", "what is no message is not sent on");
    ok(lines(buf_str(&lab.said)) == 1, "which is said once");
    end();
}

static bool has_echoes(void)
{
    for (int i = 0; i < 3; i++) {
        if (lines(buf_str(&lab.m[i].log)) < 300)
            return false;
    }
    return true;
}

/* Three members, a hundred requests on each of three exchanges, all with the same ids. */
static void test_echo(void)
{
    char text[128];
    bool good = true;

    begin(3);
    act("echo\nsay {\"method\":\"ready\"}\n");
    for (int i = 0; i < 3; i++)
        expect_told(i, "0:{\"method\":\"ready\"}\n", "all are told that it is ready");
    for (int i = 0; i < 900; i++) {
        int n = snprintf(text, sizeof(text),
                         "{\"id\":%d,\"method\":\"x\",\"params\":[%d,%d,%d]}\n", i / 9,
                         i % 3, i / 3 % 3 + 1, i / 9);

        good = good && sendx(i % 3, i / 3 % 3 + 1, str_of(text, (size_t)n)) == 0;
    }
    good = wait_until(has_echoes) && good;
    for (int m = 0; m < 3; m++) {
        str rest = buf_str(&lab.m[m].log), line;

        for (int i = 0; str_line(&rest, &line); i++) {
            snprintf(text, sizeof(text), "%d:{\"result\": [%d, %d, %d], \"id\": %d}",
                     i % 3 + 1, m, i % 3 + 1, i / 3, i / 3);
            if (good && !str_is(line, text))
                printf("# wanted: %s\n# found: " STR_FMT "\n", text, STR_ARG(line));
            good = good && str_is(line, text);
        }
    }
    ok(good, "nine hundred requests, each with its own answer");
    end();
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    test_restart();
    test_held();
    test_deaf();
    test_open_max();
    test_small_limits();
    test_large();
    test_stubborn();
    test_no_json();
    test_echo();
    return tap_done();
}
