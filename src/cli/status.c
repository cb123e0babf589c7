/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/status.h"

#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/err.h"
#include "base/file.h"
#include "evidence/pack.h"
#include "json/jcs.h"

/* A pipe that is full would stop us, and with us all sessions. A signal ends the wait for
 * it, and does not make it empty. */
static bool is_heard(struct status *s)
{
    struct pollfd err = { .fd = STDERR_FILENO, .events = POLLOUT };

    s->unheard = poll(&err, 1, s->unheard ? 0 : STATUS_PATIENCE) <= 0;
    return !s->unheard;
}

static void write_line(struct buf *b)
{
    struct err ignored; /* there is nobody else to tell */

    buf_add_char(b, '\n');
    if (file_write(STDERR_FILENO, buf_str(b), NULL, &ignored) < 0)
        return;
}

static void tell(struct status *s, const char *event, const char *sentence)
{
    CLEANUP(buf_release) struct buf b = { 0 };

    if (!is_heard(s))
        return;
    if (!s->json) {
        diag_say("%s", sentence);
        return;
    }
    buf_printf(&b, "{\"event\":\"%s\",\"message\":", event);
    jcs_add_string(&b, str_from(sentence));
    buf_add_char(&b, '}');
    write_line(&b);
}

void status_note(void *ctx, const char *sentence)
{
    tell(ctx, "note", sentence);
}

void status_error(struct status *s, const char *sentence)
{
    tell(s, "error", sentence);
}

void status_pack(void *ctx, const struct pack_result *pack)
{
    CLEANUP(buf_release) struct buf b = { 0 };
    struct status *s = ctx;

    if (!is_heard(s))
        return;
    if (!s->json) {
        diag_say("pack: %s", pack->path);
        return;
    }
    buf_add(&b, STR("{\"event\":\"pack\",\"path\":"));
    jcs_add_string(&b, str_from(pack->path));
    buf_printf(&b, ",\"receipts\":%" PRIu64 ",\"root\":\"%s\"}", pack->receipts,
               pack->root);
    write_line(&b);
}

void status_listening(struct status *s, const char *url)
{
    CLEANUP(buf_release) struct buf b = { 0 };

    if (!is_heard(s))
        return;
    if (!s->json) {
        diag_say("listening on %s", url);
        return;
    }
    buf_add(&b, STR("{\"event\":\"listening\",\"url\":"));
    jcs_add_string(&b, str_from(url));
    buf_add_char(&b, '}');
    write_line(&b);
}

void status_end(struct status *s, bool complete, uint64_t calls, enum exit_code code)
{
    CLEANUP(buf_release) struct buf b = { 0 };

    if (!s->json || !is_heard(s))
        return;
    buf_printf(&b,
               "{\"calls\":%" PRIu64 ",\"complete\":%s,\"event\":\"end\",\"exit\":%d}",
               calls, complete ? "true" : "false", (int)code);
    write_line(&b);
}
