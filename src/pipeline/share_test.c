/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a share and a server on strings: every byte on both sides is looked at. */
#include "pipeline/share.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "pipeline/share_line.h"
#include "pipeline/splice.h"
#include "tests/tap.h"
#include "transport/loop.h"

#define MEMBERS  4
#define PATIENCE 30000 /* ms */

struct fake {
    struct endpoint *e;
    struct buf log; /* what it was told, a line each, with the number of the exchange */
    unsigned drained, ended;
    enum err_code why;
    unsigned losses;
};

static struct lab {
    char dir[64];
    struct loop *loop;
    struct loop_timer *look, *patience;
    struct share *share;
    struct fake m[MEMBERS];
    struct buf said, got;
    int strings;
    bool gone, late;
    bool (*is_done)(void);
} lab;

/* An exchange is a place in here. */
static char exchanges[MEMBERS];

static struct exchange *x_of(int number)
{
    return number ? (struct exchange *)(void *)&exchanges[number] : NULL;
}

static int number_of(struct exchange *x)
{
    return x ? (int)((char *)x - exchanges) : 0;
}

/* --- what a member is told --- */

static void on_span(void *ctx, struct exchange *x, str bytes, bool end)
{
    struct fake *f = ctx;

    buf_printf(&f->log, "%d:", number_of(x));
    buf_add(&f->log, bytes);
    if (!end || bytes.n == 0 || bytes.p[bytes.n - 1] != '\n')
        buf_add(&f->log, STR("<not a whole line>"));
}

static void on_ended(void *ctx, const struct err *why)
{
    struct fake *f = ctx;

    f->ended++;
    f->why = why ? why->code : ERR_NONE;
}

static void on_drained(void *ctx)
{
    struct fake *f = ctx;

    f->drained++;
}

static void on_gone(void *ctx, const struct err *why)
{
    struct fake *f = ctx;

    buf_printf(&f->log, "gone: %s\n", why->msg);
}

static void on_lost(void *ctx, struct exchange *x, str id, const struct err *why)
{
    struct fake *f = ctx;

    f->losses++;
    f->why = why->code;
    if (f->losses > 10)
        return;
    buf_printf(&f->log, "%d:lost ", number_of(x));
    buf_add(&f->log, id);
    buf_printf(&f->log, " (%d)\n", (int)why->code);
}

static const struct endpoint_events events = { on_span, on_ended, on_drained, on_gone,
                                               NULL };

static void on_say(void *ctx, const char *sentence)
{
    (void)ctx;
    buf_printf(&lab.said, "%s\n", sentence);
}

static void on_share_gone(void *ctx)
{
    (void)ctx;
    share_free(lab.share);
    lab.share = NULL;
    lab.gone = true;
}

/* --- the laboratory --- */

static void read_got(void)
{
    char path[128];
    struct err err;

    snprintf(path, sizeof(path), "%s/got", lab.dir);
    buf_reset(&lab.got);
    if (access(path, F_OK) == 0 && file_read(path, &lab.got, &err) < 0)
        ok(false, "%s", err.msg);
}

static void on_look(void *ctx)
{
    (void)ctx;
    read_got();
    if (lab.is_done())
        loop_stop(lab.loop);
}

static void on_patience(void *ctx)
{
    (void)ctx;
    lab.late = true;
    loop_stop(lab.loop);
}

static bool wait_until(bool (*is_done)(void))
{
    lab.is_done = is_done;
    lab.late = false;
    loop_timer_set(lab.look, 2, true);
    loop_timer_set(lab.patience, PATIENCE, false);
    loop_run(lab.loop);
    loop_timer_stop(lab.look);
    loop_timer_stop(lab.patience);
    return !lab.late;
}

static const char *wanted;
static struct buf *wanted_in;

static bool has_wanted(void)
{
    return str_is(buf_str(wanted_in), wanted);
}

/* All of it, byte for byte. */
static void expect(struct buf *in, const char *text, const char *what)
{
    wanted = text;
    wanted_in = in;
    if (!ok(wait_until(has_wanted), "%s", what))
        printf("# wanted: %s\n# found:  %s\n", text, buf_cstr(in));
    buf_reset(in);
}

static void expect_got(const char *text, const char *what)
{
    char path[128];

    expect(&lab.got, text, what);
    snprintf(path, sizeof(path), "%s/got", lab.dir);
    if (truncate(path, 0) < 0)
        ok(false, "cannot empty what the server got");
}

static void expect_told(int member, const char *text, const char *what)
{
    expect(&lab.m[member].log, text, what);
}

static bool has_part(void)
{
    return wanted_in->n && memmem(wanted_in->p, wanted_in->n, wanted, strlen(wanted));
}

static void expect_said(const char *part, const char *what)
{
    wanted = part;
    wanted_in = &lab.said;
    if (!ok(wait_until(has_part), "%s", what))
        printf("# wanted: %s\n# said:  %s\n", part, buf_cstr(&lab.said));
    buf_reset(&lab.said);
}

static void act(const char *commands)
{
    struct err err;

    if (file_write(lab.strings, str_from(commands), NULL, &err) < 0)
        ok(false, "%s", err.msg);
}

static int sendx(int member, int exchange, str text)
{
    struct endpoint *e = lab.m[member].e;
    struct err err = { 0 };

    if (e->type->send(e, x_of(exchange), text, true, &err) == 0)
        return 0;
    printf("# %s\n", err.msg);
    return -1;
}

static void tell(int member, int exchange, const char *text)
{
    if (sendx(member, exchange, str_from(text)) < 0)
        ok(false, "sent");
}

static void join(int member)
{
    const struct share_member_options options = { &events, on_lost, &lab.m[member] };
    struct err err;

    lab.m[member] = (struct fake){ .log = { .max = (size_t)200 << 20 } };
    if (share_join(lab.share, &options, &lab.m[member].e, &err) < 0)
        ok(false, "%s", err.msg);
    lab.m[member].e->type->read(lab.m[member].e, true);
}

static void leave(int member)
{
    struct fake *f = &lab.m[member];

    if (f->e)
        f->e->type->close(f->e);
    buf_release(&f->log);
    *f = (struct fake){ 0 };
}

static void begin(int members)
{
    static char puppet[] = "tests/proxy/puppet.py";
    char *argv[] = { puppet, lab.dir, NULL };
    static char *kept[3];
    struct share_options options = { .say = on_say };
    char path[128];
    struct err err = { 0 };

    memcpy(kept, argv, sizeof(argv));
    snprintf(lab.dir, sizeof(lab.dir), "/tmp/assay-share-XXXXXX");
    if (!mkdtemp(lab.dir))
        exit(1);
    snprintf(path, sizeof(path), "%s/do", lab.dir);
    if (mkfifo(path, 0600) < 0)
        exit(1);
    lab.strings = open(path, O_RDWR | O_CLOEXEC);
    lab.got.max = lab.said.max = (size_t)64 << 20;
    lab.gone = false;
    if (loop_new(&lab.loop, &err) < 0 ||
        loop_timer_new(&lab.look, lab.loop, on_look, NULL, &err) < 0 ||
        loop_timer_new(&lab.patience, lab.loop, on_patience, NULL, &err) < 0)
        exit(1);
    options.loop = lab.loop;
    options.argv = kept;
    if (!ok(share_open(&lab.share, &options, &err) == 0, "a server: %s", err.msg))
        exit(1);
    for (int i = 0; i < members; i++)
        join(i);
}

static bool is_gone(void)
{
    return lab.gone;
}

static void end(void)
{
    struct err err;

    for (int i = 0; i < MEMBERS; i++)
        leave(i);
    share_finish(lab.share, on_share_gone, NULL);
    ok(wait_until(is_gone), "the server goes");
    loop_timer_free(lab.look);
    loop_timer_free(lab.patience);
    loop_free(lab.loop);
    file_close(&lab.strings);
    buf_release(&lab.said);
    buf_release(&lab.got);
    if (file_remove_tree(lab.dir, &err) < 0)
        ok(false, "%s", err.msg);
    lab = (struct lab){ 0 };
}

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

#define CANCEL(id)                                                                       \
    "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":" id "}}\n"
#define OUR_CANCEL(id)                                                                          \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":" id \
    "}}\n"

static void test_cancelling(void)
{
    begin(2);
    tell(0, 1, "{\"id\":5,\"method\":\"x\"}\n");
    tell(0, 2, "{\"id\":5,\"method\":\"x\"}\n");
    tell(0, 3, "{\"id\":5.0,\"method\":\"x\"}\n");
    tell(0, 0, CANCEL("5"));
    tell(0, 0, CANCEL("5"));
    tell(0, 0, CANCEL("5"));
    tell(0, 0, CANCEL("5"));
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
    share_forget_exchange(lab.m[0].e, x_of(1), true);
    share_forget_exchange(lab.m[0].e, x_of(2), true);
    share_forget_exchange(lab.m[0].e, x_of(3), false);
    expect_got("{\"id\":5,\"method\":\"initialize\"}\n{\"id\":6,\"method\":\"x\"}\n"
               "{\"id\":7,\"method\":\"x\"}\n" CANCEL(
                   "7") "{\"id\":8,\"method\":\"x\"}\n" OUR_CANCEL("6"),
               "an exchange that is gone: what is open but initialize is cancelled");
    tell(0, 3, "{\"id\":1,\"method\":\"y\"}\n");
    act("say {\"id\":5,\"result\":0}\nsay {\"id\":6,\"result\":0}\n"
        "say {\"id\":7,\"result\":0}\nsay {\"id\":9,\"result\":0}\n");
    expect_told(0, "3:{\"id\":1,\"result\":0}\n", "whose answers are swallowed");
    leave(1);
    expect_got("{\"id\":9,\"method\":\"y\"}\n" OUR_CANCEL("8"), "a member leaves");
    act("say {\"id\":8,\"result\":0}\n");
    tell(0, 0, "{\"id\":2,\"method\":\"y\"}\n");
    act("say {\"id\":10,\"result\":0}\n");
    expect_told(0, "0:{\"id\":2,\"result\":0}\n", "and the rest goes on");
    ok(lab.said.n == 0, "there is nothing to say of it");
    end();
}

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
    end();
}

#define UPDATED(uri)                                                                     \
    "{\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":" uri "}}\n"
#define RESOURCE(id, what, uri)                                                          \
    "{\"id\":" id ",\"method\":\"resources/" what "\",\"params\":{\"uri\":" uri "}}\n"
#define OUR_RESOURCE(id, what, uri)                                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"resources/" what                    \
    "\",\"params\":{\"uri\":" uri "}}\n"

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

/* --- an end and a new beginning --- */

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
    tell(0, 1, "{\"id\":\"held\",\"method\":\"y\"}\n");
    ok(lab.m[0].e->type->queued(lab.m[0].e) > 0, "what is sent meanwhile waits");
    expect_said("the server was started again", "it is started again");
    expect_got("{\"id\":7,\"method\":\"initialize\",\"params\":{\"n\":1}}\n",
               "and initialised first");
    act("exit 0\n");
    expect_said("the server exited with status 0; it is started again in 500 ms",
                "the next pause is longer");
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
    test_ids();
    test_exact();
    test_progress();
    test_cancelling();
    test_server_requests();
    test_subscriptions();
    test_resources();
    test_batches();
    test_restart();
    test_held();
    test_deaf();
    test_open_max();
    test_small_limits();
    test_large();
    test_back_pressure();
    test_finish();
    test_stubborn();
    test_no_json();
    test_echo();
    return tap_done();
}
