/*
 * A job on one simulated network, its checkpoints on a simulated disk: what the tests of the scheduler's part
 * in them share. Its servers write a block each, at once or when they are told, and load nothing.
 */
#ifndef TEST_CLUSTER_SUPPORT_CKPT_JOB_H
#define TEST_CLUSTER_SUPPORT_CKPT_JOB_H

#include "unit.h"

#include "cluster/support_simcluster.h"
#include "sim/env/simfs.h"
#include "wire/ckpt_order.h"

#define CKPT_DIR "/d/ckpt"

enum { CKPT_SERVERS = 2, CKPT_UNKNOWN_ORDER = 77 };
enum { CKPT_ASK_SAVE, CKPT_ASK_CHANGES, CKPT_ASK_LOAD };

struct ckpt_job {
    struct cluster c;
    struct simfs *disk;
    struct blocking_jobs *blocking_jobs;
    /* What the servers do: their part at once, or nothing before they are told. */
    bool wait, fail;
    bool migrates;                               /* they carry out all migrations; otherwise none */
    unsigned saves, drops, loads, goes, sources; /* sources: orders to begin a migration */
    uint64_t held[CKPT_SERVERS + 2];             /* orders that wait */
    uint64_t unknown[64];                        /* orders CKPT_UNKNOWN_ORDER, which stay unanswered */
    unsigned unknown_count;
    struct ckpt_order order;
    uint64_t jobs;     /* so far, on this disk */
    bool keeps;        /* the scheduler keeps its state */
    bool on_loss;      /* what is lost is restored; ... */
    paramo_err cannot; /* ... or that is why the servers cannot */
    unsigned restores;
    uint32_t replicas;
    /* it takes one every ten seconds, and keeps this many; 0: it takes none */
    uint32_t applied_window_retain;
    bool looked;
    paramo_err query_status;
    uint64_t query_number;
};

extern struct ckpt_job ckpt_job;

struct tnode *ckpt_worker(void);
void ckpt_start_server(unsigned i);
/* With what ckpt_job says of it; it finds what it kept. */
void ckpt_scheduler_on(void);
void ckpt_scheduler_off(void);
/* A job begins, on the disk that there is; restore: a folder, or "". */
void ckpt_on(const char *restore);
void ckpt_on_joined(void);
/* It ends; the disk stays until ckpt_disk_end. */
void ckpt_off(void);
void ckpt_disk_end(void);
/* What a server that waited does. */
void ckpt_do_part(struct tnode *node, uint64_t order);
/* The worker asks (CKPT_ASK_...). */
void ckpt_ask(struct tcall *call, int what, const char *dir, double seconds);
paramo_err ckpt_answered(struct tcall *call);
paramo_err ckpt_save(struct tcall *call);
void ckpt_open_table_of(const char *name, uint32_t replicas);
void ckpt_open_table(const char *name);
/* Server 1, to the scheduler. */
bool ckpt_one_is_dead(void *arg);

#endif
