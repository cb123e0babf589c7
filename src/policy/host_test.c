/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts, row by row, as a verdict sees them. */
#include "policy/host.h"

#include "tests/deciding.h"
#include "tests/tap.h"

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

int main(void)
{
    test_hosts();
    test_names();
    test_name_limit();
    return tap_done();
}
