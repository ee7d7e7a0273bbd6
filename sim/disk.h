/*
 * A machine's disk: files in memory that keep what a disk keeps (sim/env/simfs.h). Operations take time: a
 * caller that waits for one pauses (`pause`). It never knows what files mean. Tests: test/sim/test_play.c.
 */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include "sim/env/simfs.h"

struct disk;

/* pause(arg) is called before each operation that changes something or reads a file's bytes. Aborts without
 * memory. */
struct disk *disk_new(uint64_t seed, void (*pause)(void *arg), void *arg);
/* One machine's way to files that others see, too. The files stay the caller's. */
struct disk *disk_share(struct simfs *files);
/* Its files are closed. */
void disk_free(struct disk *disk);
struct fs *disk_fs(struct disk *disk);
/* The operation after n others fails in this way. */
void disk_fail(struct disk *disk, enum simfs_fault fault, unsigned n);
/* How many of these faults have struck. */
uint64_t disk_struck(const struct disk *disk);
/* The process with open files is dead: its operations do nothing, except the first few. */
void disk_process_gone(struct disk *disk, bool gone, unsigned left);
/* As simfs_lie() and simfs_lost(). */
void disk_lie(struct disk *disk, unsigned syncs);
bool disk_lost(const struct disk *disk, const char *path);
/* The power has failed in an operation. */
bool disk_crashed(const struct disk *disk);
/* The power fails and returns: what was not synced may be there or not. */
void disk_power_fails(struct disk *disk);

#endif
