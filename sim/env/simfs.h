/*
 * A file system in memory that keeps what a disk keeps: bytes are durable after a sync of their file, names
 * after a sync of their folder. What a crash leaves of the rest is drawn: of a folder's changes the first few
 * (journals keep order), of a file's bytes any sectors, with garbage between. A fault strikes at a given
 * step.
 *
 * One thread. It crashes and restarts without the simulation around it (sim/env/sim.h): the processes that
 * use it then fail in every operation and must be thrown away. Tests: test/env/test_fs.c.
 */
#ifndef SIM_ENV_SIMFS_H
#define SIM_ENV_SIMFS_H

#include <stdbool.h>

#include "env/fs.h"

struct sim;
struct simfs;

enum simfs_fault {
    /* an error, nothing done. Of a sync: what was not durable never will be, as with fsync on Linux */
    SIMFS_FAIL,
    /* a write stops half-way with an error (disk full); a sync reports an error after it succeeded */
    SIMFS_HALF,
    SIMFS_SHORT, /* a write takes one byte */
    SIMFS_CRASH, /* the crash comes before this step */
    SIMFS_FAULTS
};

/* The seed determines what a crash leaves. */
MUST_USE paramo_err simfs_create(uint64_t seed, struct simfs **fs);
/* All its files must be closed. NULL is allowed. */
void simfs_destroy(struct simfs *fs);
struct fs *simfs_fs(struct simfs *fs);
/* Its own allocations are the simulation's: sim_hold() is called around them. */
void simfs_set_sim(struct simfs *fs, struct sim *sim);
/* Steps so far: operations that change something (open to create or lock, write, sync, rename, ...). */
uint64_t simfs_steps(const struct simfs *fs);
/* Plans one fault, at step `step` (counted as by simfs_steps(): the next step is simfs_steps()). */
void simfs_plan(struct simfs *fs, enum simfs_fault fault, uint64_t step);
/* How many planned faults have struck. */
uint64_t simfs_struck(const struct simfs *fs);
/* The next `syncs` syncs report success without effect, like a disk whose cache forgets. A later sync of the
 * same file or folder is honest again. */
void simfs_lie(struct simfs *fs, unsigned syncs);
/* Has the last crash taken something in this folder, or the folder, although a sync had called it durable? */
bool simfs_lost(const struct simfs *fs, const char *folder);
/* Crashes, unless a planned crash has happened, and continues with what is left. Open files must be closed
 * (their operations fail). Locks are free. */
void simfs_restart(struct simfs *fs);
bool simfs_crashed(const struct simfs *fs);
/* Flips a bit, for tests of checksums. False: there is no such file or byte. */
bool simfs_flip(struct simfs *fs, const char *path, uint64_t at, unsigned bit);
/* Cuts the file to this length. */
bool simfs_cut(struct simfs *fs, const char *path, uint64_t size);

#endif
