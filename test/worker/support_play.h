/*
 * Plays: a world on one simulated network, with faults from a seed (test_*_sim.c). Here is what they share:
 * the seeds themselves, links that lose and repeat, views that arrive late, pushes of small numbers to three
 * tables, and the sums that must be there at the end.
 */
#ifndef TEST_WORKER_SUPPORT_PLAY_H
#define TEST_WORKER_SUPPORT_PLAY_H

#include "unit.h"
#include "worker/support_world.h"

enum { PLAY_DENSE, PLAY_SPARSE, PLAY_MOMENTUM, PLAY_TABLES };
enum { PLAY_KEYS = 512 };

struct play {
    struct world w;
    uint64_t seed;
    uint64_t view_at[WORLD_CLIENTS],
        server_view_at[WORLD_SERVERS];    /* when each takes the present view; 0: never */
    uint64_t server_view[WORLD_SERVERS];  /* the number of what each has */
    unsigned apart;                       /* a server that is cut off, or killed; WORLD_SERVERS: none */
    double model[PLAY_TABLES][PLAY_KEYS]; /* all that was pushed */
    double acknowledged[PLAY_TABLES][PLAY_KEYS]; /* that was */
    /* Not 0: requests are for the first `few` keys of the dense table. Client 0 pushes, the others pull: a request
     * that waits for an owner holds back all later ones of its client. */
    unsigned few;
    unsigned issued;
    uint16_t owner[RING_PARTITIONS];       /* in the newest view, and ... */
    uint64_t owner_since[RING_PARTITIONS]; /* ... the number of the first view since which it is */
    struct play_op *ops;
};

#define play_check(p, condition)                                                                             \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            fail_msg("seed %llu, line %d: %s", (unsigned long long)(p)->seed, __LINE__, #condition);         \
    } while (0)

/* Runs one(seed) for this number of seeds from 1 on (UNIT_SEEDS), or those of the command line: PROGRAM SEED [COUNT].
 * Returns main's code. */
int play_main(int argc, char **argv, unsigned count, void (*one)(uint64_t seed));
unsigned play_seeds(void); /* how many that are */

/* A simulated world without tables; requests wait an hour. */
void play_open(struct play *p, uint64_t seed);
/* Up to this number of frames in a million are lost, repeated, late by up to 300 ms. */
void play_links(struct play *p, uint32_t loss, uint32_t repeat, uint32_t late);
/* In these classes of frames (bits), of all that stand. */
void play_faulty(struct play *p, unsigned classes);
void play_close(struct play *p);

uint64_t play_draw(struct play *p, uint64_t below);
void play_run(struct play *p, uint64_t ns); /* as long as something happens */
/* "s", 1 to "w", 0. */
struct simnet_link *play_link(struct play *p, const char *from, unsigned i, const char *to, unsigned k);
/* Cuts the links between this server and all others, or mends them; both: those to it as well. */
void play_part(struct play *p, unsigned server, bool cut, bool both);
unsigned play_living(struct play *p); /* any server that is alive */
/* To those whose time has come, or (now) to all. */
void play_views(struct play *p, bool now);

/* PLAY_TABLES of PLAY_KEYS keys; before world_start. */
void play_tables(struct play *p);
uint64_t play_key(unsigned table, unsigned i);
/* A push, pull or both of some two dozen keys, by one of the clients; now and then a table is counted, or a
 * part of it gone through. What is read is compared when it comes: no value is older than what was
 * acknowledged when it was asked for, and nothing of that is left out. */
void play_issue(struct play *p);
/* All requests end well, and the tables have what was pushed; each member of a partition's chain has the same rows,
 * state included; nothing is in flight between the members. */
void play_verify(struct play *p);
void play_explain(const struct play *p); /* what the servers wait for */

#endif
