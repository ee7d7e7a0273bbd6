/*
 * A machine's disk: files in memory that keep what a disk keeps (sim/env/simfs.h), whose operations take
 * time. What waits for one pauses (`pause`). Never knows what files mean. Played by test/sim/test_play.c.
 */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include "sim/env/simfs.h"

struct disk;

/* pause(arg) is called before each operation that changes something, or reads a file's bytes. Aborts without
 * memory. */
struct disk *disk_new(uint64_t seed, void (*pause)(void *arg), void *arg);
/* One machine's way to files that others see, too; they stay the caller's. */
struct disk *disk_share(struct simfs *files);
/* Its files are closed. */
void disk_free(struct disk *disk);
struct fs *disk_fs(struct disk *disk);
/* The next operation but n goes wrong in this way. */
void disk_fail(struct disk *disk, enum simfs_fault fault, unsigned n);
/* Who has files open is dead: its operations do nothing, but for the first few that are left. */
void disk_process_gone(struct disk *disk, bool gone, unsigned left);
/* The power has failed in an operation. */
/* As simfs_lie and simfs_lost. */
void disk_lie(struct disk *disk, unsigned syncs);
bool disk_lost(const struct disk *disk, const char *path);
bool disk_crashed(const struct disk *disk);
/* The power fails, and comes back: what was not synced is as it may be. */
void disk_power_fails(struct disk *disk);

#endif
