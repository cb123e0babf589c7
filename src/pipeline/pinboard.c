/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/pinboard.h"

#include <stdio.h>

#include "base/err.h"
#include "evidence/crypto.h"
#include "json/jcs.h"

#define NAME_SIZE 128 /* with its NUL */

static bool is_plain_name(str s)
{
    if (s.n == 0 || s.n > 100 || s.p[0] == '.' || str_starts(s, STR("id_")))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
              (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_'))
            return false;
    }
    return true;
}

/* How the directory of a server is called. */
static void name_dir(char name[static NAME_SIZE], const char *server_id)
{
    struct digest d = digest_of(str_from(server_id));

    memset(name, 0, NAME_SIZE);
    memcpy(name, "id_", 3);
    if (is_plain_name(str_from(server_id)))
        snprintf(name, NAME_SIZE, "%s", server_id);
    else
        digest_hex(name + 3, &d);
}

static int read_pins(const struct pinboard *b, const char *name, struct pins *out,
                     bool *found, struct err *err)
{
    CLEANUP(buf_release) struct buf bytes = { .max = PINBOARD_MAX };
    char path[FILE_PATH_MAX];

    *found = false;
    if (path_join(path, b->dir, name, err) < 0)
        return -1;
    if (file_read(path, &bytes, err) < 0)
        return err->code == ERR_NOTFOUND ? 0 : -1;
    *found = true;
    return pins_read(out, buf_str(&bytes), err) < 0 ? err_wrap(err, "'%s'", path) : 0;
}

int pinboard_open_dir(struct pinboard *b, const char *audit_dir, const char *name,
                      struct err *err)
{
    char dir[FILE_PATH_MAX], path[FILE_PATH_MAX];
    bool ignored;

    *b = (struct pinboard){ .found = false };
    if (path_join(dir, audit_dir, PINBOARD_DIR, err) == 0 &&
        path_join(path, dir, name, err) == 0 && (b->dir = strdup(path)) != NULL &&
        read_pins(b, "offered.json", &b->offered, &ignored, err) == 0 &&
        read_pins(b, "pins.json", &b->pins, &b->found, err) == 0)
        return 0;
    pinboard_release(b);
    return -1;
}

int pinboard_open(struct pinboard *b, const char *audit_dir, const char *server_id,
                  struct err *err)
{
    char name[NAME_SIZE];

    name_dir(name, server_id);
    return pinboard_open_dir(b, audit_dir, name, err);
}

void pinboard_release(struct pinboard *b)
{
    pins_release(&b->pins);
    pins_release(&b->offered);
    free(b->dir);
    *b = (struct pinboard){ .found = false };
}

int pinboard_refresh(struct pinboard *b, struct err *err)
{
    bool ignored;

    return read_pins(b, "pins.json", &b->pins, &ignored, err);
}

static int save(const struct pinboard *b, const char *name, const struct pins *p,
                struct err *err)
{
    CLEANUP(buf_release) struct buf bytes = { .max = PINBOARD_MAX };
    char path[FILE_PATH_MAX];

    pins_write(p, &bytes);
    if (buf_check(&bytes, "the file of pins", err) < 0 ||
        file_make_dirs(b->dir, 0700, err) < 0 || path_join(path, b->dir, name, err) < 0)
        return -1;
    return file_replace(path, buf_str(&bytes), 0600, err);
}

int pinboard_save_pins(const struct pinboard *b, struct err *err)
{
    return save(b, "pins.json", &b->pins, err);
}

int pinboard_save_offers(const struct pinboard *b, struct err *err)
{
    return save(b, "offered.json", &b->offered, err);
}

int pinboard_keep(const struct pinboard *b, const struct json *j, uint32_t tool,
                  const struct pin *p, struct err *err)
{
    CLEANUP(buf_release) struct buf text = { .max = PINBOARD_MAX };
    struct sink sink = buf_sink(&text);
    char path[FILE_PATH_MAX], hex[PIN_HEX], name[PIN_HEX + 5];

    pin_hex(hex, &p->hash);
    snprintf(name, sizeof(name), "%s.json", hex);
    if (jcs_write(j, tool, JCS_RFC8785, &sink, err) < 0 ||
        buf_check(&text, "a tool's definition", err) < 0 ||
        file_make_dirs(b->dir, 0700, err) < 0 || path_join(path, b->dir, name, err) < 0)
        return -1;
    if (file_create(path, buf_str(&text), 0600, err) == 0 || err->code == ERR_EXISTS)
        return 0;
    return -1;
}

bool pinboard_differs(const struct pinboard *b, str tool)
{
    const struct pin *offered = pins_find(&b->offered, tool);
    const struct pin *pin = pins_find(&b->pins, tool);

    return offered &&
           (!pin || memcmp(&pin->hash, &offered->hash, sizeof(pin->hash)) != 0);
}
