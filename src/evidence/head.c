/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/head.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"

struct slot {
    uint64_t sum; /* over what follows */
    uint64_t generation;
    struct head_state state;
};

struct head_file {
    char magic[8];
    _Atomic uint64_t synced;
    _Atomic uint64_t committed_size;
    _Atomic uint64_t committed_segment;
    _Atomic uint64_t suspect; /* segment + 1; 0 for none */
    uint64_t published[4];    /* sum, segment, offset, seq */
    char boot[40];            /* HEAD_BOOT bytes of it */
    struct slot slot[2];
};

_Static_assert(sizeof(struct head_file) <= HEAD_BYTES, "the head fits its file");

static const char magic[8] = { 'a', 's', 's', 'a', 'y', 'h', 'd', '3' };

/* Finds torn and garbled slots; not a defence against forgery. */
static uint64_t sum_of(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *p = bytes;
    uint64_t sum = seed ^ 0x9e3779b97f4a7c15u, word;

    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&word, p, 8);
        sum = (sum ^ word) * 0xff51afd7ed558ccdu;
        sum ^= sum >> 32;
    }
    return sum | 1; /* never zero: an empty slot is not valid */
}

static uint64_t slot_sum(const struct slot *s)
{
    return sum_of(&s->generation, sizeof(*s) - sizeof(s->sum), 1);
}

/* A hole in a mapped file that the disk has no room to fill kills who writes to it. */
static int reserve(int fd, const char *path, struct err *err)
{
    int r;

    do
        r = fallocate(fd, 0, 0, HEAD_BYTES);
    while (r < 0 && errno == EINTR);
    if (r < 0 && errno != EOPNOTSUPP)
        return err_errno(err, "no room for '%s'", path);
    return 0;
}

static int set_size(int fd, const char *path, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_errno(err, "cannot look at '%s'", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_FORMAT, "'%s' is not a regular file", path);
    if (st.st_size != HEAD_BYTES && file_set_size(fd, HEAD_BYTES, err) < 0)
        return err_wrap(err, "cannot set the size of '%s'", path);
    return st.st_blocks * 512 < HEAD_BYTES ? reserve(fd, path, err) : 0;
}

int head_open(struct head *h, const char *path, mode_t mode, struct err *err)
{
    struct head made = { .fd =
                             file_open(path, O_RDWR | O_CREAT | O_NOFOLLOW, mode, err) };
    void *p;

    if (made.fd < 0)
        return -1;
    if (set_size(made.fd, path, err) < 0) {
        file_close(&made.fd);
        return -1;
    }
    p = mmap(NULL, HEAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, made.fd, 0);
    if (p == MAP_FAILED) {
        err_errno(err, "cannot map '%s'", path);
        file_close(&made.fd);
        return -1;
    }
    made.file = p;
    *h = made;
    return 0;
}

int head_open_to_read(struct head *h, const char *path, struct err *err)
{
    struct head made = { .fd = file_open(path, O_RDONLY | O_NOFOLLOW, 0, err) };
    struct stat st;
    void *p;

    if (made.fd < 0)
        return -1;
    if (fstat(made.fd, &st) < 0 || st.st_size != HEAD_BYTES) {
        file_close(&made.fd);
        return err_set(err, ERR_FORMAT, "'%s' is not %d bytes long", path, HEAD_BYTES);
    }
    p = mmap(NULL, HEAD_BYTES, PROT_READ, MAP_SHARED, made.fd, 0);
    if (p == MAP_FAILED) {
        err_errno(err, "cannot map '%s'", path);
        file_close(&made.fd);
        return -1;
    }
    made.file = p;
    *h = made;
    return 0;
}

void head_close(struct head *h)
{
    if (!h->file)
        return;
    munmap(h->file, HEAD_BYTES);
    file_close(&h->fd);
    *h = (struct head){ .fd = -1 };
}

static bool slot_valid(const struct slot *s)
{
    return s->sum != 0 && s->sum == slot_sum(s);
}

static const struct slot *newest(const struct head_file *f)
{
    const struct slot *best = NULL;

    for (int i = 0; i < 2; i++) {
        if (slot_valid(&f->slot[i]) &&
            (!best || f->slot[i].generation > best->generation))
            best = &f->slot[i];
    }
    return best;
}

/* The slot that we wrote last, while it is the newest; else NULL. */
static const struct slot *left(const struct head *h)
{
    const struct slot *s = &h->file->slot[h->generation & 1];
    const struct slot *other = &h->file->slot[~h->generation & 1];

    return h->left_sum && s->sum == h->left_sum && s->generation == h->generation &&
                   other->generation < h->generation
               ? s
               : NULL;
}

bool head_is_as_left(const struct head *h)
{
    return left(h) != NULL;
}

bool head_read(const struct head *h, struct head_state *out)
{
    const struct slot *s = newest(h->file);

    if (!s || memcmp(h->file->magic, magic, sizeof(magic)) != 0)
        return false;
    *out = s->state;
    return true;
}

void head_write(struct head *h, const struct head_state *state)
{
    struct head_file *f = h->file;
    const struct slot *mine = left(h), *old = mine ? mine : newest(f);
    uint64_t next = old ? old->generation + 1 : 1;
    uint64_t generation = &f->slot[next & 1] == old ? next + 1 : next;
    struct slot *s = &f->slot[generation & 1];

    s->sum = 0;
    atomic_signal_fence(memory_order_seq_cst);
    s->generation = generation;
    s->state = *state;
    atomic_signal_fence(memory_order_seq_cst);
    s->sum = slot_sum(s);
    h->left_sum = s->sum;
    h->generation = generation;
    memcpy(f->magic, magic, sizeof(magic));
    atomic_store(&f->committed_segment, state->segment);
    atomic_store(&f->committed_size, state->size);
}

/* More than was ever written is garbage. */
uint64_t head_synced(const struct head *h)
{
    uint64_t synced = atomic_load(&h->file->synced);

    return synced <= atomic_load(&h->file->committed_size) ? synced : 0;
}

void head_set_synced(struct head *h, uint64_t size)
{
    uint64_t now = atomic_load(&h->file->synced);

    while ((now < size || now > atomic_load(&h->file->committed_size)) &&
           !atomic_compare_exchange_weak(&h->file->synced, &now, size))
        continue;
}

void head_committed(const struct head *h, uint64_t *size, uint64_t *segment)
{
    *size = atomic_load(&h->file->committed_size);
    *segment = atomic_load(&h->file->committed_segment);
}

bool head_suspect(const struct head *h, uint64_t *segment)
{
    uint64_t s = atomic_load(&h->file->suspect);

    *segment = s - 1;
    return s != 0;
}

void head_set_suspect(struct head *h, uint64_t segment)
{
    atomic_store(&h->file->suspect, segment + 1);
}

void head_clear_suspect(struct head *h)
{
    atomic_store(&h->file->suspect, 0);
}

bool head_is_of_boot(const struct head *h, const char boot[static HEAD_BOOT])
{
    return memcmp(h->file->boot, boot, HEAD_BOOT) == 0;
}

void head_set_boot(struct head *h, const char boot[static HEAD_BOOT])
{
    memcpy(h->file->boot, boot, HEAD_BOOT);
}

bool head_published(const struct head *h, struct segment_place *place)
{
    const uint64_t *p = h->file->published;

    if (p[0] != sum_of(p + 1, 3 * sizeof(*p), 2))
        return false;
    *place = (struct segment_place){ p[1], p[2], p[3] };
    return true;
}

void head_set_published(struct head *h, const struct segment_place *place)
{
    uint64_t *p = h->file->published;

    p[0] = 0;
    p[1] = place->segment;
    p[2] = place->offset;
    p[3] = place->seq;
    p[0] = sum_of(p + 1, 3 * sizeof(*p), 2);
}

void head_forget(struct head *h, uint64_t synced)
{
    h->left_sum = 0;
    memset(h->file->slot, 0, sizeof(h->file->slot));
    memset(h->file->published, 0, sizeof(h->file->published));
    atomic_store(&h->file->synced, synced);
}
