/*
 * How quick this machine is at the moment, beside a test that measures times: by how much a sleep of 1 ms is
 * late, as each hop of a message is that wakes a thread, and how long an fsync of a small file takes.
 *
 *     probe FILE > RESULT     until SIGTERM; writes to FILE
 *
 * One JSON line at the end, milliseconds.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 100000, SLOT_US = 50, WAKES_A_SYNC = 100 }; /* the last slot is for all beyond */

struct spread {
    uint32_t slot[SLOTS];
    uint64_t count;
    double most;
};

static volatile sig_atomic_t ended;

static void end(int sig)
{
    (void)sig;
    ended = 1;
}

static double now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void spread_add(struct spread *s, double ms)
{
    double slot = ms < 0 ? 0 : ms * 1e3 / SLOT_US;
    s->slot[slot < SLOTS - 1 ? (size_t)slot : SLOTS - 1]++;
    s->count++;
    s->most = ms > s->most ? ms : s->most;
}

static double spread_at(const struct spread *s, double share)
{
    uint64_t seen = 0;
    size_t at = 0;
    while (at < SLOTS - 1 && (double)(seen += s->slot[at]) < share * (double)s->count)
        at++;
    return (double)(at + 1) * SLOT_US / 1e3;
}

int main(int argc, char **argv)
{
    static struct spread wake, sync;
    int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (fd < 0) {
        fputs("usage: probe FILE\n", stderr);
        return 2;
    }
    (void)signal(SIGTERM, end);
    for (uint64_t i = 0; !ended; i++) {
        struct timespec ms = {.tv_nsec = 1000000};
        double begun = now_ms();
        if (nanosleep(&ms, NULL) == 0)
            spread_add(&wake, now_ms() - begun - 1);
        if (i % WAKES_A_SYNC != 0)
            continue;
        begun = now_ms();
        if (pwrite(fd, &i, sizeof i, 0) != (ssize_t)sizeof i || fsync(fd) != 0)
            return 4;
        spread_add(&sync, now_ms() - begun);
    }
    printf("{\"wake_p50_ms\": %.2f, \"wake_p999_ms\": %.2f, \"wake_max_ms\": %.1f, \"fsync_p50_ms\": %.2f, "
           "\"fsync_p99_ms\": %.2f, \"fsync_max_ms\": %.1f}\n",
           spread_at(&wake, 0.5), spread_at(&wake, 0.999), wake.most, spread_at(&sync, 0.5),
           spread_at(&sync, 0.99), sync.most);
    (void)close(fd);
    (void)unlink(argv[1]);
    return 0;
}
