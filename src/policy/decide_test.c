/* SPDX-License-Identifier: Apache-2.0 */
/* Precedence, hosts and paths, row by row; then what a verdict promises beside them. */
#include "policy/decide.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "tests/tap.h"

/* One call under one policy. */
struct lab {
    struct policy *policy;
    struct counters counters;
    struct arena arena;
    struct json json;
    struct decide_env env;
    struct decision d;
};

static void lab_open(struct lab *lab, const char *yaml)
{
    struct err err = { 0 };

    *lab = (struct lab){ .env = { .cwd = STR("/work") } };
    if (policy_parse(&lab->policy, str_from(yaml), "test.yaml", &err) < 0 ||
        counters_init(&lab->counters, lab->policy, 0, &err) < 0) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    arena_init(&lab->arena, DECIDE_MEMORY);
}

static void lab_close(struct lab *lab)
{
    counters_release(&lab->counters);
    policy_free(lab->policy);
    arena_release(&lab->arena);
    json_release(&lab->json);
}

/* `arguments` is JSON; NULL: there are none. */
static const struct decision *ask(struct lab *lab, const char *tool,
                                  const char *arguments)
{
    struct call_view call = { .tool = str_from(tool), .arguments = JSON_NONE };
    struct err err = { 0 };

    arena_reset(&lab->arena);
    if (arguments) {
        if (json_parse(&lab->json, str_from(arguments), NULL, &err) < 0) {
            printf("Bail out! %s in %s\n", err.msg, arguments);
            exit(1);
        }
        call.json = &lab->json;
        call.arguments = JSON_ROOT;
    }
    decide_examine(lab->policy, &lab->counters, &call, &lab->env, &lab->arena, &lab->d);
    return &lab->d;
}

static bool is(const struct decision *d, enum verdict v, const char *ref)
{
    if (d->verdict == v && str_is(d->ref, ref) && d->reason.n)
        return true;
    printf("# %s by '" STR_FMT "': " STR_FMT "; want %s by '%s'\n",
           verdict_name(d->verdict), STR_ARG(d->ref), STR_ARG(d->reason), verdict_name(v),
           ref);
    return false;
}

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

/* --- hosts --- */

#define REFUSED "\1" /* denied by deny_private_hosts */

/* `names`: what is to be looked up; "" is allowed without a look. */
static const struct {
    const char *arguments, *names;
} host_rows[] = {
    /* plain */
    { "{\"url\":\"http://127.0.0.1/\"}", REFUSED },
    { "{\"url\":\"http://10.1.2.3\"}", REFUSED },
    { "{\"url\":\"https://172.16.0.1:8443/x\"}", REFUSED },
    { "{\"url\":\"https://172.32.0.1:8443/x\"}", "" },
    { "{\"url\":\"http://192.168.1.1?x=1\"}", REFUSED },
    { "{\"url\":\"http://169.254.169.254/latest/meta-data/\"}", REFUSED },
    { "{\"url\":\"http://100.64.0.1\"}", REFUSED },
    { "{\"url\":\"http://100.128.0.1\"}", "" },
    { "{\"url\":\"http://0.0.0.0:80\"}", REFUSED },
    { "{\"url\":\"http://224.0.0.251\"}", REFUSED },
    { "{\"url\":\"http://192.0.2.7\"}", REFUSED },
    { "{\"url\":\"http://198.18.5.5\"}", REFUSED },
    { "{\"url\":\"http://255.255.255.255\"}", REFUSED },
    { "{\"url\":\"http://8.8.8.8/dns\"}", "" },
    { "{\"url\":\"https://good.example/path\"}", "good.example" },
    { "{}", "" },
    { "{\"q\":\"no host here\"}", "" },
    /* spellings of 127.0.0.1 */
    { "{\"url\":\"http://2130706433/\"}", REFUSED },
    { "{\"url\":\"http://0x7f.1/\"}", REFUSED },
    { "{\"url\":\"http://0x7f000001/\"}", REFUSED },
    { "{\"url\":\"http://0X7F.0X0.0X0.0X1/\"}", REFUSED },
    { "{\"url\":\"http://017700000001/\"}", REFUSED },
    { "{\"url\":\"http://0177.0.0.1/\"}", REFUSED },
    { "{\"url\":\"http://127.1/\"}", REFUSED },
    { "{\"url\":\"http://127.0.1/\"}", REFUSED },
    { "{\"url\":\"http://0127.0.0.1/\"}", REFUSED },
    { "{\"url\":\"http://010.0.0.1/\"}", REFUSED },
    { "{\"url\":\"http://127.0.0.1./\"}", REFUSED },
    { "{\"url\":\"http://127.0.0.1../\"}", REFUSED },
    { "{\"url\":\"http://127.0.0.1:/\"}", REFUSED },
    { "{\"url\":\"http://%31%32%37.0.0.1/\"}", REFUSED },
    { "{\"url\":\"http://127%2e0%2e0%2e1/\"}", REFUSED },
    { "{\"url\":\"http://%2531%2532%2537.0.0.1/\"}", REFUSED },
    { "{\"url\":\"http://\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97\xe3\x80\x82"
      "0\xe3\x80\x82"
      "0\xe3\x80\x82"
      "1/\"}",
      REFUSED },
    { "{\"url\":\"http://\\u2460\\u2461\\u2466.0.0.1/\"}", REFUSED },
    { "{\"url\":\"http://127.0.0.\\u00b9/\"}", REFUSED },
    { "{\"url\":\"http://127.0.\\u00ad0.1/\"}", REFUSED },
    { "{\"url\":\"http://134744072/\"}", "" },
    { "{\"url\":\"http://1.2.3.4.5/\"}", REFUSED },
    { "{\"url\":\"http://256.1.1.1/\"}", REFUSED },
    { "{\"url\":\"http://99999999999/\"}", REFUSED },
    { "{\"url\":\"http://08.8.8.8/\"}", "" },
    { "{\"url\":\"http://good.example.0x1/\"}", REFUSED },
    /* IPv6 */
    { "{\"url\":\"http://[::1]/\"}", REFUSED },
    { "{\"url\":\"http://[::]:80/\"}", REFUSED },
    { "{\"url\":\"http://[::ffff:7f00:1]/\"}", REFUSED },
    { "{\"url\":\"http://[::ffff:127.0.0.1]/\"}", REFUSED },
    { "{\"url\":\"http://[::ffff:8.8.8.8]/\"}", "" },
    { "{\"url\":\"http://[::127.0.0.1]/\"}", REFUSED },
    { "{\"url\":\"http://[64:ff9b::a00:1]/\"}", REFUSED },
    { "{\"url\":\"http://[64:ff9b::808:808]/\"}", "" },
    { "{\"url\":\"http://[64:ff9b:1::808:808]/\"}", REFUSED },
    { "{\"url\":\"http://[2002:7f00:1::]/\"}", REFUSED },
    { "{\"url\":\"http://[2002:808:808::]/\"}", "" },
    { "{\"url\":\"http://[2001:0:7f00:1::]/\"}", REFUSED },
    { "{\"url\":\"http://[fe80::1%25eth0]/\"}", REFUSED },
    { "{\"url\":\"http://[FE80::1]/\"}", REFUSED },
    { "{\"url\":\"http://[fd00::1]/\"}", REFUSED },
    { "{\"url\":\"http://[ff02::1]/\"}", REFUSED },
    { "{\"url\":\"http://[2001:db8::1]/\"}", REFUSED },
    { "{\"url\":\"http://[2606:4700::1111]/\"}", "" },
    { "{\"url\":\"http://[0:0:0:0:0:0:0:1]/\"}", REFUSED },
    { "{\"url\":\"http://[::1/\"}", REFUSED },
    { "{\"url\":\"http://[good.example]/\"}", REFUSED },
    { "{\"host\":\"::1\"}", REFUSED },
    { "{\"host\":\"2606:4700::1111\"}", "" },
    /* names */
    { "{\"url\":\"http://localhost:3000/\"}", REFUSED },
    { "{\"url\":\"http://LOCALHOST/\"}", REFUSED },
    { "{\"url\":\"http://localhost./\"}", REFUSED },
    { "{\"url\":\"http://a.b.localhost/\"}", REFUSED },
    { "{\"url\":\"http://\\u24db\\u24de\\u24d2\\u24d0\\u24db\\u24d7\\u24de\\u24e2\\u24e3/\"}",
      REFUSED },
    { "{\"url\":\"http://notlocalhost/\"}", "notlocalhost" },
    { "{\"url\":\"http://metadata.google.internal/computeMetadata\"}", REFUSED },
    { "{\"url\":\"http://metadata/\"}", REFUSED },
    { "{\"url\":\"http://printer.local\"}", REFUSED },
    { "{\"url\":\"http://good.example./x\"}", "good.example" },
    { "{\"url\":\"http://GOOD.Example/x\"}", "good.example" },
    { "{\"url\":\"http://b\xc3\xbc"
      "cher.example/\"}",
      "xn--bcher-kva.example" },
    { "{\"url\":\"http://B\xc3\x9c"
      "CHER.example/\"}",
      "xn--bcher-kva.example" },
    { "{\"url\":\"http://\xe4\xbe\x8b\xe3\x81\x88.\xe3\x83\x86\xe3\x82\xb9\xe3\x83\x88/\"}",
      "xn--r8jz45g.xn--zckzah" },
    { "{\"url\":\"http://good..example/\"}", REFUSED },
    { "{\"url\":\"http://good example/\"}", REFUSED },
    { "{\"url\":\"http://{host}/\"}", REFUSED },
    /* schemes */
    { "{\"url\":\"HTTP://127.0.0.1/\"}", REFUSED },
    { "{\"url\":\"hTtPs://Good.Example/\"}", "good.example" },
    { "{\"url\":\"gopher://127.0.0.1:70/_x\"}", REFUSED },
    { "{\"url\":\"127.0.0.1\"}", REFUSED },
    { "{\"url\":\"127.0.0.1:8080/path\"}", REFUSED },
    { "{\"url\":\"good.example:8080/path\"}", "good.example" },
    { "{\"url\":\"//127.0.0.1/x\"}", REFUSED },
    { "{\"url\":\"///127.0.0.1/x\"}", REFUSED },
    { "{\"url\":\"\\\\\\\\127.0.0.1\\\\share\"}", REFUSED },
    { "{\"url\":\"http:127.0.0.1\"}", REFUSED },
    { "{\"url\":\"http:/127.0.0.1\"}", REFUSED },
    { "{\"url\":\"http:\\\\\\\\127.0.0.1\\\\x\"}", REFUSED },
    { "{\"url\":\"http:////127.0.0.1\"}", REFUSED },
    { "{\"url\":\"  http://127.0.0.1  \"}", REFUSED },
    { "{\"url\":\"ht\\ntp://good.example/\"}", REFUSED },
    { "{\"url\":\"http://127.0\\t.0.1/\"}", REFUSED },
    { "{\"url\":\"/docs/page\"}", "" },
    { "{\"url\":\"#top\"}", "" },
    { "{\"uri\":\"mailto:someone\"}", "" },
    { "{\"uri\":\"localhost:abc\"}", REFUSED },
    { "{\"uri\":\"file:///etc/passwd\"}", "" },
    { "{\"uri\":\"jdbc:mysql://10.0.0.5:3306/db\"}", REFUSED },
    /* white space around it, which servers cut off */
    { "{\"url\":\"\\u00a0http:169.254.169.254/\"}", REFUSED },
    { "{\"url\":\"\\ufeffhttp:169.254.169.254/\"}", REFUSED },
    { "{\"url\":\"\\u3000http:169.254.169.254/\"}", REFUSED },
    { "{\"url\":\"\\u2029http:169.254.169.254/\"}", REFUSED },
    { "{\"url\":\"\\u1680 \\u205fhttp:169.254.169.254/\"}", REFUSED },
    { "{\"url\":\"\\u0085http:169.254.169.254/\"}", REFUSED },
    { "{\"url\":\"\\u00a0//10.0.0.1/x\"}", REFUSED },
    { "{\"host\":\"\\u200210.0.0.1\\u2002\"}", REFUSED },
    { "{\"url\":\"\\u00a0https:good.example\\u00a0\"}", "good.example" },
    { "{\"host\":\"good.example\\ufeff\"}", "good.example" },
    { "{\"place\":\"\\u00a0127.0.0.1\\u3000\"}", REFUSED },
    { "{\"place\":\"\\u00a0http:169.254.169.254/\"}", REFUSED },
    /* userinfo and fragments */
    { "{\"url\":\"http://127.0.0.1@good.example\"}", REFUSED },
    { "{\"url\":\"http://good.example#@10.0.0.1\"}", REFUSED },
    { "{\"url\":\"http://good.example@10.0.0.1/\"}", REFUSED },
    { "{\"url\":\"http://user:pw@good.example/\"}", "good.example" },
    { "{\"url\":\"http://a.example@good.example/\"}", "a.example good.example" },
    { "{\"url\":\"http://u:10.0.0.1@good.example/\"}", REFUSED },
    { "{\"url\":\"http://good.example\\\\@10.0.0.1/\"}", REFUSED },
    { "{\"url\":\"http://10.0.0.1\\\\.good.example/\"}", REFUSED },
    { "{\"url\":\"http://good.example?@10.0.0.1\"}", REFUSED },
    { "{\"url\":\"http://good.example#@inner.example\"}", "good.example inner.example" },
    { "{\"url\":\"http://good.example/@10.0.0.1\"}", REFUSED },
    { "{\"url\":\"https://good.example/@scope/name\"}", "good.example" },
    { "{\"url\":\"http://1.1.1.1 &@2.2.2.2# @127.0.0.1/\"}", REFUSED },
    { "{\"url\":\"http://a@b@127.0.0.1/\"}", REFUSED },
    { "{\"url\":\"http://good.example:80:127.0.0.1/\"}", REFUSED },
    { "{\"url\":\"http://good.example\xef\xbc\x8f@10.0.0.1/\"}", REFUSED },
    /* where it stands */
    { "{\"text\":\"see http://127.0.0.1/ for more\"}", REFUSED },
    { "{\"text\":\"see (http://good.example), please.\"}", "good.example" },
    { "{\"text\":\"a http://good.example b http://other.example.\"}",
      "good.example other.example" },
    { "{\"text\":\"[link](http://10.0.0.1)\"}", REFUSED },
    { "{\"text\":\"http://10.0\\n.0.1/\"}", REFUSED },
    { "{\"text\":\"http://good.example\\nand more\"}", "good.example" },
    /* read in another way */
    { "{\"text\":\"http://good.example\\t.intra.example/\"}",
      "good.example good.example.intra.example" },
    { "{\"text\":\"http:/\\n/intra.example/\"}", "intra.example" },
    { "{\"text\":\"h\\rttp://intra.example/\"}", "intra.example" },
    { "{\"text\":\"ht\\ntp:intra.example\"}", "intra.example" },
    { "{\"text\":\"http:intra.example/x\"}", "intra.example" },
    { "{\"text\":\"https:/intra.example\"}", "intra.example" },
    { "{\"text\":\"http://good.example\\\"@intra.example/\"}",
      "good.example intra.example" },
    { "{\"text\":\"http://good.example<@intra.example/\"}",
      "good.example intra.example" },
    { "{\"text\":\"http://good.example`@intra.example:80/\"}",
      "good.example intra.example" },
    { "{\"text\":\"http://good.example @intra.example/\"}",
      "good.example intra.example" },
    { "{\"text\":\"see http://good.example\\\"@intra.example/ now\"}",
      "good.example intra.example" },
    { "{\"text\":\"see http://good.example?\\\"@intra.example\"}",
      "good.example intra.example" },
    { "{\"text\":\"x+y://good.example\\n.intra.example:80/\"}",
      "good.example good.example.intra.example" },
    { "{\"text\":\"http://good.example\\n@localhost/\"}", REFUSED },
    { "{\"text\":\"http://good.example\\\"@intra.localhost/\"}", REFUSED },
    { "{\"text\":\"<a href=\\\"http://good.example\\\">me@mail.example</a>\"}",
      "good.example" },
    { "{\"text\":\"http://good.example, and more\"}", "good.example" },
    { "{\"text\":\"http://good.example is not my.local\"}", "good.example" },
    { "{\"text\":\"http://good.example costs 10.0\"}", "good.example" },
    { "{\"text\":\"http://good.example\\n\\nIt is down.\"}", "good.example" },
    { "{\"text\":\"see http://good.example\\nand\"}", "good.example" },
    { "{\"text\":\"http://good.example/a\\nhttp://other.example/b\"}",
      "good.example other.example" },
    { "{\"text\":\"\\\"http://good.example\\\"\"}", "good.example" },
    { "{\"text\":\"http://good.example:80.\"}", "good.example" },
    { "{\"text\":\"http: is a protocol\"}", "" },
    { "{\"text\":\"http:\"}", "" },
    { "{\"text\":\"https:{host}/\"}", "" },
    { "{\"text\":\"note: x@y.example\"}", "" },
    /* at any depth */
    { "{\"a\":{\"b\":[{\"c\":[\"x\",\"http://[::1]/\"]}]}}", REFUSED },
    { "{\"urls\":[\"good.example\",\"10.0.0.1\"]}", REFUSED },
    { "{\"target\":{\"host\":\"10.0.0.1\",\"port\":80}}", REFUSED },
    { "{\"host\":{\"name\":\"10.0.0.1\"}}", REFUSED },
    { "{\"host\":2130706433}", REFUSED },
    { "{\"base_url\":\"10.0.0.1\"}", REFUSED },
    { "{\"baseUrl\":\"10.0.0.1\"}", REFUSED },
    { "{\"webhookURL\":\"localhost\"}", REFUSED },
    { "{\"HREF\":\"localhost\"}", REFUSED },
    { "{\"hostName\":\"good.example\"}", "good.example" },
    { "{\"server\":\"metadata\"}", "" },
    { "{\"place\":\"2130706433\"}", "" },
    { "{\"place\":\"127.0.0.1\"}", REFUSED },
    { "{\"place\":\"127.0.0.1:80\"}", REFUSED },
    { "{\"place\":\"0x7f.1\"}", REFUSED },
    { "{\"place\":\"[::1]\"}", REFUSED },
    { "{\"place\":\"[::1]:443\"}", REFUSED },
    { "{\"place\":\"::1\"}", REFUSED },
    { "{\"place\":\"localhost\"}", REFUSED },
    { "{\"place\":\"LocalHost.\"}", REFUSED },
    { "{\"place\":\"8.8.8.8\"}", "" },
    { "{\"place\":\"12:30\"}", "" },
    { "{\"place\":\"localhosts\"}", "" },
    { "{\"http://10.0.0.1/\":1}", REFUSED },
    { "[\"http://10.0.0.1/\"]", REFUSED },
    { "\"http://10.0.0.1/\"", REFUSED },
    { "{\"nowhere\":\"good.example\"}", "" },
    { "{\"place_to_go\":\"10.0.0.1 is it\"}", "" },
    { "{\"special\":\"10\"}", REFUSED }, /* url_arguments; 10 is 0.0.0.10 */
    { "{\"special\":\"good.example\"}", "good.example" },
    { "{\"Special\":\"good.example\"}", "good.example" }, /* the same to Go */
    { "{\"SPECIAL\":\"10\"}", REFUSED },
    { "{\"\\u017fpecial\":\"10\"}", REFUSED },
    { "{\"ho\\u017ft\":\"good.example\"}", "good.example" },
    { "{\"specials\":\"good.example\"}", "" },
    { "{\"ur\\u006c\":\"http://127.0.0.1/\"}", REFUSED },
    { "{\"text\":\"see \\u0068ttp://127.0.0.\\u0031/\"}", REFUSED },
};

static bool names_are(const struct decision *d, const char *names)
{
    char all[2048];
    size_t n = 0;

    for (size_t i = 0; i < d->name_count; i++)
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s" STR_FMT, i ? " " : "",
                              STR_ARG(d->names[i]));
    if (str_equal(str_of(all, n), str_from(names)))
        return true;
    printf("# names are '%.*s'\n", (int)n, all);
    return false;
}

static void test_hosts(void)
{
    struct lab lab;

    lab_open(&lab, "default: allow\n"
                   "constraints:\n"
                   "  fetch: {deny_private_hosts: true, url_arguments: [special]}\n");
    for (size_t i = 0; i < COUNT(host_rows); i++) {
        const char *names = host_rows[i].names;
        const struct decision *d = ask(&lab, "fetch", host_rows[i].arguments);
        bool good;

        if (names[0] == REFUSED[0])
            good = is(d, VERDICT_DENIED, "constraints.fetch.deny_private_hosts");
        else if (names[0])
            good = is(d, VERDICT_NEEDS_NAMES, "constraints.fetch.deny_private_hosts") &&
                   names_are(d, names);
        else
            good = is(d, VERDICT_ALLOWED, "default");
        ok(good, "%s: %s",
           names[0] == REFUSED[0] ? "refused"
           : names[0]             ? names
                                  : "allowed",
           host_rows[i].arguments);
        ok(is(ask(&lab, "other", host_rows[i].arguments), VERDICT_ALLOWED, "default"),
           "no constraint, no refusal: %zu", i);
    }
    lab_close(&lab);
}

static const struct decision *answer(struct lab *lab, const char *const *addresses)
{
    struct answer_view answers[DECIDE_NAMES_MAX] = { 0 };
    static struct address at[DECIDE_NAMES_MAX];

    for (size_t i = 0; addresses[i]; i++) {
        unsigned a, b, c, e;

        if (sscanf(addresses[i], "%u.%u.%u.%u", &a, &b, &c, &e) != 4)
            continue;
        at[i] = address_v4((uint8_t[]){ (uint8_t)a, (uint8_t)b, (uint8_t)c, (uint8_t)e });
        answers[i] = (struct answer_view){ &at[i], 1 };
    }
    decide_conclude(lab->policy, &lab->counters, &lab->env, answers, &lab->d);
    return &lab->d;
}

static void test_names(void)
{
    static const char ref[] = "constraints.*.deny_private_hosts";
    static const char two[] = "{\"url\":\"http://a.example\",\"x\":\"ftp://b.example\"}";
    struct lab lab;

    lab_open(&lab, "default: deny\nallowlist: [fetch]\n"
                   "constraints: {\"*\": {deny_private_hosts: true}}\n"
                   "budget: {max_tool_calls: 1}\n");
    ok(is(ask(&lab, "fetch", two), VERDICT_NEEDS_NAMES, ref), "two names are asked for");
    ok(is(answer(&lab, (const char *[]){ "8.8.8.8", "9.9.9.9", NULL }), VERDICT_ALLOWED,
          "allowlist[0]"),
       "public addresses: allowed, by the list");
    ask(&lab, "fetch", two);
    ok(is(answer(&lab, (const char *[]){ "8.8.8.8", "10.0.0.1", NULL }), VERDICT_DENIED,
          ref) &&
           str_is(lab.d.detail, "b.example"),
       "one private address: denied, and the detail names the host");
    ask(&lab, "fetch", two);
    ok(is(answer(&lab, (const char *[]){ "8.8.8.8", "-", NULL }), VERDICT_DENIED, ref),
       "no answer: denied");
    ok(is(ask(&lab, "unlisted", two), VERDICT_DENIED, "default"),
       "a tool that is denied anyway makes nobody look");
    ask(&lab, "fetch", two);
    counters_advance(&lab.counters, lab.policy, STR("fetch"));
    ok(is(answer(&lab, (const char *[]){ "8.8.8.8", "9.9.9.9", NULL }), VERDICT_DENIED,
          "budget.max_tool_calls"),
       "what was used up meanwhile counts");
    ok(is(ask(&lab, "fetch", two), VERDICT_DENIED, "budget.max_tool_calls"),
       "and now nobody looks");
    lab_close(&lab);
}

static void test_name_limit(void)
{
    char text[4096] = "{\"urls\":[";
    struct lab lab;

    lab_open(&lab, "default: allow\nconstraints: {f: {deny_private_hosts: true}}\n");
    for (int n = DECIDE_NAMES_MAX; n <= DECIDE_NAMES_MAX + 1; n++) {
        size_t used = strlen("{\"urls\":[");

        for (int i = 0; i < n; i++)
            used += (size_t)snprintf(text + used, sizeof(text) - used,
                                     "\"n%d.example\",\"n0.example\",", i);
        snprintf(text + used, sizeof(text) - used, "\"n1.example\"]}");
        ok(ask(&lab, "f", text)->verdict ==
               (n > DECIDE_NAMES_MAX ? VERDICT_DENIED : VERDICT_NEEDS_NAMES),
           "%d different names", n);
        ok(n > DECIDE_NAMES_MAX || lab.d.name_count == DECIDE_NAMES_MAX,
           "each is asked for once");
    }
    lab_close(&lab);
}

/* --- paths --- */

/* @ is the test's directory, with ws/ in it; the tool may use all in it but .env. */
static const struct {
    const char *arguments;
    bool allowed;
} path_rows[] = {
    { "{\"path\":\"@/ws/a.txt\"}", true },
    { "{\"path\":\"@/ws/sub/b.txt\"}", true },
    { "{\"path\":\"@/ws/not/there/yet.txt\"}", true },
    { "{\"path\":\"@/ws\"}", false },
    { "{\"path\":\"@/ws/\"}", false },
    { "{\"path\":\"@/wsfoo/a.txt\"}", false },
    { "{\"path\":\"/etc/passwd\"}", false },
    { "{\"path\":\"@/ws/../secret.txt\"}", false },
    { "{\"path\":\"@/ws/sub/../a.txt\"}", true },
    { "{\"path\":\"@/ws/sub/../../secret.txt\"}", false },
    { "{\"path\":\"@/ws/nowhere/../../secret.txt\"}", false },
    { "{\"path\":\"@/secret/../ws/a.txt\"}", true },
    { "{\"path\":\"@//ws///a.txt\"}", true },
    { "{\"path\":\"@/ws/./a.txt\"}", true },
    { "{\"path\":\"@/ws/..//..//etc/passwd\"}", false },
    { "{\"path\":\"/../../@/ws/a.txt\"}", true },
    /* encodings */
    { "{\"path\":\"@/ws/%2e%2e/secret.txt\"}", false },
    { "{\"path\":\"@/ws/%2E%2E%2Fsecret.txt\"}", false },
    { "{\"path\":\"@/ws/%252e%252e/secret.txt\"}", false },
    { "{\"path\":\"@/ws/%25252525252e/x\"}", false },
    { "{\"path\":\"@/ws/100%25.txt\"}", true },
    { "{\"path\":\"@/ws/100%.txt\"}", true },
    { "{\"path\":\"@/ws/a%00.txt\"}", false },
    { "{\"path\":\"@/ws/a.txt\\u0000.png\"}", false },
    { "{\"path\":\"@/ws/..\\\\..\\\\secret.txt\"}", false },
    { "{\"path\":\"..\\\\secret.txt\"}", false },
    { "{\"path\":\"@/ws/back\\\\slash.txt\"}", true },
    { "{\"path\":\"@/ws/%5c..%5c..%5csecret.txt\"}", false },
    { "{\"path\":\"@/ws/\\u002e\\u002e/secret.txt\"}", false },
    { "{\"path\":\"\\u002fetc/passwd\"}", false },
    /* links */
    { "{\"path\":\"@/ws/out/passwd\"}", false },
    { "{\"path\":\"@/ws/out\"}", false },
    { "{\"path\":\"@/ws/in/b.txt\"}", true },
    { "{\"path\":\"@/ws/in/../a.txt\"}", true },
    { "{\"path\":\"@/ws/deep/../x\"}", false },
    { "{\"path\":\"@/ws/loop/x\"}", false },
    { "{\"path\":\"@/ws/tofile\"}", false },
    { "{\"path\":\"@/ws/tofile/\"}", false },
    { "{\"path\":\"@/ws/dangling\"}", false },
    { "{\"path\":\"@/door/a.txt\"}", true },
    { "{\"path\":\"@/ws/envlink\"}", false },
    { "{\"path\":\"@/ws/nowhere/../out/passwd\"}", false },
    { "{\"path\":\"@/ws/nowhere/x/../../out/passwd\"}", false },
    /* exclusion */
    { "{\"path\":\"@/ws/.env\"}", false },
    { "{\"path\":\"@/ws/sub/.env\"}", false },
    { "{\"path\":\"@/ws/sub/../.env\"}", false },
    { "{\"path\":\"@/ws/%2eenv\"}", false },
    { "{\"path\":\"@/ws/keep/.env\"}", true },
    { "{\"path\":\"@/ws/x.env\"}", true },
    { "{\"path\":\"@/ws/link.d/.env\"}", false },
    /* relative */
    { "{\"path\":\"a.txt\"}", true },
    { "{\"path\":\"./sub/b.txt\"}", true },
    { "{\"path\":\"../secret.txt\"}", false },
    { "{\"path\":\"\"}", false },
    { "{\"path\":\".\"}", false },
    { "{\"path\":\"~/a.txt\"}", false },
    { "{\"path\":\"~root\"}", false },
    { "{\"path\":\"%7e/a.txt\"}", false },
    { "{\"path\":\"C:\\\\Windows\"}", true },
    /* white space around it, which servers cut off */
    { "{\"path\":\" /etc/passwd\"}", false },
    { "{\"path\":\"\\t/etc/passwd\"}", false },
    { "{\"path\":\"\\n/etc/passwd\"}", false },
    { "{\"path\":\"\\u00a0/etc/passwd\"}", false },
    { "{\"path\":\"\\ufeff/etc/passwd\"}", false },
    { "{\"path\":\"\\u3000 \\u2028/etc/passwd\"}", false },
    { "{\"path\":\"\\u0085/etc/passwd\"}", false },
    { "{\"path\":\" ~/x\"}", false },
    { "{\"path\":\".env \"}", false },
    { "{\"path\":\"@/ws/.env\\u00a0\"}", false },
    { "{\"path\":\"@/ws/.env\\u2003\\n\"}", false },
    { "{\"path\":\"%20/etc/passwd\"}", false },
    { "{\"path\":\"%C2%A0/etc/passwd\"}", false },
    { "{\"uri\":\"file://@/ws/.env%20\"}", false },
    { "{\"uri\":\"\\ufefffile:///etc/passwd\"}", false },
    { "{\"path\":\"\\u00a0file:///etc/passwd\"}", false },
    { "{\"path\":\" \\\\\\\\etc\"}", false },
    { "{\"path\":\"  \"}", false },
    { "{\"path\":\" @/ws/a.txt\"}", true },
    { "{\"path\":\"@/ws/a.txt \"}", true },
    { "{\"path\":\"a b.txt\"}", true },
    { "{\"path\":\" a.txt\\n\"}", true },
    { "{\"path\":\"@/ws/\\u00e0\"}", true },
    { "{\"x\":\"\\ufefffile:///etc/passwd\",\"path\":\"@/ws/a.txt\"}", false },
    /* URIs */
    { "{\"uri\":\"file://@/ws/a.txt\"}", true },
    { "{\"uri\":\"file:///etc/passwd\"}", false },
    { "{\"x\":\"FILE:///etc/passwd\"}", false },
    { "{\"x\":\"file:/etc/passwd\"}", false },
    { "{\"x\":\" file:///etc/passwd\"}", false },
    { "{\"uri\":\"file://localhost@/ws/a.txt\"}", true },
    { "{\"uri\":\"file://LOCALHOST@/ws/a.txt\"}", true },
    { "{\"uri\":\"file://server@/ws/a.txt\"}", false },
    { "{\"uri\":\"file://@/ws/%2e%2e/secret.txt\"}", false },
    { "{\"uri\":\"file://@/ws/a.txt?x=1\"}", true },
    { "{\"uri\":\"file://@/ws/.env#x\"}", false },
    { "{\"uri\":\"file:a.txt\"}", true },
    /* URIs with breaks, which browsers leave out */
    { "{\"uri\":\"file://@/ws/.\\t./secret.txt\"}", false },
    { "{\"uri\":\"file://@/ws/.\\n./.\\r./etc/passwd\"}", false },
    { "{\"x\":\"f\\nile:///etc/passwd\",\"path\":\"@/ws/a.txt\"}", false },
    { "{\"path\":\"f\\tile:///etc/passwd\"}", false },
    { "{\"x\":\"\\tfil\\re\\n:/etc/passwd\",\"path\":\"@/ws/a.txt\"}", false },
    { "{\"uri\":\"file:/\\n/@/ws/.e\\tnv\"}", false },
    { "{\"uri\":\"file://@/ws/a.\\ttxt\"}", true },
    { "{\"uri\":\"file://@/ws/sub\\n/b.txt\\n\"}", true },
    { "{\"path\":\"@/ws/.\\t./x\"}", true },
    /* where it stands */
    { "{\"paths\":[\"@/ws/a.txt\",\"/etc/passwd\"]}", false },
    { "{\"paths\":[\"@/ws/a.txt\",\"@/ws/b.txt\"]}", true },
    { "{\"file_path\":\"/etc/passwd\"}", false },
    { "{\"filePath\":\"/etc/passwd\"}", false },
    { "{\"filepath\":\"/etc/passwd\"}", false },
    { "{\"outputDir\":\"/etc\"}", false },
    { "{\"filename\":\"/etc/passwd\"}", false },
    { "{\"file_name\":\"/etc/passwd\",\"path\":\"@/ws/a.txt\"}", false },
    { "{\"profile_name\":\"/etc/passwd\",\"path\":\"@/ws/a.txt\"}", true },
    { "{\"directory\":\"/etc\"}", false },
    { "{\"directories\":[\"/etc\"]}", false },
    { "{\"source\":\"@/ws/a.txt\",\"destination\":\"/etc/x\"}", false },
    { "{\"file1\":\"@/ws/a.txt\",\"file2\":\"/etc/x\"}", false },
    { "{\"options\":{\"path\":\"/etc/x\"},\"path\":\"@/ws/a.txt\"}", false },
    { "{\"path\":{\"value\":\"/etc/x\"}}", false },
    { "{\"edits\":[{\"path\":\"@/ws/a.txt\"},{\"path\":\"/x\"}]}", false },
    { "{\"blob\":\"/etc/passwd\",\"path\":\"@/ws/a.txt\"}", false }, /* path_arguments */
    { "{\"Blob\":\"/etc/passwd\",\"path\":\"@/ws/a.txt\"}", false },
    { "{\"BLOB\":\"@/ws/a.txt\"}", true },
    { "{\"\\u017frc\":\"/etc/passwd\",\"path\":\"@/ws/a.txt\"}", false },
    { "{\"lin\\u212a\":\"/etc/passwd\",\"path\":\"@/ws/a.txt\"}", false },
    { "{\"blobs\":\"/etc/passwd\",\"path\":\"@/ws/a.txt\"}", true },
    { "{\"content\":\"/etc/passwd\",\"path\":\"@/ws/a.txt\"}", true },
    { "{\"content\":\"@/ws/a.txt\"}", false },
    { "{\"profile\":\"@/ws/a.txt\"}", false },
    { "{\"path\":null}", false },
    { "{}", false },
    { NULL, false },
    { "[\"@/ws/a.txt\"]", false },
    { "\"@/ws/a.txt\"", false },
};

static void put_dir(char *out, size_t size, const char *text, const char *dir)
{
    size_t n = 0;

    for (; *text && n + strlen(dir) + 1 < size; text++) {
        if (*text == '@')
            n += (size_t)snprintf(out + n, size - n, "%s", dir);
        else
            out[n++] = *text;
    }
    out[n] = '\0';
}

static void make_tree(const char *dir)
{
    static const struct {
        const char *path, *target; /* NULL: a directory; "": a file; else a link */
    } tree[] = {
        { "@/ws", NULL },
        { "@/ws/sub", NULL },
        { "@/wsfoo", NULL },
        { "@/elsewhere", NULL },
        { "@/elsewhere/deep", NULL },
        { "@/ws/a.txt", "" },
        { "@/ws/sub/b.txt", "" },
        { "@/secret.txt", "" },
        { "@/ws/out", "/etc" },
        { "@/ws/in", "sub" },
        { "@/ws/deep", "../elsewhere/deep" },
        { "@/ws/loop", "loop" },
        { "@/ws/tofile", "@/secret.txt" },
        { "@/ws/dangling", "@/elsewhere/later" },
        { "@/door", "ws" },
        { "@/ws/envlink", ".env" },
        { "@/ws/plain", "" },
        { "@/ws/link.d", NULL },
        { "@/ws/link.d/.env", "../plain" },
    };
    char path[512], target[512];
    int faults = 0;

    for (size_t i = 0; i < COUNT(tree); i++) {
        put_dir(path, sizeof(path), tree[i].path, dir);
        put_dir(target, sizeof(target), tree[i].target ? tree[i].target : "", dir);
        if (!tree[i].target)
            faults += mkdir(path, 0700) < 0;
        else if (target[0])
            faults += symlink(target, path) < 0;
        else
            faults += mknod(path, S_IFREG | 0600, 0) < 0;
    }
    ok(faults == 0, "the test's files are there");
}

static void check_path_rows(struct lab *lab, const char *dir)
{
    for (size_t i = 0; i < COUNT(path_rows); i++) {
        char arguments[2048];
        bool given = path_rows[i].arguments != NULL;

        put_dir(arguments, sizeof(arguments), given ? path_rows[i].arguments : "", dir);
        ok(is(ask(lab, "read", given ? arguments : NULL),
              path_rows[i].allowed ? VERDICT_ALLOWED : VERDICT_DENIED,
              path_rows[i].allowed ? "default" : "constraints.read.allowed_paths"),
           "%s: %s", path_rows[i].allowed ? "allowed" : "refused",
           given ? path_rows[i].arguments : "no arguments");
    }
}

static void test_paths(void)
{
    const char *tmp = getenv("TMPDIR");
    char dir[256], cwd[300], yaml[2048];
    struct err err = { 0 };
    struct lab lab;

    snprintf(dir, sizeof(dir), "%s/decide-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return;
    make_tree(dir);
    put_dir(yaml, sizeof(yaml),
            "default: allow\n"
            "constraints:\n"
            "  read:\n"
            "    allowed_paths: ['@/ws/*', '!**/.env', '@/ws/keep/*']\n"
            "    path_arguments: [blob, link]\n"
            "  linked: {allowed_paths: ['@/door/*']}\n"
            "  one: {allowed_paths: ['@/ws/a.txt']}\n"
            "  none: {allowed_paths: []}\n",
            dir);
    lab_open(&lab, yaml);
    put_dir(cwd, sizeof(cwd), "@/ws", dir);
    lab.env.cwd = str_from(cwd);
    check_path_rows(&lab, dir);

    put_dir(yaml, sizeof(yaml), "{\"path\":\"@/ws/a.txt\"}", dir);
    ok(is(ask(&lab, "linked", yaml), VERDICT_ALLOWED, "default"),
       "links in the root of a pattern are followed");
    ok(is(ask(&lab, "one", yaml), VERDICT_ALLOWED, "default"), "a pattern of one file");
    ok(is(ask(&lab, "none", yaml), VERDICT_DENIED, "constraints.none.allowed_paths"),
       "no pattern allows nothing");
    lab.env.is_http = true;
    ok(is(ask(&lab, "read", yaml), VERDICT_ALLOWED, "default"),
       "absolute paths to a server over HTTP");
    ok(is(ask(&lab, "read", "{\"path\":\"a.txt\"}"), VERDICT_DENIED,
          "constraints.read.allowed_paths"),
       "relative paths mean nothing to a server over HTTP");
    put_dir(yaml, sizeof(yaml), "{\"uri\":\"file://@/ws/a.txt\\n\"}", dir);
    ok(is(ask(&lab, "read", yaml), VERDICT_ALLOWED, "default"),
       "a line break in a URI does not make it a relative path");
    lab.env = (struct decide_env){ 0 };
    ok(is(ask(&lab, "read", "{\"path\":\"a.txt\"}"), VERDICT_DENIED,
          "constraints.read.allowed_paths"),
       "nor without a known directory");
    lab_close(&lab);
    if (file_remove_tree(dir, &err) < 0)
        printf("# %s\n", err.msg);
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
    test_hosts();
    test_names();
    test_name_limit();
    test_paths();
    test_counters();
    test_undecidable();
    test_outright();
    test_message();
    test_limits();
    test_reasons();
    return tap_done();
}
