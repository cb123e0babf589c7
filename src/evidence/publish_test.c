/* SPDX-License-Identifier: Apache-2.0 */
/* Who may continue and sign a log: rollback, copies, keys. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "evidence/event.h"
#include "evidence/head.h"
#include "evidence/leaves.h"
#include "evidence/logcheck.h"
#include "evidence/origin.h"
#include "evidence/segment.h"
#include "tests/logwalk.h"

/* --- rollback, copies, keys --- */

static void test_a_restored_directory_is_not_continued(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    char copy[400];

    snprintf(copy, sizeof(copy), "%s/copy", l.root);
    ok(log && log_close(log, &err) == 0, "a log: %s", err.msg);
    ok(run("cp -a '%s' '%s'", l.audit, copy) == 0, "a backup");
    log = lab_open(&l, &err);
    ok(log && log_close(log, &err) == 0, "it goes on: %s", err.msg);
    ok(file_remove_tree(l.audit, &err) == 0, "removed");
    ok(run("cp -a '%s' '%s'", copy, l.audit) == 0, "restored");
    log = lab_open(&l, &err);
    ok(!log && err.code == ERR_DAMAGE && strstr(err.msg, "rolled back"), "told: %s",
       err.msg);
    lab_remove(&l);
}

static void test_of_two_copies_one_is_signed(void)
{
    struct lab l = lab_make();
    struct lab other = l;
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);

    snprintf(other.audit, sizeof(other.audit), "%s/copy", l.root);
    ok(log && log_close(log, &err) == 0, "a log: %s", err.msg);
    ok(run("cp -a '%s' '%s'", l.audit, other.audit) == 0, "copied");
    log = lab_open(&l, &err);
    ok(log && log_close(log, &err) == 0, "the first goes on: %s", err.msg);
    for (int i = 0; i < 2;
         i++) { /* shorter at first, then as long with another history */
        log = lab_open(&other, &err);
        ok(!log && err.code == ERR_DAMAGE, "the copy does not: %s", err.msg);
    }
    lab_remove(&l);
}

static void test_a_foreign_checkpoint_is_refused(void)
{
    struct lab l = lab_make(), m = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);

    ok(log && log_close(log, &err) == 0, "a log: %s", err.msg);
    log = lab_open(&m, &err);
    ok(log && log_close(log, &err) == 0, "another: %s", err.msg);
    ok(run("cp '%s' '%s'", lab_path(&m, "log/checkpoint"),
           lab_path(&l, "log/checkpoint")) == 0,
       "a checkpoint of another log");
    log = lab_open(&l, &err);
    ok(!log && err.code == ERR_DAMAGE, "refused: %s", err.msg);
    lab_remove(&l);
    lab_remove(&m);
}

static void test_without_its_key_a_log_is_not_continued(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);

    ok(log && log_close(log, &err) == 0, "a log: %s", err.msg);
    ok(file_remove_tree(l.keys.dir, &err) == 0, "the keys are gone");
    log = lab_open(&l, &err);
    ok(!log && err.code == ERR_NOTFOUND && strstr(err.msg, "not continued"), "told: %s",
       err.msg);
    lab_remove(&l);
}

/* As if the process had died with the key in `origin` and no checkpoint made yet. */
static void test_anyone_finishes_a_key_rotation(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    CLEANUP(signer_release) struct signer next = { 0 };
    CLEANUP(buf_release) struct buf note = { 0 }, vkey = { 0 };
    CLEANUP(event_release) struct event e = { 0 };
    const struct event *events[] = { &e };
    struct logcheck_options options = { .keys = &l.keys };
    struct logcheck found;
    struct checkpoint c;
    struct note_key key;
    struct origin o;
    struct note n;

    ok(log && log_checkpoint(log, true, &err) == 0, "a signed log: %s", err.msg);
    ok(keys_generate(&l.keys, &entropy_system, "second", &next, &err) == 0 &&
           origin_read(&o, lab_path(&l, "log"), &err) == 0 &&
           note_key_make(&key, str_from(o.name), next.secret.public_key, &err) == 0,
       "a key: %s", err.msg);
    note_key_add(&vkey, &key);
    event_init(&e, EVENT_KEY_ROTATE);
    event_add_text(&e, "vkey", buf_str(&vkey));
    ok(log_append(log, events, 1, NULL, &err) == 0, "its event: %s", err.msg);
    ok(log_checkpoint(log, true, &err) == 0 &&
           logcheck_run(&found, l.audit, &options, &err) == 0 && found.findings == 0,
       "with the event alone the log is sound, under its old key");
    ok(origin_add_key(&o, lab_path(&l, "log"), &key, 0600, &err) == 0, "the key");
    ok(log_close(log, &err) == 0, "close: %s", err.msg);
    ok(origin_checkpoint(&o, lab_path(&l, "log"), &c, &note, &err) == 0 &&
           note_parse(&n, buf_str(&note), &err) == 0 &&
           note_verify(&n, &o.keys[0], 1) == NOTE_SIGNED &&
           note_verify(&n, &o.keys[1], 1) == NOTE_SIGNED,
       "the next checkpoint carries both signatures");
    lab_remove(&l);
}

static void test_key_rotation(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    CLEANUP(signer_release) struct signer next = { 0 };
    CLEANUP(buf_release) struct buf note = { 0 };
    struct checkpoint c;
    struct origin o;
    struct note n;

    ok(keys_generate(&l.keys, &entropy_system, "second", &next, &err) == 0, "a key: %s",
       err.msg);
    ok(log && log_rotate_key(log, &next, &err) == 0, "rotate: %s", err.msg);
    ok(origin_read(&o, lab_path(&l, "log"), &err) == 0 && o.count == 2, "two keys");
    ok(memcmp(o.keys[0].public_key, next.secret.public_key, PUBLIC_SIZE) == 0,
       "the new one first");
    ok(origin_checkpoint(&o, lab_path(&l, "log"), &c, &note, &err) == 0 &&
           note_parse(&n, buf_str(&note), &err) == 0 &&
           note_verify(&n, &o.keys[0], 1) == NOTE_SIGNED &&
           note_verify(&n, &o.keys[1], 1) == NOTE_SIGNED,
       "the next checkpoint carries both signatures");
    ok(log_rotate_key(log, &next, &err) < 0, "not twice: %s", err.msg);
    ok(lab_append(log, 1, NULL, &err) == 0 && log_close(log, &err) == 0, "close: %s",
       err.msg);
    buf_reset(&note);
    ok(origin_checkpoint(&o, lab_path(&l, "log"), &c, &note, &err) == 0 &&
           note_parse(&n, buf_str(&note), &err) == 0 &&
           note_verify(&n, &o.keys[0], 1) == NOTE_SIGNED &&
           note_verify(&n, &o.keys[1], 1) == NOTE_UNSIGNED,
       "later ones only the new one");
    lab_remove(&l);
}

static void test_a_key_may_come_back(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    CLEANUP(signer_release) struct signer first = { 0 };
    CLEANUP(signer_release) struct signer second = { 0 };

    ok(log && log_signer(log, &first, &err) == 0 &&
           keys_generate(&l.keys, &entropy_system, "second", &second, &err) == 0,
       "two keys: %s", err.msg);
    ok(log_rotate_key(log, &second, &err) == 0 && log_rotate_key(log, &first, &err) == 0,
       "there and back: %s", err.msg);
    ok(log_close(log, &err) == 0, "close: %s", err.msg);
    ok(is_sound(&l), "the log verifies");
    lab_remove(&l);
}

static void test_a_log_is_handed_over_by_its_key(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    CLEANUP(signer_release) struct signer next = { 0 };

    ok(log && keys_generate(&l.keys, &entropy_system, "next", &next, &err) == 0 &&
           log_rotate_key(log, &next, &err) == 0 && lab_append(log, 1, NULL, &err) == 0 &&
           log_close(log, &err) == 0,
       "rotated: %s", err.msg);
    ok(is_sound(&l), "the log verifies");
    ok(run("awk '!(/^— / && before) { print } { before = /^— / }' '%s' > '%s'",
           lab_path(&l, "log/checkpoints"), lab_path(&l, "less")) == 0 &&
           rename(lab_path(&l, "less"), lab_path(&l, "log/checkpoints")) == 0,
       "the signature of the key before goes");
    ok(!is_sound(&l), "and any key could have done that");
    lab_remove(&l);
}

static void test_who_signs_tells_what_it_mended(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err), *other = lab_open(&l, &err);

    ok(log && other && lab_append(log, 1, NULL, &err) == 0, "two writers: %s", err.msg);
    ok(run("printf '{\"torn' >> '%s'%s", lab_path(&l, FIRST_SEGMENT), "") == 0, "torn");
    ok(log_checkpoint(other, true, &err) == 0, "one signs: %s", err.msg);
    log_abandon(other);
    ok(run("grep -q '\"type\":\"repair\"' '%s'%s", lab_path(&l, FIRST_SEGMENT), "") == 0,
       "and has told of the repair before it died");
    ok(log_close(log, &err) == 0 && is_sound(&l), "the log verifies: %s", err.msg);
    lab_remove(&l);
}

static void rotate_in_child(const struct lab *l, int number)
{
    CLEANUP(signer_release) struct signer next = { 0 };
    struct err err = { 0 };
    struct log *log = lab_open(l, &err);
    char id[16];

    snprintf(id, sizeof(id), "key%d", number);
    if (!log || keys_generate(&l->keys, &entropy_system, id, &next, &err) < 0 ||
        log_rotate_key(log, &next, &err) < 0 || log_close(log, &err) < 0) {
        printf("# rotation %d: %s\n", number, err.msg);
        fflush(stdout);
        _exit(1);
    }
    _exit(0);
}

static void test_rotations_at_once(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err);
    struct origin o;
    int status, failed = 0;

    ok(log && log_close(log, &err) == 0, "a log: %s", err.msg);
    fflush(stdout);
    for (int i = 0; i < 4; i++) {
        if (fork() == 0)
            rotate_in_child(&l, i);
    }
    while (wait(&status) > 0)
        failed += status != 0;
    ok(failed == 0, "each of four rotates");
    ok(origin_read(&o, lab_path(&l, "log"), &err) == 0 && o.count == 5,
       "and none forgets another's key: %zu", o.count);
    ok(is_sound(&l), "the log verifies");
    lab_remove(&l);
}

static void test_recovery_after_anothers_rotation(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err), *other = lab_open(&l, &err);
    CLEANUP(signer_release) struct signer next = { 0 };

    ok(log && other && keys_generate(&l.keys, &entropy_system, "next", &next, &err) == 0,
       "two writers: %s", err.msg);
    ok(log_rotate_key(other, &next, &err) == 0 && lab_append(other, 1, NULL, &err) == 0 &&
           log_close(other, &err) == 0,
       "the other rotates, signs with the new key alone, and leaves: %s", err.msg);
    ok(run("printf '{\"torn' >> '%s'%s", lab_path(&l, FIRST_SEGMENT), "") == 0, "torn");
    ok(lab_append(log, 2, NULL, &err) == 0, "the first goes on: %s", err.msg);
    ok(log_close(log, &err) == 0 && is_sound(&l), "the log verifies: %s", err.msg);
    lab_remove(&l);
}

/* --- what is signed --- */

static bool signs_all(const struct lab *l, struct log *log)
{
    struct checkpoint c;
    struct err err = { 0 };
    struct origin o;
    uint64_t size;

    if (log_begin(log, &err) < 0)
        return false;
    size = log_next(log);
    log_abort(log);
    return log_checkpoint(log, true, &err) == 0 &&
           origin_read(&o, lab_path(l, "log"), &err) == 0 &&
           origin_checkpoint(&o, lab_path(l, "log"), &c, NULL, &err) == 0 &&
           c.size == size;
}

static bool append_some(struct log *log, int64_t from, int64_t count)
{
    struct err err = { 0 };

    for (int64_t i = from; i < from + count; i++) {
        if (lab_append(log, i, NULL, &err) < 0)
            return false;
    }
    return true;
}

/* More than the hashes that are kept, fewer, two writers in turns: the tree is the same.
 */
static void test_whoever_wrote_it(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err), *other;

    ok(log && signs_all(&l, log), "the first event: %s", err.msg);
    ok(append_some(log, 0, 700) && signs_all(&l, log), "our own");
    ok(append_some(log, 700, LEAVES_MAX + 1) && signs_all(&l, log), "more than is kept");
    ok(append_some(log, 20000, 256) && signs_all(&l, log), "our own again");
    other = lab_open(&l, &err);
    ok(other && append_some(log, 21000, 3) && append_some(other, 21003, 2) &&
           append_some(log, 21005, 1) && signs_all(&l, log),
       "and another's in between");
    ok(append_some(other, 22000, 5) && signs_all(&l, other), "by the other");
    ok(append_some(log, 23000, 5) && signs_all(&l, log), "by us, behind its checkpoint");
    ok(log_close(other, &err) == 0 && log_close(log, &err) == 0, "close: %s", err.msg);
    ok(is_sound(&l), "tiles, checkpoints and events are of one log");
    lab_remove(&l);
}

/* Give the event with one mark another one. In place: in a new file nobody would look for
 * the old lines. */
static bool change(const struct lab *l, int from, int to)
{
    char command[96];

    snprintf(command, sizeof(command), "sed 's/\"mark\":%d/\"mark\":%d/' '%%s' > '%%s'",
             from, to);
    return run(command, lab_path(l, FIRST_SEGMENT), lab_path(l, "changed")) == 0 &&
           run("cat '%s' > '%s'", lab_path(l, "changed"), lab_path(l, FIRST_SEGMENT)) ==
               0;
}

static void test_changed_lines(void)
{
    struct lab l = lab_make();
    struct err err = { 0 };
    struct log *log = lab_open(&l, &err), *other = lab_open(&l, &err);

    ok(log && other && append_some(log, 1000, 10) && signs_all(&l, log), "a log");
    ok(append_some(other, 5000, 10), "and what another wrote");
    ok(change(&l, 5004, 5994), "of which a line is changed");
    ok(log_checkpoint(log, true, &err) < 0 && err.code == ERR_DAMAGE &&
           strstr(err.msg, "does not continue"),
       "is not signed: %s", err.msg);
    ok(change(&l, 5994, 5004) && change(&l, 5009, 5999), "the last one");
    ok(log_checkpoint(log, true, &err) < 0 && err.code == ERR_DAMAGE, "nor is that: %s",
       err.msg);
    ok(change(&l, 5999, 5009) && signs_all(&l, log) && is_sound(&l),
       "put right, all is signed");
    ok(append_some(log, 6000, 10) && change(&l, 6004, 6994) && signs_all(&l, log) &&
           !is_sound(&l),
       "what we wrote is signed as we wrote it, and who changed it is found");
    log_abandon(other);
    log_abandon(log);
    lab_remove(&l);
}

int main(void)
{
    test_whoever_wrote_it();
    test_changed_lines();
    test_a_restored_directory_is_not_continued();
    test_of_two_copies_one_is_signed();
    test_a_foreign_checkpoint_is_refused();
    test_without_its_key_a_log_is_not_continued();
    test_anyone_finishes_a_key_rotation();
    test_key_rotation();
    test_a_key_may_come_back();
    test_a_log_is_handed_over_by_its_key();
    test_who_signs_tells_what_it_mended();
    test_rotations_at_once();
    test_recovery_after_anothers_rotation();
    return tap_done();
}
