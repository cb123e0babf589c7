/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the JSON core takes, in CPU time, best of five: our parse beside simdjson's
 * DOM on the same texts, and canonical form with SHA-256 beside our parse. json
 * [SIMDJSON.so]     built from simdjson.cc; without it that column is empty
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "evidence/crypto.h"
#include "json/jcs.h"
#include "json/json.h"
#include "json/number.h"

#define ROUNDS   5
#define LARGE    ((size_t)10 << 20)
#define MESSAGES 2000

/* Parsed one after the other `repeat` times: enough to measure. */
struct corpus {
    const char *name;
    struct buf text; /* all texts, one after the other */
    size_t count;
    size_t *starts; /* count + 1 */
    int repeat;
    double jcs_limit; /* canonical form and SHA-256, in parses; 0: not asked */
};

static void *(*other_prepare)(const char *, size_t);
static bool (*other_parse)(void *);
static int beyond;

static void must(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "json bench: %s\n", what);
    exit(1);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static str text_at(const struct corpus *c, size_t i)
{
    return str_of(c->text.p + c->starts[i], c->starts[i + 1] - c->starts[i]);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 11;
}

/* A double in [0, 1000) with 17 digits, as most languages print a measurement. */
static void add_float(struct buf *b, uint64_t *state)
{
    double value = (double)next_random(state) / 9007199254740992.0 * 1000;

    buf_printf(b, "%.17g", value);
}

static void add_prose(struct buf *b, size_t n, uint64_t *state)
{
    static const char *const words[] = {
        "the",
        "evidence",
        "of",
        "a",
        "call",
        "was",
        "written",
        "before",
        "its",
        "answer",
        "left",
        "(see",
        "line",
        "42)",
        "caf\xc3\xa9",
        "\\\"quoted\\\"",
        "and",
        "file_name.c:",
        "returns",
        "error",
        "while",
        "reading",
        "https://example.org/a/b?c=d",
        "0x1f",
        "status=ok",
    };
    size_t end = b->n + n, column = 0;

    while (b->n < end && !b->failed) {
        str word = str_from(words[next_random(state) % COUNT(words)]);

        buf_add(b, word);
        column += word.n + 1;
        buf_add(b, column > 72 ? STR("\\n") : STR(" "));
        column = column > 72 ? 0 : column;
    }
}

static void add_mixed_row(struct buf *b, uint64_t *state, size_t i)
{
    buf_printf(b, "{\"id\":%zu,\"name\":\"row %zu\",\"ok\":%s,\"score\":", i, i,
               i & 1 ? "true" : "false");
    add_float(b, state);
    buf_add(b, STR(",\"note\":\"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x81\xae"
                   "\xe3\x83\x86\xe3\x82\xad\xe3\x82\xb9\xe3\x83\x88 \xf0\x9f\x98\x80 "
                   "caf\\u00e9\",\"at\":["));
    add_float(b, state);
    buf_add_char(b, ',');
    add_float(b, state);
    buf_add(b, STR("],\"body\":\""));
    add_prose(b, 300, state);
    buf_add(b, STR("\",\"tags\":[\"alpha\",\"beta\",null],\"size\":"));
    buf_add_u64(b, next_random(state) % 100000);
    buf_add_char(b, '}');
}

static void one_text(struct corpus *c)
{
    c->count = 1;
    c->starts = calloc(2, sizeof(*c->starts));
    must(c->starts && !c->text.failed, "no memory");
    c->starts[1] = c->text.n;
}

static void make_messages(struct corpus *c)
{
    uint64_t state = 1;

    c->starts = calloc(MESSAGES + 1, sizeof(*c->starts));
    must(c->starts != NULL, "no memory");
    for (c->count = 0; c->count < MESSAGES; c->count++) {
        c->starts[c->count] = c->text.n;
        buf_printf(
            &c->text,
            "{\"jsonrpc\":\"2.0\",\"id\":%zu,\"method\":\"tools/call\",\"params\":"
            "{\"name\":\"search_files\",\"arguments\":{\"path\":\"/srv/data/%06u\","
            "\"query\":\"quarterly \\\"report\\\"\",\"limit\":%u,\"recursive\":true,"
            "\"filters\":[\"pdf\",\"docx\"],\"threshold\":0.75},\"_meta\":"
            "{\"progressToken\":\"tok-%08x\",\"trace\":\"00-4bf92f3577b34da6\"}}}",
            c->count + 1000, (unsigned)(next_random(&state) % 1000000),
            (unsigned)(next_random(&state) % 90 + 10), (unsigned)next_random(&state));
    }
    c->starts[c->count] = c->text.n;
}

static void make_mixed(struct corpus *c)
{
    uint64_t state = 2;

    buf_add_char(&c->text, '[');
    for (size_t i = 0; c->text.n < LARGE; i++) {
        if (i)
            buf_add_char(&c->text, ',');
        add_mixed_row(&c->text, &state, i);
    }
    buf_add_char(&c->text, ']');
    one_text(c);
}

static void make_text(struct corpus *c)
{
    uint64_t state = 3;

    buf_add(&c->text,
            STR("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":"
                "\"text\",\"text\":\""));
    add_prose(&c->text, LARGE, &state);
    buf_add(&c->text, STR("\"}]}}"));
    one_text(c);
}

static void make_floats(struct corpus *c)
{
    uint64_t state = 4;

    buf_add_char(&c->text, '[');
    add_float(&c->text, &state);
    while (c->text.n < LARGE) {
        buf_add_char(&c->text, ',');
        add_float(&c->text, &state);
    }
    buf_add_char(&c->text, ']');
    one_text(c);
}

static void parse_all(const struct corpus *c, struct json *j)
{
    struct err err = { 0 };

    for (size_t i = 0; i < c->count; i++)
        must(json_parse(j, text_at(c, i), NULL, &err) == 0, err.msg);
}

static double best_parse(const struct corpus *c, struct json *j)
{
    double best = 1e18;

    for (int round = 0; round < ROUNDS; round++) {
        double start = now(), took;

        for (int i = 0; i < c->repeat; i++)
            parse_all(c, j);
        took = (now() - start) / c->repeat;
        best = took < best ? took : best;
    }
    return best;
}

static double best_other(const struct corpus *c)
{
    void **prepared = calloc(c->count, sizeof(*prepared));
    double best = 1e18;

    must(prepared != NULL, "no memory");
    for (size_t i = 0; i < c->count; i++)
        prepared[i] = other_prepare(text_at(c, i).p, text_at(c, i).n);
    for (int round = 0; round < ROUNDS; round++) {
        double start = now(), took;

        for (int k = 0; k < c->repeat; k++) {
            for (size_t i = 0; i < c->count; i++)
                must(other_parse(prepared[i]), "simdjson refuses a text");
        }
        took = (now() - start) / c->repeat;
        best = took < best ? took : best;
    }
    free(prepared); /* the texts stay: the process ends soon */
    return best;
}

/* Of texts that are parsed already. */
static double best_canonical(const struct corpus *c, struct hasher *h)
{
    struct json *indexes = calloc(c->count, sizeof(*indexes));
    struct sink sink = hasher_sink(h);
    struct err err = { 0 };
    double best = 1e18;

    must(indexes != NULL, "no memory");
    for (size_t i = 0; i < c->count; i++)
        must(json_parse(&indexes[i], text_at(c, i), NULL, &err) == 0, err.msg);
    for (int round = 0; round < ROUNDS; round++) {
        double start = now(), took;

        for (int k = 0; k < c->repeat; k++) {
            for (size_t i = 0; i < c->count; i++) {
                must(jcs_write(&indexes[i], JSON_ROOT, JCS_RFC8785, &sink, &err) == 0,
                     err.msg);
                (void)hasher_finish(h);
            }
        }
        took = (now() - start) / c->repeat;
        best = took < best ? took : best;
    }
    for (size_t i = 0; i < c->count; i++)
        json_release(&indexes[i]);
    free(indexes);
    return best;
}

static double best_hash(const struct corpus *c)
{
    double best = 1e18;

    for (int round = 0; round < ROUNDS; round++) {
        double start = now(), took;

        for (int k = 0; k < c->repeat; k++) {
            for (size_t i = 0; i < c->count; i++)
                (void)digest_of(text_at(c, i));
        }
        took = (now() - start) / c->repeat;
        best = took < best ? took : best;
    }
    return best;
}

static void print_ratio(double ours, double theirs, double limit)
{
    if (limit > 0)
        printf("  %6.2fx (at most %2.0fx)%s", ours / theirs, limit,
               ours > limit * theirs ? " BEYOND" : "");
    else
        printf("  %6.2fx               ", ours / theirs);
    beyond += limit > 0 && ours > limit * theirs;
}

static void measure(const struct corpus *c, struct hasher *h)
{
    CLEANUP(json_release) struct json j = { 0 };
    double count = (double)c->count;
    double parse = best_parse(c, &j) / count;
    double canonical = best_canonical(c, h) / count;

    printf("%-16s %12.0f", c->name, parse);
    if (other_parse) {
        double other = best_other(c) / count;

        printf(" %12.0f", other);
        print_ratio(parse, other, 2);
    } else {
        printf(" %12s %25s", "-", "");
    }
    printf("  %12.0f", canonical);
    print_ratio(canonical, parse, c->jcs_limit);
    printf("  %12.0f\n", best_hash(c) / count);
}

static void load_other(const char *path)
{
    void *so = dlopen(path, RTLD_NOW);

    must(so != NULL, dlerror());
    *(void **)&other_prepare = dlsym(so, "bench_prepare");
    *(void **)&other_parse = dlsym(so, "bench_parse");
    must(other_prepare && other_parse, "not our shared object");
}

int main(int argc, char **argv)
{
    struct corpus corpora[] = {
        { .name = "300-byte message", .repeat = 50 },
        { .name = "10 MB mixed", .repeat = 3 },
        { .name = "10 MB text", .repeat = 3, .jcs_limit = 5 },
        { .name = "10 MB floats", .repeat = 3, .jcs_limit = 12 },
    };
    void (*const makers[])(struct corpus *) = { make_messages, make_mixed, make_text,
                                                make_floats };
    struct hasher h = { 0 };

    if (argc > 1)
        load_other(argv[1]);
    hasher_init(&h);
    printf("%-16s %12s %12s  %23s  %12s  %23s  %12s\n", "ns of CPU, best", "our parse",
           "simdjson DOM", "ratio", "JCS+SHA-256", "in our parses", "SHA-256 only");
    for (size_t i = 0; i < COUNT(corpora); i++) {
        buf_init(&corpora[i].text, 2 * LARGE);
        makers[i](&corpora[i]);
        measure(&corpora[i], &h);
        buf_release(&corpora[i].text);
        free(corpora[i].starts);
    }
    return beyond ? 1 : 0;
}
