#include "learn/io/kept_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BUFFER_BYTES (64u << 10) /* arbitrary */
#define POLL_MS      100         /* how soon a wait sees that it must end; arbitrary */

struct kept_entry {
    struct kept_entry *next;
    char *path;
    size_t bytes;
    struct kept_pipe of;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static struct kept_entry *first;

static struct kept_entry **place_of(const char *path)
{
    struct kept_entry **at = &first;
    while (*at && strcmp((*at)->path, path) != 0)
        at = &(*at)->next;
    return at;
}

static void release(struct kept_entry *k)
{
    if (k && k->of.memory >= 0)
        (void)close(k->of.memory);
    if (k && k->of.rest >= 0)
        (void)close(k->of.rest);
    if (k)
        free(k->path);
    free(k);
}

static paramo_err failed(const char *path, const char *what)
{
    const int e = errno;
    return paramo_error_set(e == ENOENT ? PARAMO_E_NOT_FOUND : PARAMO_E_IO, "%s: %s: %s",
                            strcmp(path, "-") == 0 ? "<stdin>" : path, what, strerror(e));
}

static paramo_err open_kept(const char *path, struct kept_entry **kept)
{
    struct kept_entry *k = calloc(1, sizeof *k);
    if (!k || !(k->path = strdup(path))) {
        free(k);
        return paramo_error_set(PARAMO_E_MEMORY, "%s: out of memory", path);
    }
    k->of.memory = -1;
    k->of.rest =
        strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC);
    paramo_err err = k->of.rest >= 0 ? PARAMO_OK : failed(path, "cannot open");
    if (err == PARAMO_OK && (k->of.memory = memfd_create("paramo", MFD_CLOEXEC)) < 0)
        err = failed(path, "cannot be kept in memory");
    if (err != PARAMO_OK) {
        release(k);
        return err;
    }
    *kept = k;
    return PARAMO_OK;
}

/* Waits until the pipe has bytes, or has ended. */
static paramo_err wait_for(const struct kept_entry *k, int (*stopped)(void))
{
    struct pollfd p = {.fd = k->of.rest, .events = POLLIN};
    for (;;) {
        if (stopped && stopped())
            return paramo_error_set(PARAMO_E_INTERRUPTED, "interrupted before the end of the data");
        const int n = poll(&p, 1, POLL_MS);
        if (n < 0 && errno != EINTR)
            return failed(k->path, "cannot wait for data");
        if (n > 0)
            return PARAMO_OK;
    }
}

static paramo_err put(const struct kept_entry *k, const char *data, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(k->of.memory, data, n);
        if (done < 0 && errno != EINTR)
            return failed(k->path, "cannot be kept in memory");
        data += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return PARAMO_OK;
}

static paramo_err fill(struct kept_entry *k, size_t most, int (*stopped)(void))
{
    char *buffer = malloc(BUFFER_BYTES);
    paramo_err err = buffer ? PARAMO_OK : paramo_error_set(PARAMO_E_MEMORY, "%s: out of memory", k->path);
    while (err == PARAMO_OK && k->bytes <= most) {
        err = wait_for(k, stopped);
        const ssize_t n = err == PARAMO_OK ? read(k->of.rest, buffer, BUFFER_BYTES) : 0;
        if (err != PARAMO_OK || (n < 0 && errno == EINTR))
            continue;
        if (n < 0)
            err = failed(k->path, "cannot read");
        else if (n == 0) {
            (void)close(k->of.rest);
            k->of.rest = -1;
            break;
        } else if ((err = put(k, buffer, (size_t)n)) == PARAMO_OK)
            k->bytes += (size_t)n;
    }
    free(buffer);
    return err;
}

paramo_err kept_pipe_read(const char *path, size_t most, int (*stopped)(void), size_t *bytes, int *whole)
{
    (void)pthread_mutex_lock(&lock);
    struct kept_entry *k = *place_of(path);
    (void)pthread_mutex_unlock(&lock);
    paramo_err err = PARAMO_OK;
    if (!k) {
        err = open_kept(path, &k);
        if (err != PARAMO_OK)
            return err;
        err = fill(k, most, stopped);
        (void)lseek(k->of.memory, 0, SEEK_SET);
        (void)pthread_mutex_lock(&lock);
        k->next = first;
        first = k;
        (void)pthread_mutex_unlock(&lock);
    }
    *bytes = k->bytes;
    *whole = k->of.rest < 0;
    return err;
}

int kept_pipe_find(const char *path, struct kept_pipe *kept)
{
    (void)pthread_mutex_lock(&lock);
    struct kept_entry **at = place_of(path), *k = *at;
    if (k)
        *kept = k->of;
    if (k && k->of.rest >= 0) {
        *at = k->next;
        k->of.memory = k->of.rest = -1;
        release(k);
    }
    (void)pthread_mutex_unlock(&lock);
    return k != NULL;
}

void kept_pipe_free_all(void)
{
    (void)pthread_mutex_lock(&lock);
    while (first) {
        struct kept_entry *k = first;
        first = k->next;
        release(k);
    }
    (void)pthread_mutex_unlock(&lock);
}
