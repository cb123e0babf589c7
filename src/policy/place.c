/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(SYS_openat2)
#include <linux/openat2.h>
#endif

#include "base/attr.h"

#define WORTH_IT 4 /* components: fewer are looked at as quickly one by one */

bool place_add(struct place *p, str s)
{
    if (s.n > PATH_MAX_BYTES - p->n)
        return false;
    if (s.n)
        memcpy(p->p + p->n, s.p, s.n);
    p->n += s.n;
    return true;
}

bool place_component(str *rest, str *component)
{
    size_t n = 0;

    while (rest->n && rest->p[0] == '/')
        *rest = str_skip(*rest, 1);
    if (rest->n == 0)
        return false;
    while (n < rest->n && rest->p[n] != '/')
        n++;
    *component = str_first(*rest, n);
    *rest = str_skip(*rest, n);
    return true;
}

static void drop_last(struct place *p)
{
    while (p->n > 0 && p->p[--p->n] != '/')
        ;
}

/* Add a component to an absolute path without one at the end; "" is the root. */
static bool append(struct place *to, str component)
{
    if (str_is(component, "."))
        return true;
    if (str_is(component, "..")) {
        drop_last(to);
        return true;
    }
    return place_add(to, STR("/")) && place_add(to, component);
}

bool place_spell(struct place *out, str absolute)
{
    str component;

    out->n = 0;
    while (place_component(&absolute, &component)) {
        if (!append(out, component))
            return false;
    }
    return true;
}

/* --- following --- */

struct walk {
    struct place at;      /* so far, without links */
    struct place pending; /* components still to come */
    size_t missing;       /* length of `at` that does not exist; SIZE_MAX: none */
    unsigned links;
};

/* Replace the link that `at` ends with by its target, before what is still to come. */
static bool enter_link(struct walk *w, str rest, str target)
{
    struct place UNINITIALIZED next;

    next.n = 0;
    if (++w->links > PATH_LINKS_MAX || !place_add(&next, target) ||
        !place_add(&next, rest))
        return false;
    if (target.p[0] == '/')
        w->at.n = 0;
    else
        drop_last(&w->at);
    w->pending.n = 0;
    return place_add(&w->pending, place_str(&next));
}

enum step {
    STEP_ON,    /* an ordinary name, or nothing there */
    STEP_LINK,  /* *target */
    STEP_BLIND, /* we may not look */
};

static enum step look(struct walk *w, char target[static PATH_MAX_BYTES], size_t *n)
{
    ssize_t got;

    if (w->missing != SIZE_MAX)
        return STEP_ON;
    w->at.p[w->at.n] = '\0';
    got = readlink(w->at.p, target, PATH_MAX_BYTES);
    if (got > 0) {
        *n = (size_t)got;
        return STEP_LINK;
    }
    if (got < 0 && errno == ENOENT)
        w->missing = w->at.n;
    return got < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EINVAL)
               ? STEP_ON
               : STEP_BLIND;
}

static const char *walk_on(struct walk *w)
{
    char UNINITIALIZED target[PATH_MAX_BYTES];
    str rest = place_str(&w->pending), component;
    size_t n = 0;

    while (place_component(&rest, &component)) {
        bool is_name = !str_is(component, ".") && !str_is(component, "..");

        if (!append(&w->at, component))
            return PLACE_TOO_LONG;
        if (w->at.n < w->missing)
            w->missing = SIZE_MAX;
        if (!is_name)
            continue;
        switch (look(w, target, &n)) {
        case STEP_ON:
            break;
        case STEP_BLIND:
            return "a path in the arguments leads where it cannot be followed";
        case STEP_LINK:
            if (n == PATH_MAX_BYTES || !enter_link(w, rest, str_of(target, n)))
                return "a path in the arguments leads through too many links";
            rest = place_str(&w->pending);
            break;
        }
    }
    return NULL;
}

/* --- at once --- */

#if defined(SYS_openat2)

/* Does the kernel come to this path without a link on its way? */
static bool opens(struct place *p)
{
    struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
    long fd;

    p->p[p->n] = '\0';
    fd = syscall(SYS_openat2, AT_FDCWD, p->p, &how, sizeof(how));
    if (fd >= 0)
        close((int)fd);
    return fd >= 0;
}

/* Two questions instead of one for each component: is there no link on the way to the
 * last, and is that one none? False: not known. Only for a path without dots that has
 * enough components to be worth it; then *out is it. */
static bool has_no_links(struct place *out, str absolute)
{
    str rest = absolute, component = { NULL, 0 };
    size_t count = 0;
    char one;

    out->n = 0;
    for (; place_component(&rest, &component); count++) {
        if (str_is(component, ".") || str_is(component, "..") || !append(out, component))
            return false;
    }
    if (count < WORTH_IT)
        return false;
    drop_last(out);
    if (!opens(out) || !append(out, component))
        return false;
    out->p[out->n] = '\0';
    return readlink(out->p, &one, 1) < 0 && (errno == EINVAL || errno == ENOENT);
}

#else

static bool has_no_links(struct place *out, str absolute)
{
    (void)out;
    (void)absolute;
    return false;
}

#endif

const char *place_follow(struct place *out, str absolute)
{
    struct walk UNINITIALIZED w;
    const char *what;

    if (has_no_links(out, absolute))
        return NULL;
    w.at.n = w.pending.n = 0;
    w.missing = SIZE_MAX;
    w.links = 0;
    if (!place_add(&w.pending, absolute))
        return PLACE_TOO_LONG;
    what = walk_on(&w);
    if (what)
        return what;
    out->n = 0;
    (void)place_add(out, place_str(&w.at));
    return NULL;
}
