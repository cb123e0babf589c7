/* SPDX-License-Identifier: Apache-2.0 */
#include "evidence/latch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/str.h"

/*
 * The word, from the lowest bit: held, slot, pid, and a count that tells apart two who
 * had the same slot and pid one after the other.
 */
#define HELD      ((uint64_t)1)
#define SLOT_BITS 12
#define PID_BITS  22 /* the most that Linux gives */
#define SLOT_AT   1
#define PID_AT    (SLOT_AT + SLOT_BITS)
#define COUNT_AT  (PID_AT + PID_BITS)

_Static_assert(LATCH_USERS_MAX == 1 << SLOT_BITS, "a slot fits its bits");

#define SLOTS_FROM                                                                       \
    4096 /* offset of the first slot's lock: behind all that is in the file */

struct latch_file {
    char magic[8];
    _Atomic uint64_t word;
    _Atomic uint64_t opened;
};

_Static_assert(sizeof(struct latch_file) == LATCH_BYTES, "the file is this struct");

static const char magic[8] = { 'a', 's', 's', 'a', 'y', 'l', 'k', '1' };

static bool is_whole(const char *found, ssize_t n)
{
    return n == LATCH_BYTES && memcmp(found, magic, sizeof(magic)) == 0;
}

/* Who began it may have died on the way, or found the disk full. Written, not only made
 * longer: a hole that the disk has no room to fill would kill who writes to the mapping.
 */
int latch_make(int fd, struct err *err)
{
    struct latch_file f = { .word = 0 };
    char found[LATCH_BYTES + 1];
    ssize_t n = file_read_at(fd, found, sizeof(found), 0);

    if (n < 0)
        return err_errno(err, "cannot read the lock file");
    if (is_whole(found, n))
        return 0;
    memcpy(f.magic, magic, sizeof(magic));
    if (n >= LATCH_BYTES || memcmp(found, &f, (size_t)n) != 0)
        return err_set(err, ERR_FORMAT, "the lock file holds something else");
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_errno(err, "cannot write the lock file");
    return file_write(fd, str_of((const char *)&f, sizeof(f)), NULL, err);
}

int latch_is(int fd, bool *is, struct err *err)
{
    char found[LATCH_BYTES + 1];
    ssize_t n = file_read_at(fd, found, sizeof(found), 0);

    if (n < 0)
        return err_errno(err, "cannot read the lock file");
    *is = is_whole(found, n);
    if (n == 0 || *is)
        return 0;
    return err_set(err, ERR_FORMAT, "the lock file holds something else");
}

static struct flock lock_of(unsigned slot)
{
    return (struct flock){ .l_type = F_WRLCK,
                           .l_whence = SEEK_SET,
                           .l_start = SLOTS_FROM + (off_t)slot,
                           .l_len = 1 };
}

/* Two mappings of a file are the same memory, no other machine has it, and to write to
 * one needs no room that a full disk does not have (btrfs and its like write elsewhere
 * each time). */
static bool is_local(int fd)
{
    static const uint32_t local[] = {
        0xEF53,     /* ext2, ext3, ext4 */
        0x58465342, /* xfs */
        0x01021994, /* tmpfs */
        0x794C7630, /* overlayfs */
        0x2FC12FC1, /* zfs */
    };
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return false;
    for (size_t i = 0; i < COUNT(local); i++) {
        if ((uint32_t)fs.f_type == local[i])
            return true;
    }
    return false;
}

/* There are kernels, or what passes for one, without locks of this kind. */
bool latch_fits(int fd)
{
    struct flock lock = lock_of(0);

    return is_local(fd) && fcntl(fd, F_OFD_GETLK, &lock) == 0;
}

/* `first` is different for each who comes: most find their slot at once. */
static int take_slot(int fd, uint64_t first, unsigned *slot, struct err *err)
{
    for (unsigned i = 0; i < LATCH_USERS_MAX; i++) {
        struct flock lock = lock_of(*slot = (first + i) % LATCH_USERS_MAX);

        if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
            return 0;
        if (errno != EAGAIN && errno != EACCES && errno != EINTR)
            return err_errno(err, "cannot lock a place in the lock file");
    }
    return err_set(err, ERR_LIMIT, "%d recorders have this log open: no more than that",
                   LATCH_USERS_MAX);
}

static unsigned slot_of(uint64_t word)
{
    return word >> SLOT_AT & (LATCH_USERS_MAX - 1);
}

/* Our own locks are not seen here: a word that has our slot, while we do not hold the
 * latch, is of one who had the slot before us. */
static bool is_alive(const struct latch *l, uint64_t word)
{
    struct flock lock = lock_of(slot_of(word));

    return fcntl(l->fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

void latch_break(struct latch *l)
{
    uint64_t word = atomic_load(&l->file->word);

    if ((word & HELD) && word != (l->ours | HELD) && !is_alive(l, word))
        atomic_compare_exchange_strong(&l->file->word, &word, word & ~HELD);
}

/* How many forks lie behind this process, since it first opened a latch. */
static _Atomic unsigned forks;

static void count_fork(void)
{
    forks++;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

bool latch_is_inherited(const struct latch *l)
{
    return l->forks != atomic_load_explicit(&forks, memory_order_relaxed);
}

int latch_open(struct latch *l, int fd, struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct latch made = { .fd = fd };
    uint64_t count;
    unsigned slot;
    void *p = mmap(NULL, LATCH_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (p == MAP_FAILED)
        return err_errno(err, "cannot map the lock file");
    pthread_once(&once, watch_forks);
    made.file = p;
    made.forks = forks;
    count = atomic_fetch_add(&made.file->opened, 1);
    if (take_slot(fd, count, &slot, err) < 0) {
        latch_close(&made);
        return -1;
    }
    made.ours = (uint64_t)slot << SLOT_AT |
                ((uint64_t)getpid() & ((1 << PID_BITS) - 1)) << PID_AT |
                count << COUNT_AT;
    *l = made;
    if (slot_of(atomic_load(&made.file->word)) == slot)
        latch_break(l); /* to the others, its holder lives from now on */
    return 0;
}

void latch_close(struct latch *l)
{
    if (l->file)
        munmap(l->file, LATCH_BYTES);
    *l = (struct latch){ .fd = -1 };
}

bool latch_is_open(const struct latch *l)
{
    return l->file != NULL;
}

enum latch_taken latch_try(struct latch *l)
{
    uint64_t word = atomic_load_explicit(&l->file->word, memory_order_relaxed);

    if ((word & HELD) ||
        !atomic_compare_exchange_strong(&l->file->word, &word, l->ours | HELD))
        return LATCH_BUSY;
    return word == l->ours ? LATCH_OURS : LATCH_CHANGED;
}

void latch_free(struct latch *l)
{
    atomic_store_explicit(&l->file->word, l->ours, memory_order_release);
}

pid_t latch_holder(const struct latch *l)
{
    uint64_t word = atomic_load_explicit(&l->file->word, memory_order_relaxed);

    return (pid_t)(word >> PID_AT & ((1 << PID_BITS) - 1));
}
