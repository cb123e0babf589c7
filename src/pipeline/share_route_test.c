/* SPDX-License-Identifier: Apache-2.0 */
/* What the server says by itself, and to whom it goes. */
#include "tests/share_lab.h"

/* --- the server asks and tells --- */

static void test_server_requests(void)
{
    begin(2);
    act("say {\"id\":0,\"method\":\"roots/list\"}\n");
    expect_told(1, "0:{\"id\":0,\"method\":\"roots/list\"}\n",
                "the newest member is asked");
    tell(0, 0, "{\"id\":0,\"result\":\"forged\"}\n");
    tell(1, 0, "{\"id\":1,\"result\":\"unasked\"}\n");
    tell(1, 0, "{\"id\":0,\"id\":0,\"result\":\"double\"}\n");
    tell(1, 0, "{\"id\":0,\"Id\":1,\"result\":\"double\"}\n");
    tell(1, 0, "{\"id\":0,\"method\":\"x\",\"result\":\"both\"}\n");
    tell(1, 0, "{\"id\":0.0,\"result\":\"good\"}\n");
    tell(1, 0, "{\"id\":0,\"result\":\"again\"}\n");
    expect_got("{\"id\":0.0,\"result\":\"good\"}\n", "and only it may answer, once");
    expect_told(1, "0:lost 0 (3)\n", "what is request and answer is neither");
    tell(1, 1, "{\"id\":0,\"method\":\"a\"}\n");
    tell(0, 2, "{\"id\":0,\"method\":\"b\"}\n");
    tell(0, 0,
         "{\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1}}\n");
    act("say {\"id\":1,\"method\":\"ping\"}\n");
    expect_told(0, "2:{\"id\":1,\"method\":\"ping\"}\n",
                "else whose request is the newest");
    tell(0, 0,
         "{\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1}}\n");
    act("say {\"id\":2,\"result\":{}}\nsay {\"id\":\"s\",\"method\":\"ping\"}\n"
        "say " CANCEL("1") "say " CANCEL("1"));
    expect_told(0, "2:{\"id\":0,\"result\":{}}\n0:" CANCEL("1"),
                "it is told when not to");
    expect_told(1, "1:{\"id\":\"s\",\"method\":\"ping\"}\n",
                "or the newest but that one");
    expect_got(
        "{\"id\":1,\"method\":\"a\"}\n{\"id\":2,\"method\":\"b\"}\n"
        "{\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1}}\n",
        "progress comes from whom was asked");
    leave(1);
    expect_got(
        OUR_CANCEL(
            "1") "{\"error\":{\"code\":-31006,\"data\":{\"policy_ref\":null,"
                 "\"reason_codes\":[\"client_gone\"],\"receipt_id\":null,\"source\":\"assay\"},"
                 "\"message\":\"the client is gone\"},\"id\":\"s\",\"jsonrpc\":\"2.0\"}\n",
        "who leaves owes no answer");
    leave(0);
    act("say {\"id\":3,\"method\":\"ping\"}\n");
    expect_got(
        "{\"error\":{\"code\":-31006,\"data\":{\"policy_ref\":null,"
        "\"reason_codes\":[\"client_gone\"],\"receipt_id\":null,\"source\":\"assay\"},"
        "\"message\":\"no client is there to answer\"},\"id\":3,\"jsonrpc\":\"2.0\"}\n",
        "nobody is there");
    end();
}

#define LISTEN(id) "{\"id\":" id ",\"method\":\"subscriptions/listen\",\"params\":{}}\n"
#define NOTICE(id)                                                                       \
    "{\"method\":\"notifications/tools/list_changed\",\"params\":{\"_meta\":{"           \
    "\"io.modelcontextprotocol/subscriptionId\":" id "}}}\n"
#define CLOSING(id, sub)                                                                 \
    "{\"id\":" id                                                                        \
    ",\"result\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":" sub "}}}\n"

static void test_subscriptions(void)
{
    begin(2);
    tell(0, 1, LISTEN("\"listen:0\""));
    tell(1, 2, LISTEN("\"listen:0\""));
    tell(1, 3, LISTEN("0"));
    expect_got(LISTEN("1") LISTEN("2") LISTEN("3"), "three subscriptions");
    act("say " NOTICE("1") "say " NOTICE("3") "say " NOTICE("2") "say " NOTICE("4") "say " NOTICE(
        "\"listen:0\"") "say " CLOSING("1",
                                       "1") "say " NOTICE("1") "say " CLOSING("2",
                                                                              "3") "say " CANCEL("3") "say {\"method\":\"notifications/message\"}\n");
    expect_told(
        0,
        "1:" NOTICE("\"listen:0\"") "1:" CLOSING(
            "\"listen:0\"", "\"listen:0\"") "0:{\"method\":\"notifications/message\"}\n",
        "the first's, until it is closed, and what is for all");
    expect_told(1,
                "3:" NOTICE("0") "2:" NOTICE("\"listen:0\"") "2:" CLOSING(
                    "\"listen:0\"",
                    "3") "3:" CANCEL("0") "0:{\"method\":\"notifications/message\"}\n",
                "the second's, with the ids that it chose");
    tell(0, 4, LISTEN("5"));
    share_cancel_exchange(lab.m[0].e, x_of(4));
    expect_got(LISTEN("4") OUR_CANCEL("4"), "one whose client goes is cancelled");
    act("say " NOTICE("4") "say " CLOSING("4", "4") "say {\"method\":\"n\"}\n");
    expect_told(0, "0:{\"method\":\"n\"}\n", "and nobody hears of it any more");
    end();
}

#define UPDATED(uri)                                                                     \
    "{\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":" uri "}}\n"

static void test_resources(void)
{
    begin(3);
    tell(0, 0, RESOURCE("1", "subscribe", "\"a:/b\""));
    tell(1, 0, RESOURCE("1", "subscribe", "\"a:\\/b\""));
    tell(1, 0, RESOURCE("2", "subscribe", "\"c:/\""));
    act("say " UPDATED("\"a:/b\"") "say " UPDATED("\"a:/b/c\"") "say " UPDATED(
        "\"a:/bc\"") "say " UPDATED("\"c:/x\"") "say " UPDATED("7") "say {\"method\":\"n\"}\n");
    expect_told(2, "0:{\"method\":\"n\"}\n", "who did not subscribe is told nothing");
    expect_told(
        0, "0:" UPDATED("\"a:/b\"") "0:" UPDATED("\"a:/b/c\"") "0:{\"method\":\"n\"}\n",
        "one is told of what it subscribed to, and of what is under it");
    expect_told(1,
                "0:" UPDATED("\"a:/b\"") "0:" UPDATED("\"a:/b/c\"") "0:" UPDATED(
                    "\"c:/x\"") "0:{\"method\":\"n\"}\n",
                "and the other, too");
    expect_got(RESOURCE("1", "subscribe", "\"a:/b\"")
                   RESOURCE("2", "subscribe", "\"a:\\/b\"")
                       RESOURCE("3", "subscribe", "\"c:/\""),
               "the server saw all");
    tell(0, 0, RESOURCE("3", "unsubscribe", "\"a:/b\""));
    expect_got(RESOURCE("4", "unsubscribe", "\"a:/b\"")
                   OUR_RESOURCE("5", "subscribe", "\"a:/b\""),
               "one does not unsubscribe the other");
    act("say " UPDATED(
        "\"a:/b\"") "say {\"id\":4,\"result\":{}}\nsay {\"id\":5,\"result\":{}}\n");
    expect_told(1, "0:" UPDATED("\"a:/b\""), "which still hears of it");
    expect_told(0, "0:{\"id\":3,\"result\":{}}\n", "alone");
    leave(1);
    expect_got(OUR_CANCEL("2") OUR_CANCEL("3")
                   OUR_RESOURCE("6", "unsubscribe", "\"a:/b\"")
                       OUR_RESOURCE("7", "unsubscribe", "\"c:/\""),
               "the last one who leaves does");
    ok(lab.said.n == 0, "there is nothing to say of it");
    end();
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    test_server_requests();
    test_subscriptions();
    test_resources();
    return tap_done();
}
