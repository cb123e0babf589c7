/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/extend.h"

#include <unistd.h>

#include "tests/logwalk.h"

/* A signed log, events behind its checkpoint, and the publication of them, as it is after
 * its look at the end. */
struct scene {
    struct lab lab;
    struct log *log;
    struct extension x;
};

static void append(struct log *log, int64_t from, int64_t count)
{
    struct err err = { 0 };

    for (int64_t i = from; i < from + count; i++) {
        if (lab_append(log, i, NULL, &err) < 0)
            ok(false, "append: %s", err.msg);
    }
}

static void look(struct scene *s)
{
    struct err err = { 0 };
    struct origin o;

    s->x = (struct extension){ .log = s->log };
    snprintf(s->x.tile_dir, sizeof(s->x.tile_dir), "%s", lab_path(&s->lab, "log/tile"));
    if (origin_read(&o, lab_path(&s->lab, "log"), &err) < 0 ||
        origin_checkpoint(&o, lab_path(&s->lab, "log"), &s->x.newest, NULL, &err) < 0 ||
        log_lock(s->log, &err) < 0)
        ok(false, "look: %s", err.msg);
    s->x.end = s->log->state;
    s->x.lent = leaves_lend(&s->log->leaves, s->x.end.size, &s->x.end.last);
    log_unlock(s->log);
}

/* `size` events are signed, ten more are not. */
static void begin(struct scene *s, uint64_t size)
{
    struct err err = { 0 };

    s->lab = lab_make();
    s->log = lab_open(&s->lab, &err);
    append(s->log, 0, (int64_t)size - 1); /* behind chain_start */
    ok(log_checkpoint(s->log, true, &err) == 0, "%llu events are signed: %s",
       (unsigned long long)size, err.msg);
    append(s->log, 1000, 10);
    look(s);
    ok(s->x.lent && s->x.newest.size == size && s->x.end.size == size + 10,
       "ten are not");
}

static void end(struct scene *s)
{
    log_abandon(s->log);
    lab_remove(&s->lab);
}

static void test_both_ways(uint64_t size)
{
    struct scene s;
    struct err err = { 0 };
    struct digest root;

    begin(&s, size);
    ok(extend_tiles(&s.x, &err) == 0, "from the hashes that are known: %s", err.msg);
    root = s.x.root;
    look(&s);
    s.x.lent = false;
    ok(extend_tiles(&s.x, &err) == 0 && digest_equal(&root, &s.x.root),
       "and from the lines: %s", err.msg);
    end(&s);
}

/* The last three events are gone with a failed sync, say, and others stand in their
 * place: as many, or more. */
static void test_another_history(int64_t others)
{
    struct scene s;
    struct err err = { 0 };
    struct log *other;

    begin(&s, 41);
    ok(run("f='%s'; head -n -3 $f > '%s' && cat $f.less > $f",
           lab_path(&s.lab, FIRST_SEGMENT),
           lab_path(&s.lab, FIRST_SEGMENT ".less")) == 0 &&
           unlink(lab_path(&s.lab, FIRST_SEGMENT ".less")) == 0 &&
           unlink(lab_path(&s.lab, "log/head")) == 0,
       "the end is lost");
    other = lab_open(&s.lab, &err);
    ok(other != NULL, "another writer: %s", err.msg);
    append(other, 2000, others);
    ok(extend_tiles(&s.x, &err) < 0 && err.code == ERR_DAMAGE,
       "what is not there any more is not signed: %s", err.msg);
    ok(log_checkpoint(other, true, &err) == 0 && is_sound(&s.lab),
       "what is there can be: %s", err.msg);
    log_abandon(other);
    end(&s);
}

/* At such sizes no other tile tells of it. */
static void test_damaged_full_tile(uint64_t size)
{
    struct scene s;
    struct err err = { 0 };
    char command[64];

    begin(&s, size);
    snprintf(command, sizeof(command),
             "truncate -s 8191 '%%s/0/%03u'; printf X >> '%%s/0/%03u'",
             (unsigned)(size / 256 - 1), (unsigned)(size / 256 - 1));
    ok(run(command, s.x.tile_dir, s.x.tile_dir) == 0, "its last byte is another");
    ok(extend_tiles(&s.x, &err) == 0, "the tiles are written anew: %s", err.msg);
    ok(log_checkpoint(s.log, true, &err) == 0 && is_sound(&s.lab), "and right: %s",
       err.msg);
    end(&s);
}

int main(void)
{
    test_both_ways(1);
    test_both_ways(255);
    test_both_ways(256);
    test_both_ways(300);
    test_another_history(2);
    test_another_history(10);
    test_damaged_full_tile(256);
    test_damaged_full_tile(512);
    return tap_done();
}
