/*
 * What the workers of a job have sent and had acknowledged, in a file that they share: so each of them can
 * judge each value that it reads while all of them write.
 *
 *     sent[key]  is raised before a push is issued,  acked[key]  after it was acknowledged;
 *     a pull that begins when acked was a and is answered when sent is s reads a value of [a, s].
 *
 * No worker may read less than what was acknowledged to any worker before, or more than was ever sent. At the
 * end of all pushes both are equal, and the value is the same. Used by adder.c and mixer.c.
 */
#ifndef TEST_E2E_BOOK_H
#define TEST_E2E_BOOK_H

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct book_entry {
    _Atomic int64_t sent, acked;
};

/* n entries; the first process makes them, with zeros. */
static inline struct book_entry *book_open(const char *path, size_t n)
{
    size_t bytes = n * sizeof(struct book_entry);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    void *map = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
        map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        perror(path);
        exit(4);
    }
    close(fd);
    return map;
}

static inline void book_send(struct book_entry *e, int64_t value)
{
    atomic_fetch_add(&e->sent, value);
}

static inline void book_acknowledge(struct book_entry *e, int64_t value)
{
    atomic_fetch_add(&e->acked, value);
}

/* Least that a read may give that is issued after this. */
static inline int64_t book_least(struct book_entry *e)
{
    return atomic_load(&e->acked);
}

/* Most that a read may have given that was answered before this. */
static inline int64_t book_most(struct book_entry *e)
{
    return atomic_load(&e->sent);
}

#endif
