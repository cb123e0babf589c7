/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/pinboard.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "evidence/crypto.h"
#include "tests/tap.h"

static struct pin pin_named(const char *name, char hash)
{
    struct pin p = { .name = str_from(name) };

    memset(&p.hash, hash, sizeof(p.hash));
    memset(&p.body, hash + 1, sizeof(p.body));
    return p;
}

static bool put(struct pins *set, const char *name, char hash)
{
    struct pin p = pin_named(name, hash);
    struct err err;

    return pins_put(set, &p, &err) == 0;
}

static void test_keeping(const char *dir)
{
    struct pinboard b, again;
    struct err err = { 0 };

    ok(pinboard_open(&b, dir, "server-1", &err) == 0 && !b.found, "an empty board");
    ok(access(b.dir, F_OK) < 0, "for which nothing was made");
    ok(put(&b.pins, "echo", 1) && put(&b.offered, "echo", 2), "pinned, and changed");
    ok(pinboard_differs(&b, STR("echo")) && !pinboard_differs(&b, STR("other")),
       "it differs");
    ok(pinboard_save_pins(&b, &err) == 0 && pinboard_save_offers(&b, &err) == 0,
       "saved: %s", err.msg);
    ok(pinboard_open(&again, dir, "server-1", &err) == 0 && again.found &&
           pinboard_differs(&again, STR("echo")),
       "and found again");
    ok(put(&again.pins, "echo", 2) && pinboard_save_pins(&again, &err) == 0, "accepted");
    ok(pinboard_differs(&b, STR("echo")) && pinboard_refresh(&b, &err) == 0 &&
           !pinboard_differs(&b, STR("echo")),
       "which the other one sees when it looks");
    pinboard_release(&b);
    pinboard_release(&again);
    pinboard_release(&again);
}

static void test_names(const char *dir)
{
    static const char *const odd[] = { "",     ".",   "..",       "a/b",
                                       "../x", "a b", "\xc3\xa9", "id_x" };
    char expected[2 * DIGEST_SIZE + 4] = "id_";
    struct pinboard b;
    struct err err = { 0 };

    for (size_t i = 0; i < COUNT(odd); i++) {
        struct digest d = digest_of(str_from(odd[i]));

        digest_hex(expected + 3, &d);
        ok(pinboard_open(&b, dir, odd[i], &err) == 0 &&
               str_ends(str_from(b.dir), str_of(expected, sizeof(expected) - 1)),
           "'%s' goes by its hash", odd[i]);
        pinboard_release(&b);
    }
    ok(pinboard_open(&b, dir, "a.b-c_D9", &err) == 0 &&
           str_ends(str_from(b.dir), STR("/pins/a.b-c_D9")),
       "a plain name stays");
    pinboard_release(&b);
}

static void test_damage(const char *dir)
{
    char path[FILE_PATH_MAX];
    struct pinboard b;
    struct err err = { 0 };

    ok(path_join(path, dir, "pins/bad", &err) == 0 &&
           file_make_dirs(path, 0700, &err) == 0 &&
           path_join(path, dir, "pins/bad/pins.json", &err) == 0 &&
           file_put(path, STR("{\"pins\":7}\n"), 0600, &err) == 0,
       "a file that is none");
    ok(pinboard_open(&b, dir, "bad", &err) < 0, "is refused: %s", err.msg);
}

int main(void)
{
    char dir[] = "/tmp/assay-pinboard-XXXXXX";
    struct err err = { 0 };

    if (!mkdtemp(dir))
        return 1;
    test_keeping(dir);
    test_names(dir);
    test_damage(dir);
    ok(file_remove_tree(dir, &err) == 0, "cleaned up");
    return tap_done();
}
