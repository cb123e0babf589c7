/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/tap.h"

#define ARGS_MAX 8

static const struct command sample = {
    .name = "sample",
    .usage = "[--json] FILE",
    .summary = "a command for this test",
};

struct values {
    bool json;
    const char *out;
    struct option_number size;
    struct option_list cards;
    struct operands operands;
    enum exit_code code;
};

/* Parse a line of words; argv is rebuilt because the parser may move its entries. */
static bool parse(struct values *v, const char *line, int min, int max)
{
    static char copy[512];
    static char *argv[ARGS_MAX + 1]; /* outlives the call: operands point into it */
    int argc = 1;
    const struct option table[] = {
        { "json", NULL, "print JSON", .flag = &v->json },
        { "out", "FILE", "write there", .text = &v->out },
        { "size", "N", "a number", .number = &v->size },
        { "card", "CARD", "may be repeated", .list = &v->cards },
        { 0 },
    };
    size_t n = strlen(line);

    *v = (struct values){ .operands = { .min = min, .max = max }, .code = EXIT_GOOD };
    argv[0] = copy;
    memcpy(copy, line, n + 1);
    for (size_t i = 0; i < n; i++) {
        if (copy[i] == ' ' && argc < ARGS_MAX) {
            copy[i] = '\0';
            argv[argc++] = copy + i + 1;
        }
    }
    argv[argc] = NULL;
    return options_parse(&sample, table, argc, argv, &v->operands, &v->code);
}

static bool text_is(const char *got, const char *want)
{
    return want ? got && strcmp(got, want) == 0 : !got;
}

static void test_good_lines_bind_their_values(void)
{
    static const struct {
        const char *line;
        bool json;
        const char *out;
        uint64_t size;
        size_t cards;
        int operands;
        int dashed;
    } cases[] = {
        { "sample", false, NULL, 0, 0, 0, -1 },
        { "sample --json", true, NULL, 0, 0, 0, -1 },
        { "sample --out f", false, "f", 0, 0, 0, -1 },
        { "sample --out=f", false, "f", 0, 0, 0, -1 },
        { "sample --out= a", false, "", 0, 0, 1, -1 },
        { "sample --out=a=b", false, "a=b", 0, 0, 0, -1 },
        { "sample --out --json", false, "--json", 0, 0, 0, -1 },
        { "sample a --json b", true, NULL, 0, 0, 2, -1 },
        { "sample - a", false, NULL, 0, 0, 2, -1 },
        { "sample a -- --json -x", false, NULL, 0, 0, 3, 2 },
        { "sample --", false, NULL, 0, 0, 0, 0 },
        { "sample --card a --card=b", false, NULL, 0, 2, 0, -1 },
        { "sample --size 18446744073709551615", false, NULL, UINT64_MAX, 0, 0, -1 },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct values v;
        bool went_on = parse(&v, cases[i].line, 0, OPERANDS_ANY);

        ok(went_on && v.json == cases[i].json && text_is(v.out, cases[i].out) &&
               v.size.value == cases[i].size && v.cards.count == cases[i].cards &&
               v.operands.count == cases[i].operands &&
               v.operands.dashed == cases[i].dashed && !v.operands.at[v.operands.count],
           "%s", cases[i].line);
    }
}

static void test_bad_lines_are_bad_input(void)
{
    static const char *const lines[] = {
        "sample --nope",          "sample -j",
        "sample --json=yes",      "sample --out",
        "sample --out a --out b", "sample --size x",
        "sample --size -1",       "sample --size 18446744073709551616",
        "sample --size=",         "sample --size 1 --size 1",
        "sample --jso",           "sample ---json",
        "sample a b c",
    };

    for (size_t i = 0; i < COUNT(lines); i++) {
        struct values v;

        ok(!parse(&v, lines[i], 0, 2) && v.code == EXIT_BAD_INPUT, "refused: %s",
           lines[i]);
    }
}

static void test_operand_count_is_checked_on_both_sides(void)
{
    struct values v;

    ok(!parse(&v, "sample", 1, 2) && v.code == EXIT_BAD_INPUT, "none where one is due");
    ok(parse(&v, "sample a", 1, 2), "one is enough");
    ok(parse(&v, "sample a b", 1, 2), "two are allowed");
    ok(!parse(&v, "sample a b c", 1, 2), "three are not");
    ok(v.operands.at && text_is(v.operands.at[0], "a"), "operands keep their order");
}

static void test_a_list_is_full_at_its_limit(void)
{
    char flag[] = "--card=x", name[] = "sample";
    char *argv[OPTION_LIST_MAX + 2] = { name };
    struct option_list cards = { .count = 0 };
    const struct option table[] = {
        { "card", "CARD", "repeated", .list = &cards },
        { 0 },
    };
    struct operands none = { .max = 0 };
    enum exit_code code = EXIT_GOOD;

    for (int i = 1; i < OPTION_LIST_MAX + 2; i++)
        argv[i] = flag;
    ok(options_parse(&sample, table, OPTION_LIST_MAX + 1, argv, &none, &code),
       "%d of one flag", OPTION_LIST_MAX);
    cards.count = 0;
    argv[1] = flag; /* where the operands ended */
    ok(!options_parse(&sample, table, OPTION_LIST_MAX + 2, argv, &none, &code) &&
           code == EXIT_BAD_INPUT,
       "%d is one too many", OPTION_LIST_MAX + 1);
}

/* What the help says goes to stdout, which is TAP here: give it a file for a moment. */
static void test_help_lists_every_flag(void)
{
    char text[4096] = "";
    FILE *catch = tmpfile();
    int saved = dup(STDOUT_FILENO);
    struct values v;
    bool went_on;

    fflush(stdout);
    dup2(fileno(catch), STDOUT_FILENO);
    went_on = parse(&v, "sample --json --help --nope", 0, 0);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    rewind(catch);
    text[fread(text, 1, sizeof(text) - 1, catch)] = '\0';
    fclose(catch);
    ok(!went_on && v.code == EXIT_GOOD, "--help is a good end");
    ok(strstr(text, "usage: assay sample [--json] FILE"), "usage is shown");
    ok(strstr(text, "--out FILE") && strstr(text, "may be repeated") &&
           strstr(text, "--size N") && strstr(text, "--help"),
       "every flag has its line");
}

int main(void)
{
    test_good_lines_bind_their_values();
    test_bad_lines_are_bad_input();
    test_operand_count_is_checked_on_both_sides();
    test_a_list_is_full_at_its_limit();
    test_help_lists_every_flag();
    return tap_done();
}
