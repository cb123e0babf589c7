/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flip - every single-bit flip over the files of a directory, and a list of places where
 * a flip may stay unseen.
 *
 * quick: the lowest bit of every byte and one other, in turn, and of the listed places
 * every eighth byte. soak: all eight bits of all bytes.
 */
#ifndef TESTS_FLIP_H
#define TESTS_FLIP_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "tests/tap.h"

#define FLIP_PLACES_MAX 64

/* Bytes [from, to) of a file, named as below the directory, that nothing vouches for. */
struct flip_place {
    char file[128];
    size_t from, to;
    const char *why; /* as in the document */
    size_t unseen;
};

struct flip {
    bool all_bits;
    size_t stride; /* unless all_bits: look at every so many bytes only; 0: at all */
    bool (*is_found)(void *ctx); /* is the directory refused as it is now? */
    void *ctx;
    struct flip_place place[FLIP_PLACES_MAX];
    size_t places;
    size_t files, bytes, flips, unseen;
};

__attribute__((unused)) static void flip_allow(struct flip *f, const char *file,
                                               size_t from, size_t to, const char *why)
{
    struct flip_place *p = &f->place[f->places++];

    if (f->places > FLIP_PLACES_MAX)
        abort();
    snprintf(p->file, sizeof(p->file), "%s", file);
    p->from = from;
    p->to = to;
    p->why = why;
}

/* The listed place that this byte lies in, or NULL. */
static struct flip_place *flip_place_of(struct flip *f, const char *name, size_t at)
{
    for (size_t i = 0; i < f->places; i++) {
        struct flip_place *p = &f->place[i];

        if (strcmp(p->file, name) == 0 && at >= p->from && at < p->to)
            return p;
    }
    return NULL;
}

static void flip_bit(struct flip *f, const char *name, char *p, size_t at, unsigned bit)
{
    struct flip_place *listed = flip_place_of(f, name, at);

    p[at] = (char)(p[at] ^ (1 << bit));
    f->flips++;
    if (!f->is_found(f->ctx)) {
        if (listed) {
            listed->unseen++;
        } else {
            f->unseen++;
            printf("# unseen: bit %u of byte %zu of %s\n", bit, at, name);
        }
    }
    p[at] = (char)(p[at] ^ (1 << bit));
}

static void flip_byte(struct flip *f, const char *name, char *p, size_t at)
{
    f->bytes++;
    if (!f->all_bits && f->stride && at % f->stride != 0)
        return;
    if (!f->all_bits && at % 8 != 0 && flip_place_of(f, name, at))
        return;
    for (unsigned bit = 0; bit < 8; bit++) {
        if (f->all_bits || bit == 0 || bit == 1 + at % 7)
            flip_bit(f, name, p, at, bit);
    }
}

static void flip_file(struct flip *f, const char *path, const char *name)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    char *p;

    if (fd < 0 || fstat(fd, &st) < 0)
        abort();
    f->files++;
    if (st.st_size > 0) {
        p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED)
            abort();
        for (size_t i = 0; i < (size_t)st.st_size; i++)
            flip_byte(f, name, p, i);
        munmap(p, (size_t)st.st_size);
    }
    close(fd);
}

/* Everything below `dir`/`name`. */
static void flip_tree(struct flip *f, const char *dir, const char *name)
{
    char path[1024];
    struct dirent *entry;
    struct stat st;
    DIR *d;

    snprintf(path, sizeof(path), "%s%s%s", dir, name[0] ? "/" : "", name);
    if (stat(path, &st) < 0)
        abort();
    if (!S_ISDIR(st.st_mode)) {
        flip_file(f, path, name);
        return;
    }
    d = opendir(path);
    while (d && (entry = readdir(d))) {
        char below[600];

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(below, sizeof(below), "%s%s%.250s", name, name[0] ? "/" : "",
                 entry->d_name);
        flip_tree(f, dir, below);
    }
    if (d)
        closedir(d);
}

/* The list has no row too many, and the document says the same. */
static void flip_check_list(const struct flip *f, const char *document)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct err err = { 0 };

    if (file_read(document, &text, &err) < 0)
        ok(false, "%s", err.msg);
    for (size_t i = 0; i < f->places; i++) {
        const struct flip_place *p = &f->place[i];

        ok(p->unseen > 0, "%s, bytes %zu to %zu: the row is needed", p->file, p->from,
           p->to - 1);
        ok(strstr(buf_cstr(&text), p->why) != NULL, "%s says: %s", document, p->why);
    }
}

#endif
