/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a verdict costs: policy time       CPU time of one, best of five over a million
 *                       policy count few|many   a workload to count instructions over
 *
 * `many` has 10,000 exact names and 100 globs, `few` ten rules; both decide over the same
 * calls. Only bench_calls() is counted, loading is not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "policy/decide.h"

#define ROUNDS   5
#define VERDICTS 1000000
#define COUNTED  20000
#define LIMIT_NS 5000.0

struct bench {
    struct policy *policy;
    struct counters counters;
    struct arena arena;
    struct json json;
    uint64_t allowed;
};

void bench_calls(struct bench *b, const char *const *tools, size_t count, size_t repeat);

static void must(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "policy bench: %s\n", what);
    exit(1);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void bench_open(struct bench *b, str yaml, const char *arguments)
{
    struct err err = { 0 };

    *b = (struct bench){ 0 };
    must(policy_parse(&b->policy, yaml, "bench", &err) == 0, err.msg);
    must(counters_init(&b->counters, b->policy, 0, &err) == 0, err.msg);
    must(json_parse(&b->json, str_from(arguments), NULL, &err) == 0, err.msg);
    arena_init(&b->arena, DECIDE_MEMORY);
}

static void bench_close(struct bench *b)
{
    counters_release(&b->counters);
    policy_free(b->policy);
    json_release(&b->json);
    arena_release(&b->arena);
}

__attribute__((noinline)) void bench_calls(struct bench *b, const char *const *tools,
                                           size_t count, size_t repeat)
{
    const struct decide_env env = { .cwd = STR("/") };
    struct call_view call = { .json = &b->json, .arguments = JSON_ROOT };
    struct decision d;

    for (size_t i = 0; i < repeat; i++) {
        arena_reset(&b->arena);
        call.tool = str_from(tools[i % count]);
        decide_examine(b->policy, &b->counters, &call, &env, &b->arena, &d);
        b->allowed += d.verdict == VERDICT_ALLOWED;
    }
}

/* --- time --- */

static const struct {
    const char *what, *yaml, *arguments;
} kinds[] = {
    { "lists", "default: deny\nallowlist: [web_search, \"read_*\"]\ndenylist: [shell]\n",
      "{\"query\":\"what is the weather\"}" },
    { "hosts", "default: allow\nconstraints: {read_file: {deny_private_hosts: true}}\n",
      "{\"url\":\"https://93.184.216.34/a/b?c=d\",\"headers\":{\"accept\":\"text/html\"},"
      "\"body\":\"a few words that have no address in them, nor anything else\"}" },
    { "hosts, refused",
      "default: allow\nconstraints: {read_file: {deny_private_hosts: true}}\n",
      "{\"url\":\"http://user@0x7f.1:8080/a\",\"method\":\"GET\"}" },
    { "paths",
      "default: allow\n"
      "constraints: {read_file: {allowed_paths: [\"/usr/share/*\", \"!**/.env\"]}}\n",
      "{\"path\":\"/usr/share/doc/README\",\"encoding\":\"utf-8\"}" },
    { "patterns",
      "default: allow\n"
      "constraints: {read_file: {deny_patterns: [\"BEGIN [A-Z ]*PRIVATE KEY\"], "
      "max_argument_bytes: 10000}}\n",
      "{\"path\":\"/usr/share/doc/README\",\"encoding\":\"utf-8\"}" },
};

static double best_of(struct bench *b)
{
    static const char *const tools[] = { "read_file" };
    double best = 1e18;

    for (int round = 0; round < ROUNDS; round++) {
        double start = now(), used;

        bench_calls(b, tools, 1, VERDICTS);
        used = (now() - start) / VERDICTS;
        best = used < best ? used : best;
    }
    return best;
}

static int run_time(void)
{
    int beyond = 0;

    printf("%-16s %10s   (best of %d over %d, CPU time; limit %.0f ns)\n", "verdict",
           "ns", ROUNDS, VERDICTS, LIMIT_NS);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct bench b;
        double best;

        bench_open(&b, str_from(kinds[i].yaml), kinds[i].arguments);
        best = best_of(&b);
        printf("%-16s %10.0f%s\n", kinds[i].what, best,
               best > LIMIT_NS ? "   TOO SLOW" : "");
        beyond += best > LIMIT_NS;
        bench_close(&b);
    }
    return beyond != 0;
}

/* --- instructions --- */

static void add_rules(struct buf *b, const char *list, size_t names, size_t globs)
{
    buf_printf(b, "%s:\n", list);
    for (size_t i = 0; i < names; i++)
        buf_printf(b, "- %s_tool_%zu_run\n", list, i);
    for (size_t i = 0; i < globs; i++)
        buf_printf(b, i % 4 == 3 ? "- \"*_%s%zu\"\n" : "- \"%s_%zu_*\"\n", list, i);
}

static int run_count(bool many)
{
    static const char *const tools[] = {
        "denylist_tool_3_run",
        "allowlist_tool_2_run",
        "denylist_0_thing",
        "allowlist_1_other",
        "unheard_of_tool",
        "web_search",
        "deny",
        "a_tool_with_a_name_of_some_length",
    };
    CLEANUP(buf_release) struct buf yaml = { 0 };
    struct bench b;

    buf_add(&yaml, STR("default: deny\n"));
    add_rules(&yaml, "denylist", many ? 5000 : 4, many ? 50 : 1);
    add_rules(&yaml, "allowlist", many ? 5000 : 4, many ? 50 : 1);
    must(!yaml.failed, "too many rules");
    bench_open(&b, buf_str(&yaml), "{}");
    bench_calls(&b, tools, COUNT(tools), COUNTED);
    bench_close(&b);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "time") == 0)
        return run_time();
    if (argc == 3 && strcmp(argv[1], "count") == 0)
        return run_count(strcmp(argv[2], "many") == 0);
    fprintf(stderr, "usage: policy time | count few|many\n");
    return 3;
}
