/* SPDX-License-Identifier: Apache-2.0 */
/* Members that do not read, and members that leave. */
#include "tests/share_lab.h"

static bool is_cut(void)
{
    return lab.m[0].ended > 0;
}

static bool has_all(void)
{
    return lab.m[1].log.n > SHARE_QUEUE_MAX / 2 && lab.m[0].log.n == lab.m[1].log.n;
}

#define NOTE "say {\"method\":\"n\"}\n"

/* Two members hear the same; one does not read. */
static void test_back_pressure(void)
{
    char command[128];
    size_t before;

    begin(2);
    lab.m[0].e->type->read(lab.m[0].e, false);
    snprintf(command, sizeof(command), "huge {\"method\":\" %zu \"}\n",
             SHARE_QUEUE_MAX - 1024);
    act(command);
    act(NOTE);
    wanted = "{\"method\":\"n\"}";
    wanted_in = &lab.m[1].log;
    ok(wait_until(has_part) && lab.m[0].log.n == 0,
       "one that does not read stops nobody");
    lab.m[0].e->type->read(lab.m[0].e, true);
    ok(wait_until(has_all), "and has all of it when it reads again");
    lab.m[0].e->type->read(lab.m[0].e, false);
    before = lab.m[1].log.n;
    act(command);
    act(command);
    act(NOTE);
    ok(wait_until(is_cut) && lab.m[0].why == ERR_LIMIT, "until too much waits too long");
    ok(lab.m[1].log.n > before, "the other hears on");
    expect_said("a client does not read what the server says; it is cut off",
                "it is said");
    ok(sendx(0, 0, STR("{\"method\":\"x\"}\n")) < 0, "who is cut off says nothing");
    end();
}

/* --- leaving, and the rest --- */

static void test_finish(void)
{
    struct endpoint *e;

    begin(2);
    tell(0, 0, "{\"id\":1,\"method\":\"x\"}\n");
    tell(1, 0, "{\"id\":1,\"method\":\"x\"}\n");
    e = lab.m[0].e;
    e->type->finish(e);
    lab.m[1].e->type->finish(lab.m[1].e);
    act("say {\"method\":\"n\"}\nsay {\"id\":1,\"result\":0}\n");
    expect_told(0, "0:{\"method\":\"n\"}\n0:{\"id\":1,\"result\":0}\n",
                "one that sends no more is answered");
    ok(wait_until(is_cut) && lab.m[0].ended == 1 && lab.m[0].why == ERR_NONE,
       "then it has all");
    ok(lab.m[1].ended == 0, "who still waits has not");
    act("say {\"id\":5,\"method\":\"ping\"}\n");
    expect_got("{\"id\":1,\"method\":\"x\"}\n{\"id\":2,\"method\":\"x\"}\n"
               "{\"error\":{\"code\":-31006,\"data\":{\"policy_ref\":null,"
               "\"reason_codes\":[\"client_gone\"],\"receipt_id\":null,\"source\":"
               "\"assay\"},\"message\":\"no client is there to answer\"},\"id\":5,"
               "\"jsonrpc\":\"2.0\"}\n",
               "who sends no more is not asked");
    lab.m[1].e->type->finish(lab.m[1].e);
    expect_got(OUR_CANCEL("2"), "unless it gives up");
    ok(lab.m[1].ended == 1, "and is at its end, too");
    end();
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    test_back_pressure();
    test_finish();
    return tap_done();
}
