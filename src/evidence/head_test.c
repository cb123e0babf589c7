/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/head.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "tests/lab.h"
#include "tests/tap.h"

/* Where things lie in the file; docs/log.md says the same. */
#define SLOT_AT(i) (112 + (size_t)(i)*SLOT_BYTES)
#define SLOT_BYTES 72

static struct head_state state_of(uint64_t size)
{
    struct head_state s = { size / 100 * 100, size * 200, size, { { 0 } } };

    if (size)
        s.last = digest_of(str_of(&size, sizeof(size)));
    return s;
}

static bool same(const struct head_state *a, const struct head_state *b)
{
    return a->segment == b->segment && a->offset == b->offset && a->size == b->size &&
           digest_equal(&a->last, &b->last);
}

static char *bytes_of(struct head *h)
{
    return (char *)h->file;
}

static void test_write_and_read(const struct lab *l)
{
    struct head h = { .fd = -1 }, other = { .fd = -1 };
    struct head_state s = { 0 }, expected;
    struct err err = { 0 };
    struct stat st;
    uint64_t size, segment;
    bool good = true;

    ok(head_open(&h, lab_path(l, "head"), 0600, &err) == 0, "made: %s", err.msg);
    ok(stat(lab_path(l, "head"), &st) == 0 && st.st_size == HEAD_BYTES &&
           (st.st_mode & 0777) == 0600,
       "of its size and mode");
    ok(!head_read(&h, &s), "a new one has no state");
    ok(head_open_to_read(&other, lab_path(l, "head"), &err) == 0, "for a reader: %s",
       err.msg);
    for (uint64_t i = 0; i <= 130; i++) {
        expected = state_of(i);
        head_write(&h, &expected);
        good = good && head_read(&other, &s) && same(&s, &expected);
    }
    ok(good, "another mapping reads what was written last, 131 times");
    head_committed(&other, &size, &segment);
    ok(size == 130 && segment == 100, "the last commit is known without the lock");
    head_close(&h);
    ok(head_read(&other, &s) && same(&s, &expected), "it stays after its writer");
    head_close(&other);
    head_close(&other);
}

/* A writer that dies at any byte, and a bit that rots: the newest state, the one before,
 * or none; never a third. */
static void test_torn_slots(const struct lab *l)
{
    struct head h = { .fd = -1 };
    struct head_state newest, older, s;
    struct err err = { 0 };
    size_t fell_back = 0, none = 0, wrong = 0, at_slot;

    ok(head_open(&h, lab_path(l, "torn"), 0600, &err) == 0, "made: %s", err.msg);
    older = state_of(6);
    newest = state_of(7);
    head_write(&h, &older);
    head_write(&h, &newest);
    at_slot = memcmp(bytes_of(&h) + SLOT_AT(1) + 32, "\7\0\0\0\0\0\0\0", 8) == 0 ? 1 : 0;
    for (size_t i = 0; i < SLOT_BYTES; i++) {
        for (int bit = 0; bit < 8; bit++) {
            char *p = bytes_of(&h) + SLOT_AT(at_slot) + i;

            *p = (char)(*p ^ (1 << bit));
            if (!head_read(&h, &s))
                none++;
            else if (same(&s, &older))
                fell_back++;
            else
                wrong += !same(&s, &newest);
            *p = (char)(*p ^ (1 << bit));
        }
    }
    ok(wrong == 0 && none == 0, "no flip of the newest slot gives a wrong state or none");
    ok(fell_back == 8 * SLOT_BYTES, "every one falls back to the older slot (%zu)",
       fell_back);
    for (size_t i = 0; i <= SLOT_BYTES; i++) {
        char saved[SLOT_BYTES];
        char *p = bytes_of(&h) + SLOT_AT(at_slot);

        memcpy(saved, p, sizeof(saved));
        memset(p, 0, SLOT_BYTES - i);
        wrong += head_read(&h, &s) && !same(&s, &newest) && !same(&s, &older);
        memset(p, 0xff, SLOT_BYTES - i);
        wrong += head_read(&h, &s) && !same(&s, &newest) && !same(&s, &older);
        memcpy(p, saved, sizeof(saved));
    }
    ok(wrong == 0, "nor does a slot that is blank up to any byte");
    memset(bytes_of(&h) + SLOT_AT(0), 0x55, 2 * SLOT_BYTES);
    ok(!head_read(&h, &s), "two garbled slots are no state");
    head_write(&h, &newest);
    ok(head_read(&h, &s) && same(&s, &newest), "and can be written over");
    bytes_of(&h)[0] ^= 1;
    ok(!head_read(&h, &s), "a file of another kind is no state");
    head_close(&h);
}

static void test_sizes(const struct lab *l)
{
    struct head h = { .fd = -1 };
    struct head_state s, expected = state_of(3);
    struct err err = { 0 };
    struct stat st;

    ok(file_put(lab_path(l, "short"), STR("assayhd1"), 0600, &err) == 0 &&
           head_open_to_read(&h, lab_path(l, "short"), &err) < 0,
       "a short one is not mapped by a reader: %s", err.msg);
    ok(head_open(&h, lab_path(l, "short"), 0600, &err) == 0 && !head_read(&h, &s),
       "a writer sets it right, without state");
    head_write(&h, &expected);
    head_close(&h);
    ok(truncate(lab_path(l, "short"), HEAD_BYTES + 1) == 0 &&
           head_open(&h, lab_path(l, "short"), 0600, &err) == 0 && head_read(&h, &s) &&
           same(&s, &expected),
       "one that is too long keeps its state");
    ok(stat(lab_path(l, "short"), &st) == 0 && st.st_size == HEAD_BYTES, "and is cut");
    head_close(&h);
    ok(symlink("short", lab_path(l, "link")) == 0 &&
           head_open(&h, lab_path(l, "link"), 0600, &err) < 0,
       "a link is refused: %s", err.msg);
    ok(mkdir(lab_path(l, "directory"), 0700) == 0 &&
           head_open(&h, lab_path(l, "directory"), 0600, &err) < 0,
       "a directory is refused: %s", err.msg);
}

static void test_marks(const struct lab *l)
{
    struct head h = { .fd = -1 };
    struct segment_place place = { 5, 6, 7 }, read = { 0 };
    struct head_state s = state_of(9);
    struct err err = { 0 };
    uint64_t segment;
    size_t taken = 0;

    ok(head_open(&h, lab_path(l, "marks"), 0600, &err) == 0, "made: %s", err.msg);
    head_write(&h, &s);
    head_set_synced(&h, 8);
    head_set_synced(&h, 4);
    ok(head_synced(&h) == 8, "what is on disk only grows");
    memset(bytes_of(&h) + 8, 0x7f, 8);
    ok(head_synced(&h) == 0, "more than was written is not believed");
    head_set_synced(&h, 5);
    ok(head_synced(&h) == 5, "and does not stay");
    ok(!head_suspect(&h, &segment), "no segment is suspect");
    head_set_suspect(&h, 0);
    ok(head_suspect(&h, &segment) && segment == 0, "segment 0 can be");
    head_clear_suspect(&h);
    ok(!head_suspect(&h, &segment), "until it is not");
    ok(!head_published(&h, &read), "nothing was published");
    head_set_published(&h, &place);
    ok(head_published(&h, &read) && memcmp(&read, &place, sizeof(read)) == 0,
       "what was published is found again");
    for (size_t i = 0; i < 32; i++) {
        bytes_of(&h)[40 + i] ^= 0x10;
        taken += head_published(&h, &read);
        bytes_of(&h)[40 + i] ^= 0x10;
    }
    ok(taken == 0, "but not with a changed byte");
    head_write(&h, &s);
    head_forget(&h, 3);
    ok(!head_read(&h, &s) && !head_published(&h, &read) && head_synced(&h) == 3,
       "forgotten is forgotten");
    head_close(&h);
}

int main(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };

    if (file_make_dirs(l.audit, 0700, &err) < 0)
        return 99;
    test_write_and_read(&l);
    test_torn_slots(&l);
    test_sizes(&l);
    test_marks(&l);
    lab_remove(&l);
    return tap_done();
}
