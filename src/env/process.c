#include "env/process.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static atomic_uint generation = 1;

static void forked(void)
{
    atomic_fetch_add(&generation, 1);
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forked);
}

unsigned process_generation(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

const char *process_variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

struct kept {
    struct kept *next;
    char text[];
};

const char *process_keep(const char *text)
{
    static _Atomic(struct kept *) first; /* entries are only added */
    for (struct kept *k = atomic_load(&first); k; k = k->next)
        if (strcmp(k->text, text) == 0)
            return k->text;
    size_t len = strlen(text) + 1;
    struct kept *k = malloc(sizeof *k + len);
    if (!k)
        return NULL;
    memcpy(k->text, text, len);
    k->next = atomic_load(&first);
    while (!atomic_compare_exchange_weak(&first, &k->next, k)) /* two threads may add the same text */
        ;
    return k->text;
}

void process_notify(int fd, const char *line)
{
    ssize_t sent = fd < 0 ? 0 : send(fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent;
}

paramo_err event_create(int *fd)
{
    int made = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (made < 0)
        return err_errno(PARAMO_E_SYSTEM, errno, "make an eventfd");
    *fd = made;
    return PARAMO_OK;
}

void event_signal(int fd)
{
    uint64_t one = 1;
    ssize_t wrote = write(fd, &one, sizeof one);
    (void)wrote; /* EAGAIN: the counter is full, so the descriptor is readable already */
}

void event_drain(int fd)
{
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof count);
    (void)got;
}

void event_close(int fd)
{
    (void)close(fd);
}

paramo_err process_path(const char *path, char *out, size_t capacity)
{
    char here[PATH_MAX] = "";
    if (path[0] != '/' && !getcwd(here, sizeof here))
        return err_errno(PARAMO_E_SYSTEM, errno, "find the working directory");
    int len = snprintf(out, capacity, "%s%s%s", here, here[0] ? "/" : "", path);
    return len < 0 || (size_t)len >= capacity ? err_set(PARAMO_E_TOO_LARGE, "the path is too long: %s", path)
                                              : PARAMO_OK;
}

uint64_t process_unix_time(void)
{
    time_t now = time(NULL);
    return now < 0 ? 0 : (uint64_t)now;
}
