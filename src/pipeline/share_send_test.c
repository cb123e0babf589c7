/* SPDX-License-Identifier: Apache-2.0 */
/* What members say, as the server gets it. */
#include "tests/share_lab.h"

/* --- ids --- */

static void test_ids(void)
{
    begin(3);
    for (int i = 0; i < 3; i++)
        tell(i, 0, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    expect_got("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"
               "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n"
               "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}\n",
               "three members say 1, and the server sees three");
    act("say {\"id\":3,\"result\":\"c\"}\nsay {\"id\":1,\"result\":\"a\"}\n"
        "say {\"id\":2,\"result\":\"b\"}\n");
    expect_told(0, "0:{\"id\":1,\"result\":\"a\"}\n", "the first has its own answer");
    expect_told(1, "0:{\"id\":1,\"result\":\"b\"}\n", "so has the second");
    expect_told(2, "0:{\"id\":1,\"result\":\"c\"}\n", "and the third");
    tell(0, 1, "{\"id\":7,\"method\":\"a\"}");
    tell(0, 2, "{\"id\":7,\"method\":\"b\"}");
    tell(0, 3, "{\"id\":\"7\",\"method\":\"c\"}");
    expect_got("{\"id\":4,\"method\":\"a\"}\n{\"id\":5,\"method\":\"b\"}\n"
               "{\"id\":6,\"method\":\"c\"}\n",
               "equal ids of one member, and a line's end where there was none");
    act("say {\"id\":6.0,\"result\":3}\nsay {\"id\":5,\"result\":2}\n"
        "say {\"id\":4e0,\"error\":{}}\nsay {\"id\":4,\"result\":1}\nsay nonsense\n"
        "say {\"id\":\"5\",\"result\":1}\nsay {\"id\":null,\"error\":1}\n");
    expect_told(0,
                "3:{\"id\":\"7\",\"result\":3}\n2:{\"id\":7,\"result\":2}\n"
                "1:{\"id\":7,\"error\":{}}\n",
                "each answer has the exchange and the id of its request");
    expect_said("the server wrote an answer to nothing; it is for nobody\n",
                "a second answer is for nobody");
    tell(1, 0, "{\"id\":8,\"method\":\"last\"}\n");
    act("say {\"id\":7,\"result\":0}\n");
    expect_told(1, "0:{\"id\":8,\"result\":0}\n", "and the rest goes on");
    ok(lab.said.n == 0, "which was said once");
    end();
}

/* What the member writes, what the server sees, its answer, what the member sees. */
static const struct {
    const char *sent, *seen;
} exact[] = {
    { "{\"id\":123456789012345678901234567890,\"method\":\"x\",\"params\":{\"n\":1.0e+05,"
      "\"n\":-0,\"id\":5}}\n",
      "{\"id\":#,\"method\":\"x\",\"params\":{\"n\":1.0e+05,\"n\":-0,\"id\":5}}\n" },
    { " { \"method\" : \"x\" ,\t\"id\" : \"a\\u0062\\\"c\" } \r\n",
      " { \"method\" : \"x\" ,\t\"id\" : # } \r\n" },
    { "{\"id\":1.50,\"method\":\"\\u0078\",\"params\":{\"_meta\":{\"a\":[],"
      "\"progressToken\":\"t\\/\",\"z\":{}},\"_meta\":{\"progressToken\":-1E2}}}\n",
      "{\"id\":#,\"method\":\"\\u0078\",\"params\":{\"_meta\":{\"a\":[],"
      "\"progressToken\":#,\"z\":{}},\"_meta\":{\"progressToken\":#}}}\n" },
    { "{\n  \"id\": 1,\r\n  \"method\": \"x\"\n}\n",
      "{   \"id\": #,    \"method\": \"x\" }\n" },
    { "{\"i\\u0064\":4,\"method\":\"x\"}\n", "{\"i\\u0064\":#,\"method\":\"x\"}\n" },
    /* What some server might take for an id must not be another member's. */
    { "{\"ID\":1,\"id\":2,\"Id\":\"3\",\"method\":\"x\"}\n",
      "{\"ID\":#,\"id\":#,\"Id\":#,\"method\":\"x\"}\n" },
    { "{\"id\\u0000z\":1,\"id\":2,\"id\":3,\"method\":\"x\"}\n",
      "{\"id\\u0000z\":#,\"id\":#,\"id\":#,\"method\":\"x\"}\n" },
    { "{\"id\":null,\"method\":\"x\",\"b\":\"\xc3\xa9\"}\n",
      "{\"id\":null,\"method\":\"x\",\"b\":\"\xc3\xa9\"}\n" },
    { "{\"method\":\"notifications/x\",\"params\":{\"requestId\":1,\"progressToken\":1}}\n",
      "{\"method\":\"notifications/x\",\"params\":{\"requestId\":1,\"progressToken\":1}}\n" },
};

static void add_numbered(struct buf *out, const char *text, int *number)
{
    bool any = false;

    for (const char *c = text; *c; c++) {
        if (*c == '#')
            buf_add_i64(out, *number);
        else
            buf_add_char(out, *c);
        any = any || *c == '#';
    }
    *number += any;
}

static void test_exact(void)
{
    CLEANUP(buf_release) struct buf want = { 0 };
    int number = 1;

    begin(2);
    for (size_t i = 0; i < COUNT(exact); i++) {
        tell(i % 2, 0, exact[i].sent);
        add_numbered(&want, exact[i].seen, &number);
    }
    expect_got(buf_cstr(&want), "nothing is changed but ids and tokens");
    act("say { \"x\":1.0e+05,\"x\":{\"id\":1} , \"id\" : 1,\"result\":-0.0 } \r\n"
        "say {\"result\":[[1e400],{\"a\":1,\"a\":2}],\"id\":3}\n");
    expect_told(0,
                "0:{ \"x\":1.0e+05,\"x\":{\"id\":1} , \"id\" : "
                "123456789012345678901234567890,\"result\":-0.0 } \r\n"
                "0:{\"result\":[[1e400],{\"a\":1,\"a\":2}],\"id\":1.50}\n",
                "answers come as they were, with the id as it was");
    end();
}

/* --- progress and cancelling --- */

static void test_progress(void)
{
    begin(2);
    for (int i = 0; i < 2; i++)
        tell(
            i, i + 1,
            "{\"id\":1,\"method\":\"x\",\"params\":{\"_meta\":{\"progressToken\":\"p\"}}}\n");
    tell(0, 3, "{\"id\":2,\"method\":\"x\"}\n");
    expect_got(
        "{\"id\":1,\"method\":\"x\",\"params\":{\"_meta\":{\"progressToken\":1}}}\n"
        "{\"id\":2,\"method\":\"x\",\"params\":{\"_meta\":{\"progressToken\":2}}}\n"
        "{\"id\":3,\"method\":\"x\"}\n",
        "two tokens that are alike become two");
#define PROGRESS(n)                                                                      \
    "{\"method\":\"notifications/progress\",\"params\":{\"progressToken\":" n            \
    ",\"progress\":1}}\n"
    act("say " PROGRESS("2") "say " PROGRESS("1") "say " PROGRESS("3") "say " PROGRESS(
        "99") "say " PROGRESS("\"p\"") "say {\"id\":1,\"result\":{\"task\":{\"taskId\":\"t\"}}}\nsay {\"id\":2,\"result\":{}}\n"
                                       "say " PROGRESS("1") "say " PROGRESS(
                                           "2") "say {\"id\":3,\"result\":0}\n");
    expect_told(1, "2:" PROGRESS("\"p\"") "2:{\"id\":1,\"result\":{}}\n",
                "the second's, until it is answered");
    expect_told(
        0,
        "1:" PROGRESS("\"p\"") "1:{\"id\":1,\"result\":{\"task\":{\"taskId\":\"t\"}}}\n"
                               "0:" PROGRESS("\"p\"") "3:{\"id\":2,\"result\":0}\n",
        "the first's; that of a task goes on after the answer");
    end();
}

static void test_cancelling(void)
{
    begin(2);
    tell(0, 1, "{\"id\":5,\"method\":\"x\"}\n");
    tell(0, 2, "{\"id\":5,\"method\":\"x\"}\n");
    tell(0, 3, "{\"id\":5.0,\"method\":\"x\"}\n");
    for (int i = 0; i < 3; i++)
        ok(sendx(0, 0, STR(CANCEL("5"))) == 0, "one is cancelled");
    ok(sendx(0, 0, STR(CANCEL("5"))) < 0, "nothing is open any more: it is not sent");
    tell(0, 0, CANCEL("\"5\""));
    tell(1, 0, CANCEL("5"));
    tell(1, 0, CANCEL("1"));
    tell(1, 0, "{\"Method\":\"notifications/cancelled\",\"params\":{\"RequestId\":1}}\n");
    tell(1, 0, "{\"method\":\"notifications/cancelled\"}\n");
    tell(1, 0, "{\"id\":9,\"method\":\"y\"}\n");
    tell(1, 0,
         "{\"method\":\"notifications/cancelled\",\"method\":\"z\",\"params\":"
         "{\"requestId\":1,\"requeſtId\":9}}\n");
    expect_got(
        "{\"id\":1,\"method\":\"x\"}\n{\"id\":2,\"method\":\"x\"}\n"
        "{\"id\":3,\"method\":\"x\"}\n" CANCEL("1") CANCEL("2") CANCEL(
            "3") "{\"id\":4,\"method\":\"y\"}\n"
                 "{\"method\":\"notifications/cancelled\",\"method\":\"z\",\"params\":"
                 "{\"requestId\":4,\"requeſtId\":4}}\n",
        "the oldest first, by its spelling first, and nobody else's");
    act("say {\"id\":2,\"result\":0}\n");
    expect_told(0, "2:{\"id\":5,\"result\":0}\n", "a late answer finds its way");
    tell(0, 1, "{\"id\":1,\"method\":\"initialize\"}\n");
    tell(0, 1, "{\"id\":2,\"method\":\"x\"}\n");
    tell(0, 2, "{\"id\":3,\"method\":\"x\"}\n");
    tell(0, 2, CANCEL("3"));
    tell(1, 1, "{\"id\":4,\"method\":\"x\"}\n");
    for (int x = 1; x <= 3; x++)
        share_cancel_exchange(lab.m[0].e, x_of(x));
    expect_got("{\"id\":5,\"method\":\"initialize\"}\n{\"id\":6,\"method\":\"x\"}\n"
               "{\"id\":7,\"method\":\"x\"}\n" CANCEL(
                   "7") "{\"id\":8,\"method\":\"x\"}\n" OUR_CANCEL("6"),
               "an exchange that is gone: what is open but initialize is cancelled");
    tell(0, 3, "{\"id\":1,\"method\":\"y\"}\n");
    act("say {\"id\":5,\"result\":0}\nsay {\"id\":6,\"result\":0}\n"
        "say {\"id\":7,\"result\":0}\nsay {\"id\":9,\"result\":0}\n");
    expect_told(0,
                "1:{\"id\":1,\"result\":0}\n1:{\"id\":2,\"result\":0}\n"
                "2:{\"id\":3,\"result\":0}\n3:{\"id\":1,\"result\":0}\n",
                "what the server answers all the same is told");
    leave(1);
    expect_got("{\"id\":9,\"method\":\"y\"}\n" OUR_CANCEL("8"), "a member leaves");
    act("say {\"id\":8,\"result\":0}\n");
    tell(0, 0, "{\"id\":2,\"method\":\"y\"}\n");
    act("say {\"id\":10,\"result\":0}\n");
    expect_told(0, "0:{\"id\":2,\"result\":0}\n", "and the rest goes on");
    ok(lab.said.n == 0, "there is nothing to say of it");
    end();
}

/* --- batches --- */

static void test_batches(void)
{
    begin(2);
    tell(
        0, 1,
        "[ {\"id\":1,\"method\":\"a\"} , {\"method\":\"n\"},{\"id\":\"1\",\"method\":\"b\"} ]\n");
    tell(1, 2,
         "[{\"id\":9,\"result\":0},{\"id\":1,\"method\":\"c\"},"
         "7,[{\"id\":1,\"method\":\"d\"}],"
         "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":2}}]\n");
    tell(1, 2,
         "["
         "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":2}}]\n");
    tell(1, 2, "[]\n");
    expect_got(
        "[ {\"id\":1,\"method\":\"a\"} , {\"method\":\"n\"},{\"id\":2,\"method\":\"b\"} ]\n"
        "[{\"id\":3,\"method\":\"c\"}]\n",
        "what may not pass is cut out");
    act("say  [ {\"id\":2,\"result\":2} ,{\"id\":1,\"result\":1} ] \n");
    expect_told(0, "1: [ {\"id\":\"1\",\"result\":2} ,{\"id\":1,\"result\":1} ] \n",
                "a batch answer of one");
    tell(
        0, 1,
        "[{\"id\":1,\"method\":\"a\"},{\"id\":2,\"method\":\"b\"},{\"id\":3,\"method\":\"c\"}]\n");
    act("say  [ {\"id\":3,\"result\":3},{\"id\":77,\"result\":0}, {\"id\":4,\"result\":4} , {\"id\":5,\"result\":5},"
        "{\"id\":5,\"result\":6},{\"method\":\"n\"},{\"id\":6,\"result\":6}]\nsay []\n");
    expect_told(1, "2:[{\"id\":1,\"result\":3}]\n0:[{\"method\":\"n\"}]\n",
                "of many: the one's part");
    expect_told(
        0,
        "1:[{\"id\":1,\"result\":4} , {\"id\":2,\"result\":5}]\n0:[{\"method\":\"n\"}]\n"
        "1:[{\"id\":3,\"result\":6}]\n",
        "and the other's");
    end();
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    test_ids();
    test_exact();
    test_progress();
    test_cancelling();
    test_batches();
    return tap_done();
}
