/*
 * Checkpoints: a table's rows with optimizer state, and the applied windows that say which pushes are in them,
 * in files that a reader accepts only if they are whole.
 *
 *     dir/00000007/blocks-0, blocks-1, ...   one from each writer: blocks, each with a checksum, then an end
 *     dir/00000007/manifest                  last: which files, their sizes and checksums, the tables
 *
 * A folder without a manifest is an unfinished attempt. A checkpoint is full or incremental. An incremental
 * one holds what has changed since its base, another checkpoint of the same folder; loading reads the base's
 * blocks first, and so on back to a full one. A block says which partitions its rows are from, so any number
 * of servers can read it (server/snapshot/ckpt_rows.h).
 *
 * Files are synced before the manifest names them, and the manifest before ckpt_commit returns OK. A crash at
 * any step leaves the older checkpoints as they were. All of it blocks: it runs in blocking jobs
 * (env/blocking_job.h), never on a lane. It never knows what a payload means. docs/CHECKPOINTS.md has the
 * bytes. This header includes the module's public headers. Tests: test/cluster/test_ckpt.c.
 */
#ifndef CLUSTER_CHECKPOINT_CKPT_H
#define CLUSTER_CHECKPOINT_CKPT_H

#include "cluster/checkpoint/ckpt_dir.h"
#include "cluster/checkpoint/ckpt_manifest.h"
#include "cluster/checkpoint/ckpt_prune.h"
#include "cluster/checkpoint/ckpt_read.h"
#include "cluster/checkpoint/ckpt_write.h"

#endif
