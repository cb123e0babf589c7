/* SPDX-License-Identifier: Apache-2.0 */
/* Packs that are built together, and parts that read on where the one before ended. */
#include "evidence/packparts.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "tests/packing.h"
#include "tests/tap.h"

/* --- several at once --- */

#define MANY (PACK_TOGETHER_MAX + 1)

struct crowd {
    struct recording r;
    struct session *s[MANY];
    struct pack_job jobs[MANY];
};

/* Sessions whose events stand between each other's, and have ended. */
static void crowd_open(struct crowd *c, size_t calls)
{
    struct err err = { 0 };
    bool packable, all = true;

    *c = (struct crowd){ .jobs = { { .failed = 0 } } };
    for (size_t i = 0; i < MANY; i++)
        c->s[i] =
            i ? recording_another(&c->r, "audit") : recording_session(&c->r, "audit");
    for (size_t n = 0; n < calls; n++) {
        for (size_t i = 0; i < MANY; i++)
            record_three(&c->r, c->s[i]);
    }
    for (size_t i = 0; i < MANY; i++) {
        struct session_cut cut;

        all = all && session_end(c->s[i], &well, &cut, &packable, &err) == 0;
        c->jobs[i].request = request_for(c->s[i], &cut);
    }
    ok(all, "%d sessions ended: %s", MANY, err.msg);
}

/* One after the other. */
static void crowd_queue(struct crowd *c)
{
    struct err err = { 0 };
    bool packable, all = true;

    *c = (struct crowd){ .jobs = { { .failed = 0 } } };
    for (size_t i = 0; i < MANY; i++) {
        struct session_cut cut;

        c->s[i] =
            i ? recording_another(&c->r, "audit") : recording_session(&c->r, "audit");
        for (int n = 0; n < 3; n++)
            record_three(&c->r, c->s[i]);
        all = all && session_end(c->s[i], &well, &cut, &packable, &err) == 0;
        c->jobs[i].request = request_for(c->s[i], &cut);
    }
    ok(all, "%d sessions ended: %s", MANY, err.msg);
}

static void crowd_close(struct crowd *c)
{
    for (size_t i = 0; i < MANY; i++)
        session_free(c->s[i]);
    recording_close(&c->r);
}

static size_t count_failed(const struct crowd *c)
{
    size_t n = 0;

    for (size_t i = 0; i < MANY; i++) {
        if (c->jobs[i].failed)
            printf("# %s\n", c->jobs[i].err.msg);
        n += c->jobs[i].failed != 0;
    }
    return n;
}

static bool remove_tree(const char *dir)
{
    CLEANUP(buf_release) struct buf command = { 0 };

    buf_printf(&command, "rm -r '%s'", dir);
    return system(buf_cstr(&command)) == 0;
}

/* Each file of one directory is also in the other, and says the same. */
static bool same_files(const char *a, const char *b)
{
    CLEANUP(buf_release) struct buf command = { 0 };

    buf_printf(&command, "diff -r '%s' '%s'", a, b);
    return system(buf_cstr(&command)) == 0;
}

static void test_packs_that_are_built_together_are_those_built_alone(void)
{
    static struct crowd c;
    char packs[FILE_PATH_MAX], aside[FILE_PATH_MAX];
    struct pack_result alone;
    struct err err = { 0 };
    bool same = true;

    crowd_open(&c, 2);
    pack_build_all(c.r.log, c.jobs, MANY);
    ok(count_failed(&c) == 0, "all are packed");
    for (size_t i = 0; i < MANY; i++)
        same = same && c.jobs[i].result.receipts == 7 &&
               c.jobs[i].result.events == session_history(c.s[i])->counts.events;
    ok(same, "each with its own events and receipts");
    ok(is_sound(c.jobs[0].result.path) && is_sound(c.jobs[MANY - 1].result.path),
       "they verify");
    snprintf(packs, sizeof(packs), "%s/packs", c.r.dir);
    snprintf(aside, sizeof(aside), "%s/aside", c.r.dir);
    ok(rename(packs, aside) == 0, "put aside");
    for (size_t i = 0; i < MANY; i++)
        same = same && pack_build(c.r.log, &c.jobs[i].request, &alone, &err) == 0 &&
               !alone.existed && strcmp(alone.root, c.jobs[i].result.root) == 0;
    ok(same, "built again, one by one: %s", err.msg);
    ok(same_files(packs, aside), "to the byte the same");
    crowd_close(&c);
}

static void test_one_that_cannot_be_packed_does_not_hinder_the_others(void)
{
    static struct crowd c;
    char packs[FILE_PATH_MAX];

    crowd_open(&c, 1);
    c.jobs[1].request.cut.to--;
    c.jobs[2].request.first = c.jobs[2].request.cut.to + 1000; /* not in the log */
    pack_build_all(c.r.log, c.jobs, MANY);
    ok(count_failed(&c) == 2 && c.jobs[1].failed && c.jobs[2].failed, "two fail");
    ok(c.jobs[1].err.code == ERR_DAMAGE, "for a reason of its own: %s",
       c.jobs[1].err.msg);
    snprintf(packs, sizeof(packs), "%s/packs", c.r.dir);
    ok(count_entries(packs, "proof_pack_") == MANY - 2, "the others have their packs");
    ok(count_entries(packs, ".staging") == 0, "nothing is left over");
    crowd_close(&c);
}

static void test_what_stops_all_is_tried_for_each(void)
{
    static struct crowd c;

    crowd_open(&c, 1);
    c.jobs[1].request.cut.to += 1000; /* the log ends before, for who reads that far */
    pack_build_all(c.r.log, c.jobs, MANY);
    ok(count_failed(&c) == 1 && c.jobs[1].failed, "one fails");
    ok(c.jobs[1].err.code == ERR_REFUSED, "no checkpoint covers it: %s",
       c.jobs[1].err.msg);
    crowd_close(&c);
}

static bool flip_byte(const char *dir, const char *name, long at)
{
    char path[FILE_PATH_MAX];
    FILE *f;
    int c;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "r+");
    if (!f)
        return false;
    c = fseek(f, at, SEEK_SET) == 0 ? fgetc(f) : EOF;
    if (c == EOF || fseek(f, at, SEEK_SET) != 0 || fputc(c ^ 1, f) == EOF)
        c = EOF;
    return fclose(f) == 0 && c != EOF;
}

static void test_a_bad_tile_fails_nobody_who_does_not_need_it(void)
{
    static struct crowd c;
    char packs[FILE_PATH_MAX];
    bool alone[MANY], same = true;
    struct pack_result result;
    struct err err = { 0 };
    size_t good = 0;

    crowd_queue(&c);
    snprintf(packs, sizeof(packs), "%s/packs", c.r.dir);
    ok(log_checkpoint(c.r.log, true, &err) == 0 &&
           flip_byte(c.r.dir, "log/tile/0/000", 100L * DIGEST_SIZE),
       "a hash in a tile is wrong: %s", err.msg);
    for (size_t i = 0; i < MANY; i++) {
        alone[i] = pack_build(c.r.log, &c.jobs[i].request, &result, &err) == 0;
        good += alone[i];
    }
    ok(good > 0 && good < MANY, "%zu of %d can be packed", good, MANY);
    ok(remove_tree(packs), "and are taken away");
    pack_build_all(c.r.log, c.jobs, MANY);
    for (size_t i = 0; i < MANY; i++)
        same = same && (c.jobs[i].failed == 0) == alone[i];
    ok(same, "together the same");
    crowd_close(&c);
}

static void test_parts_of_a_session_are_built_together(void)
{
    struct recording r;
    struct session *s = recording_session(&r, "audit");
    struct pack_job jobs[3] = { { .failed = 0 } };
    struct session_cut cut;
    struct err err = { 0 };
    bool packable;
    uint64_t events = 0;

    for (size_t i = 0; i < 2; i++) {
        record_three(&r, s);
        ok(session_part(s, NULL, &cut, &err) == 0, "part %zu: %s", i + 1, err.msg);
        jobs[i].request = request_for(s, &cut);
    }
    ok(session_end(s, &well, &cut, &packable, &err) == 0, "the end: %s", err.msg);
    jobs[2].request = request_for(s, &cut);
    pack_build_all(r.log, jobs, 3);
    for (size_t i = 0; i < 3; i++) {
        ok(!jobs[i].failed && is_sound(jobs[i].result.path), "part %zu: %s", i + 1,
           jobs[i].err.msg);
        events += jobs[i].result.events;
    }
    ok(events == session_history(s)->counts.events, "no event twice, none left out");
    session_free(s);
    recording_close(&r);
}

static long long bytes_read(void)
{
    long long n = -1;
    FILE *f = fopen("/proc/self/io", "r");

    if (f && fscanf(f, "rchar: %lld", &n) != 1)
        n = -1;
    if (f)
        fclose(f);
    return n;
}

/* What is done for each of them reads its own files; one session's are small. */
static void test_the_log_is_read_once_for_many(void)
{
    static struct crowd c;
    char path[FILE_PATH_MAX];
    long long before = bytes_read(), took;
    struct stat st = { 0 };

    crowd_open(&c, 40);
    snprintf(path, sizeof(path), "%s/log/segments/%020d.jsonl", c.r.dir, 0);
    ok(stat(path, &st) == 0 && st.st_size > 500000, "a log");
    if (before < 0) {
        tap_skip("the log is read once", "the kernel does not count what is read");
    } else {
        before = bytes_read();
        pack_build_all(c.r.log, c.jobs, PACK_TOGETHER_MAX);
        took = bytes_read() - before;
        ok(took < 3 * st.st_size, "%d packs read %lld bytes", PACK_TOGETHER_MAX, took);
    }
    crowd_close(&c);
}

/* --- parts that read on --- */

/* A session that has had a part, packed with a past, and has ended since. */
static struct pack_request begin_with_past(struct recording *r, struct session *s,
                                           struct pack_past *past)
{
    struct open_call *spanning = recording_call(r, s, STR("9"), STR("w"), STR("{}"));
    struct session_ending ending = well;
    struct pack_request request;
    struct pack_result first = { .receipts = 0 };
    struct session_cut cut;
    struct err err = { 0 };
    bool packable;

    record_three(r, s);
    ok(session_part(s, NULL, &cut, &err) == 0, "part 1 is cut with a call open");
    request = request_for(s, &cut);
    request.past = past;
    ok(pack_build(r->log, &request, &first, &err) == 0, "and packed: %s", err.msg);
    ok(past->place.seq == cut.to, "its past is known");
    recording_answer(r, s, spanning, false, STR("[]"));
    record_three(r, s);
    ending.previous_root = first.root;
    ok(session_end(s, &ending, &cut, &packable, &err) == 0, "the session ended");
    request = request_for(s, &cut);
    request.past = past;
    return request;
}

static void test_a_part_with_a_past_is_the_same_as_without(void)
{
    struct recording r;
    struct session *s = recording_session(&r, "guard");
    struct pack_past past = { .place = { 0 } };
    struct pack_request request = begin_with_past(&r, s, &past);
    struct pack_result with, without;
    char path[FILE_PATH_MAX], aside[FILE_PATH_MAX];
    struct err err = { 0 };

    snprintf(path, sizeof(path), "%s/receipts/%s", r.dir, session_receipts(s));
    ok(unlink(path) == 0, "without receipts, all that is known is what was read");
    ok(pack_build(r.log, &request, &with, &err) == 0 && with.receipts == 5 &&
           with.rebuilt == 5,
       "part 2: %s", err.msg);
    snprintf(aside, sizeof(aside), "%s/aside", r.dir);
    ok(rename(with.path, aside) == 0, "put aside");
    request.past = NULL;
    ok(pack_build(r.log, &request, &without, &err) == 0 && !without.existed,
       "without the past: %s", err.msg);
    ok(same_files(without.path, aside), "to the byte the same");
    pack_past_release(&past);
    session_free(s);
    recording_close(&r);
}

static void spoil_place(struct pack_past *past)
{
    past->place.offset++;
}

static void spoil_end(struct pack_past *past)
{
    past->place.offset += 1 << 20;
}

static void spoil_history(struct pack_past *past)
{
    past->history.counts.events++;
}

static void spoil_seq(struct pack_past *past)
{
    past->place.seq--;
}

static void test_a_past_that_is_wrong_is_not_used(void)
{
    static void (*const spoil[])(struct pack_past *) = { spoil_place, spoil_end,
                                                         spoil_history, spoil_seq };

    for (size_t i = 0; i < COUNT(spoil); i++) {
        struct recording r;
        struct session *s = recording_session(&r, "guard");
        struct pack_past past = { .place = { 0 } };
        struct pack_request request = begin_with_past(&r, s, &past);
        struct pack_result made = { .receipts = 0 };
        struct err err = { 0 };

        spoil[i](&past);
        ok(pack_build(r.log, &request, &made, &err) == 0 && made.receipts == 5 &&
               is_sound(made.path),
           "way %zu to spoil it: read from the beginning: %s", i, err.msg);
        ok(past.place.seq == request.cut.to, "and known again");
        pack_past_release(&past);
        session_free(s);
        recording_close(&r);
    }
}

/* The session begins before 16 others say much. */
static void test_a_part_with_a_past_reads_what_is_new(void)
{
    static struct crowd c;
    struct session *s;
    struct pack_past past = { .place = { 0 } };
    struct pack_request request;
    struct pack_result made = { .receipts = 0 };
    struct session_cut cut = { 0 };
    struct err err = { 0 };
    long long all = 0, new = 0;

    crowd_open(&c, 1);
    s = recording_another(&c.r, "audit");
    for (int part = 0; part < 2; part++) {
        struct session *other = recording_another(&c.r, "audit");

        for (int i = 0; part == 0 && i < 400; i++)
            record_three(&c.r, other);
        record_three(&c.r, s);
        ok(session_part(s, part ? made.root : NULL, &cut, &err) == 0, "a part is cut");
        request = request_for(s, &cut);
        request.past = &past;
        all = new;
        new = bytes_read();
        ok(pack_build(c.r.log, &request, &made, &err) == 0, "packed: %s", err.msg);
        new = bytes_read() - new;
        session_free(other);
    }
    if (bytes_read() < 0)
        tap_skip("what is new is read", "the kernel does not count what is read");
    else
        ok(all > 1000000 && new < all / 4, "first %lld bytes are read, then %lld", all,
           new);
    pack_past_release(&past);
    session_free(s);
    crowd_close(&c);
}

int main(void)
{
    test_packs_that_are_built_together_are_those_built_alone();
    test_one_that_cannot_be_packed_does_not_hinder_the_others();
    test_what_stops_all_is_tried_for_each();
    test_a_bad_tile_fails_nobody_who_does_not_need_it();
    test_parts_of_a_session_are_built_together();
    test_the_log_is_read_once_for_many();
    test_a_part_with_a_past_is_the_same_as_without();
    test_a_past_that_is_wrong_is_not_used();
    test_a_part_with_a_past_reads_what_is_new();
    return tap_done();
}
