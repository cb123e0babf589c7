/* SPDX-License-Identifier: Apache-2.0 */
/* What a policy file may say, and for everything else the line and what was expected. */
#include "policy/policy.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "policy/yaml.h"
#include "tests/tap.h"

/* Refused: the message begins with "f:LINE: " and has TEXT in it. */
static const struct {
    const char *yaml;
    unsigned line;
    const char *text;
} bad[] = {
    /* the file */
    { "", 1, "the file is empty" },
    { "# only a comment\n", 1, "the file is empty" },
    { "---\n...\n", 2, "the file is empty" },
    { "{}\n", 1, "the file is empty" },
    { "~\n", 1, "the file is empty" },
    { "just text\n", 1, "expected a map of keys and values, found 'just text'" },
    { "[a, b]\n", 1, "expected a map of keys and values, found a list" },
    { "default: deny\n---\ndefault: allow\n", 2, "expected one document" },
    { "default: deny\n\tallowlist: []\n", 2, "not YAML" },
    { "default: [deny\n", 2, "not YAML" },
    { "default: deny\nx\xff: 1\n", 2, "expected UTF-8" },
    /* keys */
    { "default: deny\nallow_list: [a]\n", 2,
      "unknown key 'allow_list' in a policy file" },
    { "default: deny\nallow_list: [a]\n", 2, "allowlist" },
    { "Default: deny\n", 1, "unknown key 'Default'" },
    { "default: deny\n<<: {a: 1}\n", 2, "unknown key '<<'" },
    { "default: deny\ndenylist: [a]\ndefault: allow\n", 3,
      "'default' stands here a second time (first in line 1)" },
    { "constraints:\n  a: {max_calls: 1}\n  b: {max_calls: 1}\n  a: {max_calls: 2}\n", 4,
      "'a' stands here a second time (first in line 2)" },
    { "constraints:\n  a: {max_calls: 1,\n   max_calls: 2}\n", 3, "a second time" },
    { "\"default\": deny\ndefault: allow\n", 2, "a second time" },
    { "? [a, b]\n: 1\n", 1, "expected a name as key" },
    { "constraints:\n  f: {max_call: 1}\n", 2, "unknown key 'max_call'" },
    { "budget: {max_tool_call: 1}\n", 1, "unknown key 'max_tool_call' in budget" },
    { "tools: {allowlist: [a]}\n", 1, "unknown key 'allowlist' in tools" },
    /* anchors, aliases, tags */
    { "default: deny\nallowlist: &x [a]\n", 2, "anchors and aliases" },
    { "allowlist: [*a]\n", 1, "quote a name that begins with one of them" },
    { "allowlist: !!seq [a]\n", 1, "tags" },
    { "default: deny\nconstraints: {r: {allowed_paths: [!**/.env]}}\n", 2, "not YAML" },
    { "default: deny\nconstraints: {r: {allowed_paths: [!x /.env]}}\n", 2, "tags" },
    { "%TAG ! tag:x,2000:\n---\ndefault: deny\n", 1, "tags" },
    /* types */
    { "version: \"2\"\n", 1, "version: expected version \"1\", found '2'" },
    { "version: 1.0\n", 1, "expected version \"1\"" },
    { "version: [1]\n", 1, "found a list" },
    { "default: maybe\n", 1, "default: expected allow or deny, found 'maybe'" },
    { "default:\n", 1, "default: expected allow or deny, found nothing" },
    { "default: [allow]\n", 1, "expected allow or deny, found a list" },
    { "default: true\n", 1, "expected allow or deny, found 'true'" },
    { "allowlist: read_x\n", 1, "allowlist: expected a list, such as [a, b]" },
    { "allowlist:\n", 1, "expected a list, such as [a, b], found nothing" },
    { "allowlist: {a: b}\n", 1, "found a map" },
    { "allowlist:\n  - a\n  - 1\n", 3, "expected a name" },
    { "allowlist: [a, true]\n", 1, "expected a name" },
    { "allowlist: [a, 1.5e3]\n", 1, "expected a name" },
    { "allowlist: [a, 0x1f]\n", 1, "expected a name" },
    { "allowlist: [a, ~]\n", 1, "expected a name" },
    { "allowlist: [a, .inf]\n", 1, "expected a name" },
    { "allowlist: [a, [b]]\n", 1, "expected a name" },
    { "allowlist: [a, \"\"]\n", 1, "found an empty text" },
    { "allowlist: [\"a[b\"]\n", 1, "a ']' for every '['" },
    { "denylist: [\"[\"]\n", 1, "a ']' for every '['" },
    { "constraints: [a]\n", 1, "a map from tools to their constraints" },
    { "constraints:\n  f:\n", 2, "f: expected a map of keys and values, found nothing" },
    { "constraints:\n  \"a[\": {max_calls: 1}\n", 2, "a ']' for every '['" },
    { "constraints:\n  \"\": {max_calls: 1}\n", 2, "a tool's name" },
    { "constraints:\n  f:\n    deny_private_hosts: yes\n", 3,
      "deny_private_hosts: expected true or false, found 'yes'" },
    { "constraints: {f: {deny_private_hosts: \"true\"}}\n", 1, "expected true or false" },
    { "constraints: {f: {max_calls: -1}}\n", 1, "a whole number, 0 or more" },
    { "constraints: {f: {max_calls: 1.5}}\n", 1, "a whole number, 0 or more" },
    { "constraints: {f: {max_calls: \"1\"}}\n", 1, "a whole number, 0 or more" },
    { "constraints: {f: {max_calls: 9007199254740992}}\n", 1, "up to 9007199254740991" },
    { "constraints: {f: {max_calls: 99999999999999999999}}\n", 1, "a whole number" },
    { "constraints: {f: {allowed_paths: /x}}\n", 1, "expected a list" },
    { "constraints: {f: {allowed_paths: [x/y]}}\n", 1, "an absolute path" },
    { "constraints: {f: {allowed_paths: [\"!x\"]}}\n", 1, "an absolute path" },
    { "constraints: {f: {allowed_paths: [\"!\"]}}\n", 1, "an absolute path" },
    { "constraints: {f: {allowed_paths: [/x/../y]}}\n", 1, "without '..'" },
    { "constraints: {f: {allowed_paths: [/x//y]}}\n", 1, "without '..', '.' and '//'" },
    { "constraints: {f: {allowed_paths: [/x/]}}\n", 1, "without '/' at its end" },
    { "constraints:\n  f:\n    deny_patterns:\n      - ok\n      - \"(\"\n", 5,
      "not a regular expression" },
    { "constraints: {f: {deny_patterns: x}}\n", 1, "expected a list" },
    { "constraints:\n  f: {url_arguments: [u]}\n", 2, "deny_private_hosts: true" },
    { "constraints:\n  f: {path_arguments: [u]}\n", 2,
      "expected allowed_paths beside it" },
    { "budget: 5\n", 1, "budget: expected a map" },
    { "pin: maybe\n", 1, "pin: expected off, warn or strict" },
    /* the public tool's form */
    { "mode: enforce\nallowlist: [a]\n", 2, "two forms" },
    { "default: deny\ntools: {default: deny}\n", 1, "two forms" },
    { "mode: guard\n", 1, "mode: expected audit or enforce, found 'guard'" },
    { "tools: {allow: read_x}\n", 1, "allow: expected a list" },
    { "tools: {default: enforce}\n", 1, "expected allow or deny" },
    { "mode: audit\nstore_args: 1\n", 2, "expected true or false" },
    { "mode: audit\nserver_id: 5\n", 2, "expected a text" },
    { "mode: audit\nmax: 5\n", 2, "unknown key 'max'" },
};

static void test_errors(void)
{
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct policy *p = NULL;
        struct err err = { 0 };
        char where[32];
        int result = policy_parse(&p, str_from(bad[i].yaml), "f", &err);

        snprintf(where, sizeof(where), "f:%u: ", bad[i].line);
        ok(result < 0 && !p && err.code == ERR_FORMAT &&
               str_starts(str_from(err.msg), str_from(where)) &&
               strstr(err.msg, bad[i].text),
           "row %zu: %s", i, result < 0 ? err.msg : "was loaded");
    }
}

static struct policy *load(const char *yaml)
{
    struct policy *p = NULL;
    struct err err = { 0 };

    if (policy_parse(&p, str_from(yaml), "f", &err) < 0)
        printf("# %s\n", err.msg);
    return p;
}

static void test_our_form(void)
{
    struct policy *p = load("version: \"1\"\n"
                            "default: deny                 # allow | deny\n"
                            "allowlist: [web_search, web_fetch, \"read_*\"]\n"
                            "denylist:\n- shell_exec\n- file_delete\n"
                            "constraints:\n"
                            "  web_fetch:\n    deny_private_hosts: true\n"
                            "    max_calls: 0x10\n"
                            "  read_file:\n"
                            "    allowed_paths: [\"/workspace/*\", \"!**/.env\"]\n"
                            "    deny_patterns: ['a', b]\n"
                            "budget: {max_tool_calls: 9007199254740991}\n"
                            "pin: off\n");

    if (!p) {
        ok(false, "the example loads");
        return;
    }
    ok(!p->default_allow && p->default_given && p->allowlist.count == 3 &&
           p->denylist.count == 2 && p->constraint_count == 2 && !p->public_form,
       "the example loads");
    ok(str_is(p->denylist.refs[1], "denylist[1]") &&
           str_is(p->allowlist.names[2], "read_*"),
       "lists know their refs");
    ok(p->constraints[0].deny_private_hosts && p->constraints[0].line == 8 &&
           p->constraints[0].max_calls.value == 16,
       "constraints know their line");
    ok(p->constraints[1].allowed_paths.count == 2 &&
           p->constraints[1].allowed_paths.at[1].exclude &&
           str_is(p->constraints[1].allowed_paths.at[0].root, "/workspace") &&
           str_is(p->constraints[1].allowed_paths.at[0].tail, "/*"),
       "patterns are split at their root");
    ok(p->constraints[1].deny_pattern_count == 2 &&
           str_is(p->constraints[1].pattern_refs[1],
                  "constraints.read_file.deny_patterns[1]"),
       "so many patterns");
    ok(p->max_tool_calls.value == POLICY_COUNT_MAX && !p->max_wall_time_sec.given,
       "the largest budget");
    ok(p->pin == POLICY_PIN_OFF && !p->notes, "off is a word");
    policy_free(p);
}

static void test_public_form(void)
{
    struct policy *p = load("version: \"1\"\n"
                            "server_id: \"\"\n"
                            "mode: enforce\n"
                            "store_args: false\n"
                            "audit_dir: \".assay/mcp\"\n"
                            "tools:\n"
                            "  default: allow\n"
                            "  allow: [\"read_*\"]\n"
                            "  deny: [\"delete_*\"]\n"
                            "  constraints:\n"
                            "    web_fetch: {max_calls: 10, deny_patterns: [\"x\"]}\n"
                            "budget: {max_tool_calls: 100, max_wall_time_sec: 300}\n");

    if (!p) {
        ok(false, "the public tool's form loads");
        return;
    }
    ok(p->public_form && p->default_allow && p->mode == POLICY_MODE_ENFORCE &&
           p->allowlist.count == 1 && p->denylist.count == 1 &&
           p->constraint_count == 1 && p->max_tool_calls.value == 100 &&
           p->max_wall_time_sec.value == 300,
       "the public tool's form loads");
    ok(str_is(p->denylist.refs[0], "denylist[0]"), "its refs are those of our form");
    ok(p->notes && p->notes->line == 2 && p->notes->next && p->notes->next->line == 3 &&
           str_starts(p->notes->next->text, STR("mode: the profile is chosen")),
       "what has no effect is noted, line by line");
    policy_free(p);
}

static void test_defaults(void)
{
    struct policy *p = load("denylist: [a]\n");

    ok(p && !p->default_allow && !p->default_given, "a missing default is deny");
    policy_free(p);
    p = load("tools: {deny: [a]}\n");
    ok(p && !p->default_allow, "also in the public tool's form");
    policy_free(p);
    p = load("version: 1\nallowlist: [on, yes, \"1\", 'true', no]\n");
    ok(p && p->allowlist.count == 5, "words and quoted texts are names");
    policy_free(p);
    p = load("\xef\xbb\xbf"
             "default: deny\r\ndenylist: [a]\r\n");
    ok(p && p->denylist.count == 1, "a BOM and CRLF are read");
    policy_free(p);
    policy_free(NULL);
}

/* --- limits --- */

static int parse(const struct buf *text, struct err *err)
{
    struct policy *p = NULL;
    int result = policy_parse(&p, buf_str(text), "f", err);

    policy_free(p);
    return result;
}

static void test_bytes(void)
{
    for (size_t more = 0; more <= 1; more++) {
        CLEANUP(buf_release) struct buf b = { .max = 2 * POLICY_MAX_BYTES };
        struct err err = { 0 };

        buf_add(&b, STR("default: deny\n#"));
        while (b.n < POLICY_MAX_BYTES - 1 + more)
            buf_add_char(&b, 'x');
        buf_add_char(&b, '\n');
        ok(parse(&b, &err) == (more ? -1 : 0) && (!more || err.code == ERR_LIMIT),
           "%zu bytes: %s", b.n, err.msg);
    }
}

static void test_depth(void)
{
    for (size_t depth = YAML_MAX_DEPTH; depth <= YAML_MAX_DEPTH + 1; depth++) {
        CLEANUP(buf_release) struct buf b = { 0 };
        struct err err = { 0 };

        buf_add(&b, STR("allowlist: ")); /* in a map: one level */
        for (size_t i = 1; i < depth; i++)
            buf_add_char(&b, '[');
        for (size_t i = 1; i < depth; i++)
            buf_add_char(&b, ']');
        ok(parse(&b, &err) < 0 &&
               err.code == (depth > YAML_MAX_DEPTH ? ERR_LIMIT : ERR_FORMAT),
           "%zu levels: %s", depth, err.msg);
    }
}

static void test_nodes(void)
{
    for (size_t more = 0; more <= 1; more++) {
        CLEANUP(buf_release) struct buf b = { .max = 2 * POLICY_MAX_BYTES };
        struct err err = { 0 };

        buf_add(&b, STR("allowlist: [")); /* root, key, list: three */
        for (size_t i = 0; i < YAML_MAX_NODES - 3 + more; i++)
            buf_add(&b, STR("a,"));
        buf_add(&b, STR("]\n"));
        ok(parse(&b, &err) == (more ? -1 : 0) && (!more || err.code == ERR_LIMIT),
           "%zu more than the limit of values: %s", more, err.msg);
    }
}

static void test_name(void)
{
    for (size_t n = POLICY_NAME_MAX; n <= POLICY_NAME_MAX + 1; n++) {
        CLEANUP(buf_release) struct buf b = { 0 };
        struct err err = { 0 };

        buf_add(&b, STR("constraints: {a: {max_calls: 1}}\nallowlist: ["));
        for (size_t i = 0; i < n; i++)
            buf_add_char(&b, 'a');
        buf_add(&b, STR("]\n"));
        ok(parse(&b, &err) == (n > POLICY_NAME_MAX ? -1 : 0), "a name of %zu bytes: %s",
           n, err.msg);
    }
}

int main(void)
{
    test_errors();
    test_our_form();
    test_public_form();
    test_defaults();
    test_bytes();
    test_depth();
    test_nodes();
    test_name();
    return tap_done();
}
