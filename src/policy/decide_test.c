/* SPDX-License-Identifier: Apache-2.0 */
/* Precedence, row by row; then what a verdict promises beside it. */
#include "policy/decide.h"

#include "tests/deciding.h"
#include "tests/tap.h"

/* --- precedence --- */

static const char precedence[] =
    "version: \"1\"\n"
    "default: deny\n"
    "allowlist: [web_search, both, \"read_*\", \"r?\", read_x]\n"
    "denylist: [shell_exec, \"*_delete\", both, \"[xy]z\"]\n"
    "constraints:\n"
    "  read_file: {max_argument_bytes: 20}\n"
    "  \"read_*\": {deny_patterns: [secret, \"[0-9]{3}\"]}\n"
    "  shell_exec: {max_calls: 0}\n"
    "  never: {max_calls: 0}\n";

static const struct {
    const char *tool, *arguments;
    enum verdict verdict;
    const char *ref;
} precedence_rows[] = {
    { "web_search", "{}", VERDICT_ALLOWED, "allowlist[0]" },
    { "web_search", NULL, VERDICT_ALLOWED, "allowlist[0]" },
    { "web_searc", "{}", VERDICT_DENIED, "default" },
    { "web_search2", "{}", VERDICT_DENIED, "default" },
    { "Web_Search", "{}", VERDICT_DENIED, "default" },
    { "web_search ", "{}", VERDICT_DENIED, "default" },
    { "unheard_of", "{}", VERDICT_DENIED, "default" },
    { "shell_exec", "{}", VERDICT_DENIED, "denylist[0]" },
    { "file_delete", "{}", VERDICT_DENIED, "denylist[1]" },
    { "_delete", "{}", VERDICT_DENIED, "denylist[1]" },
    { "file_deleted", "{}", VERDICT_DENIED, "default" },
    { "both", "{}", VERDICT_DENIED, "denylist[2]" },
    { "xz", "{}", VERDICT_DENIED, "denylist[3]" },
    { "az", "{}", VERDICT_DENIED, "default" },
    { "read_x", "{}", VERDICT_ALLOWED, "allowlist[2]" },
    { "ra", "{}", VERDICT_ALLOWED, "allowlist[3]" },
    { "r\xc3\xa9", "{}", VERDICT_ALLOWED, "allowlist[3]" },
    { "r", "{}", VERDICT_DENIED, "default" },
    { "read_file", "{\"a\":\"b\"}", VERDICT_ALLOWED, "allowlist[2]" },
    { "read_file", "{\"a\":\"0123456789\"}", VERDICT_DENIED,
      "constraints.read_*.deny_patterns[1]" },
    { "read_file", "{\"a\":\"abcdefghijkl\"}", VERDICT_ALLOWED, "allowlist[2]" },
    { "read_file", "{\"a\":\"abcdefghijklm\"}", VERDICT_DENIED,
      "constraints.read_file.max_argument_bytes" },
    { "read_file", "{\"a\":\"abcdefghijklmsecret\"}", VERDICT_DENIED,
      "constraints.read_file.max_argument_bytes" },
    { "read_file", "  {  \"a\"  :  \"b\"  }  ", VERDICT_ALLOWED, "allowlist[2]" },
    { "read_db", "{\"q\":\"my secret\"}", VERDICT_DENIED,
      "constraints.read_*.deny_patterns[0]" },
    { "read_db", "{\"q\":\"my \\u0073ecret\"}", VERDICT_DENIED,
      "constraints.read_*.deny_patterns[0]" },
    { "read_db", "{\"secret\":1}", VERDICT_DENIED,
      "constraints.read_*.deny_patterns[0]" },
    { "read_db", "{\"q\":\"SECRET\"}", VERDICT_ALLOWED, "allowlist[2]" },
    { "read_db", "{\"n\":1e2}", VERDICT_DENIED, "constraints.read_*.deny_patterns[1]" },
    { "read_db", NULL, VERDICT_ALLOWED, "allowlist[2]" },
    { "never", "{}", VERDICT_DENIED, "constraints.never.max_calls" },
    { "", "{}", VERDICT_DENIED, "malformed" },
    { "web_search", "{\"a\":1,\"a\":2}", VERDICT_DENIED, "malformed" },
    { "web_search", "{\"a\":1,\"\\u0061\":2}", VERDICT_DENIED, "malformed" },
    { "web_search", "{\"x\":[{\"a\":1,\"a\":2}]}", VERDICT_DENIED, "malformed" },
    { "web_search", "{\"a\":\"\\ud800\"}", VERDICT_DENIED, "malformed" },
    { "web_search", "{\"a\\u0000b\":1}", VERDICT_DENIED, "malformed" },
    { "web_search", "{\"a\":[{\"\\u0000\":1}]}", VERDICT_DENIED, "malformed" },
    { "web_search", "{\"a\":\"\\u0000\"}", VERDICT_ALLOWED, "allowlist[0]" },
};

static void test_precedence(void)
{
    struct lab lab;

    lab_open(&lab, precedence);
    for (size_t i = 0; i < COUNT(precedence_rows); i++)
        ok(is(ask(&lab, precedence_rows[i].tool, precedence_rows[i].arguments),
              precedence_rows[i].verdict, precedence_rows[i].ref),
           "%s of '%s' %s", verdict_name(precedence_rows[i].verdict),
           precedence_rows[i].tool,
           precedence_rows[i].arguments ? precedence_rows[i].arguments : "");
    lab_close(&lab);
}

/* --- counters --- */

static void test_counters(void)
{
    struct policy *other = NULL;
    struct err err = { 0 };
    struct lab lab;

    lab_open(&lab, "default: allow\n"
                   "constraints: {a: {max_calls: 2}, \"a*\": {max_calls: 3}}\n"
                   "budget: {max_tool_calls: 5, max_wall_time_sec: 10}\n");
    ask(&lab, "a", "{}");
    ok(is(ask(&lab, "a", "{}"), VERDICT_ALLOWED, "default"), "asking costs nothing");
    counters_advance(&lab.counters, lab.policy, STR("a"));
    counters_advance(&lab.counters, lab.policy, STR("a"));
    ok(is(ask(&lab, "a", "{}"), VERDICT_DENIED, "constraints.a.max_calls"),
       "two calls and no third");
    ok(is(ask(&lab, "ab", "{}"), VERDICT_ALLOWED, "default"), "another tool of the glob");
    counters_advance(&lab.counters, lab.policy, STR("ab"));
    ok(is(ask(&lab, "ac", "{}"), VERDICT_DENIED, "constraints.a*.max_calls"),
       "a glob counts its tools together");
    lab.env.now = 9999;
    ok(is(ask(&lab, "z", "{}"), VERDICT_ALLOWED, "default"), "just in time");
    lab.env.now = 10000;
    ok(is(ask(&lab, "z", "{}"), VERDICT_DENIED, "budget.max_wall_time_sec"),
       "time is over");
    lab.env.no_wall_time = true;
    ok(is(ask(&lab, "z", "{}"), VERDICT_ALLOWED, "default"), "time may be left out");
    counters_advance(&lab.counters, lab.policy, STR("z"));
    counters_advance(&lab.counters, lab.policy, STR("z"));
    ok(is(ask(&lab, "z", "{}"), VERDICT_DENIED, "budget.max_tool_calls"),
       "the budget is used up");

    ok(policy_parse(&other,
                    STR("default: allow\nconstraints: {b: {max_calls: 1}, a: {max_calls: "
                        "3}}\nbudget: {max_tool_calls: 6}\n"),
                    "new", &err) == 0 &&
           counters_move(&lab.counters, lab.policy, other, &err) == 0,
       "a new policy takes over");
    policy_free(lab.policy);
    lab.policy = other;
    ok(lab.counters.by_entry[0] == 0 && lab.counters.by_entry[1] == 2 &&
           lab.counters.calls == 5,
       "what was used stays used, entry by name");
    ok(is(ask(&lab, "a", "{}"), VERDICT_ALLOWED, "default"), "one more by the new limit");
    lab_close(&lab);
}

/* --- without arguments --- */

static void test_undecidable(void)
{
    struct call_view call = { .arguments = JSON_NONE, .unknown = true };
    static const struct {
        const char *tool;
        enum verdict verdict;
        const char *ref;
    } rows[] = {
        { "plain", VERDICT_ALLOWED, "allowlist[0]" },
        { "size", VERDICT_UNDECIDABLE, "constraints.size.max_argument_bytes" },
        { "hosts", VERDICT_UNDECIDABLE, "constraints.hosts.deny_private_hosts" },
        { "paths", VERDICT_UNDECIDABLE, "constraints.paths.allowed_paths" },
        { "regex", VERDICT_UNDECIDABLE, "constraints.regex.deny_patterns" },
        { "calls", VERDICT_DENIED, "constraints.calls.max_calls" },
        { "unlisted", VERDICT_DENIED, "default" },
        { "denied", VERDICT_DENIED, "denylist[0]" },
    };
    struct lab lab;

    lab_open(&lab, "default: deny\n"
                   "allowlist: [plain, size, hosts, paths, regex, calls]\n"
                   "denylist: [denied]\n"
                   "constraints:\n"
                   "  size: {max_argument_bytes: 5}\n"
                   "  hosts: {deny_private_hosts: true}\n"
                   "  paths: {allowed_paths: ['/x/*']}\n"
                   "  regex: {deny_patterns: [x]}\n"
                   "  calls: {max_calls: 0, deny_patterns: [x]}\n"
                   "  unlisted: {deny_private_hosts: true}\n"
                   "  denied: {deny_private_hosts: true}\n");
    for (size_t i = 0; i < COUNT(rows); i++) {
        call.tool = str_from(rows[i].tool);
        decide_examine(lab.policy, &lab.counters, &call, &lab.env, &lab.arena, &lab.d);
        ok(is(&lab.d, rows[i].verdict, rows[i].ref), "%s is %s without arguments",
           rows[i].tool, verdict_name(rows[i].verdict));
    }
    lab_close(&lab);
}

static void test_outright(void)
{
    str ref = { NULL, 0 };
    struct lab lab;

    lab_open(&lab, precedence);
    ok(decide_outright_denies(lab.policy, STR("shell_exec"), &ref) &&
           str_is(ref, "denylist[0]"),
       "what is on the denylist is denied outright");
    ok(decide_outright_denies(lab.policy, STR("unheard_of"), &ref) &&
           str_is(ref, "default"),
       "so is what the default denies");
    ok(!decide_outright_denies(lab.policy, STR("read_file"), &ref),
       "what depends on arguments is not");
    ok(!decide_outright_denies(lab.policy, STR("web_search"), NULL), "nor is the rest");
    lab_close(&lab);
}

/* --- a message --- */

static void test_message(void)
{
    static const struct {
        const char *text, *tool; /* NULL: malformed */
    } rows[] = {
        { "{\"params\":{\"name\":\"shell_exec\",\"arguments\":{}},\"id\":1",
          "shell_exec" },
        { "{\"params\":{\"name\":\"shell\\u005fexec\"},\"id\":1", "shell_exec" },
        { "{\"params\":{\"name\":7},\"id\":1", NULL },
        { "{\"params\":{},\"id\":1", NULL },
        { "{\"id\":1", NULL },
        { "{\"params\":[],\"id\":1", NULL },
        { "{\"params\":{\"name\":\"a\",\"name\":\"shell_exec\"},\"id\":1", NULL },
        { "{\"params\":{\"name\":\"a\"},\"x\":{\"y\":1,\"y\":2},\"id\":1", NULL },
        { "{\"params\":{\"name\":\"\\udc00\"},\"id\":1", NULL },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(json_release) struct json j = { 0 };
        CLEANUP(arena_release) struct arena arena;
        struct call_view call;
        struct err err = { 0 };
        char text[512];
        struct rpc m;

        arena_init(&arena, 1 << 20);
        snprintf(text, sizeof(text), "%s,\"jsonrpc\":\"2.0\",\"method\":\"tools/call\"}",
                 rows[i].text);
        if (json_parse(&j, str_from(text), NULL, &err) < 0) {
            ok(false, "%s", err.msg);
            continue;
        }
        rpc_read(&m, &j, JSON_ROOT);
        call_view_read(&call, &m, &arena);
        ok(rows[i].tool ? !call.malformed && str_is(call.tool, rows[i].tool)
                        : call.malformed,
           "%s in %s", rows[i].tool ? rows[i].tool : "malformed", rows[i].text);
    }
}

/* --- limits --- */

static void test_limits(void)
{
    char name[POLICY_NAME_MAX + 2];
    struct call_view call = { .arguments = JSON_NONE };
    struct arena tiny;
    struct lab lab;

    lab_open(&lab, "default: allow\nconstraints: {f: {deny_private_hosts: true}}\n");
    memset(name, 'x', sizeof(name));
    for (size_t n = POLICY_NAME_MAX; n <= POLICY_NAME_MAX + 1; n++) {
        call.tool = str_of(name, n);
        decide_examine(lab.policy, &lab.counters, &call, &lab.env, &lab.arena, &lab.d);
        ok(is(&lab.d, n > POLICY_NAME_MAX ? VERDICT_DENIED : VERDICT_ALLOWED,
              n > POLICY_NAME_MAX ? "malformed" : "default"),
           "a name of %zu bytes", n);
    }
    ask(&lab, "f", "{\"url\":\"http://a.example\"}");
    call = (struct call_view){ .tool = STR("f"), .json = &lab.json };
    arena_init(&tiny, 8);
    decide_examine(lab.policy, &lab.counters, &call, &lab.env, &tiny, &lab.d);
    ok(lab.d.verdict == VERDICT_DENIED && lab.d.reason.n, "no memory is no yes");
    arena_release(&tiny);
    ok((struct decision){ 0 }.verdict == VERDICT_DENIED, "neither is nothing");
    lab_close(&lab);
}

/* Reasons go into evidence, where arguments may not be kept. */
static void test_reasons(void)
{
    struct lab lab;

    lab_open(&lab, "default: allow\nconstraints: {f: {deny_private_hosts: true, "
                   "allowed_paths: ['/x/*'], deny_patterns: [hush]}}\n");
    ask(&lab, "f", "{\"url\":\"http://10.9.8.7/hush\",\"path\":\"/x/1\"}");
    ok(!memmem(lab.d.reason.p, lab.d.reason.n, "10.9.8.7", 8) &&
           str_is(lab.d.detail, "10.9.8.7"),
       "a host is in the detail, not in the reason");
    ask(&lab, "f", "{\"path\":\"/etc/hu\\u0007\\u009bsh\"}");
    ok(!memmem(lab.d.reason.p, lab.d.reason.n, "/etc", 4) &&
           str_is(lab.d.detail, "/etc/hu??sh"),
       "so is a path, and it is printable");
    lab_close(&lab);
}

int main(void)
{
    test_precedence();
    test_counters();
    test_undecidable();
    test_outright();
    test_message();
    test_limits();
    test_reasons();
    return tap_done();
}
