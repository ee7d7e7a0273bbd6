/*
 * Snapshots: copies of tables as they were at one time, under a name. Readers use one while workers continue to
 * change the tables:
 *
 *     const char *tables[] = {"weights", "bias"};
 *     paramo_snapshot_take(worker, "model", tables, 2, NULL, NULL);  // while no worker pushes: between two barriers
 *
 *     paramo_snapshot_open(reader, "model", &snapshot);              // elsewhere, at any time: the last that was taken
 *     paramo_snapshot_table(snapshot, "weights", &table);
 *     paramo_pull(reader, table, &kv, NULL, &ts);                    // any number of requests
 *     paramo_wait(reader, ts, 0);
 *     paramo_snapshot_check(snapshot);                               // OK: all of them have read that snapshot
 *
 * The servers keep the last two snapshots of a name, or more. docs/SHARING.md, section 5. Tests:
 * test/node/test_snapshot.c.
 */
#ifndef PARAMO_SNAPSHOT_H
#define PARAMO_SNAPSHOT_H

#include "paramo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Snapshots of a name that the servers keep at most. */
#define PARAMO_SNAPSHOTS_MAX 16

typedef struct paramo_snapshot paramo_snapshot;

typedef struct paramo_snapshot_options {
    size_t size;
    uint32_t keep; /* snapshots of this name that exist at a time: 2 (the default) to PARAMO_SNAPSHOTS_MAX */
    uint32_t timeout_ms; /* of each part of a table; 0: the node's request_timeout_ms */
} paramo_snapshot_options;
PARAMO_API void paramo_snapshot_options_init(paramo_snapshot_options *options);

/* Takes a snapshot: copies the parameters of all rows of n tables, on the servers, and waits until the copies are
 * complete. The tables exist; they are named as for paramo_table_open, in the worker's namespace, and so is the
 * snapshot. The copies are tables, too ("weights@model.0"), with the replicas of the original; together they take
 * keep times the memory of the original without the optimizer's state. They are in checkpoints, as all tables are.
 *
 * The snapshot has each change that was acknowledged before this call, and none that is issued after it has returned.
 * Rows are copied in parts. So the snapshot shows one moment if no worker changes the tables during the call: between
 * two barriers, at the end of an epoch, or when this worker is the only one.
 *
 * The oldest of the `keep` snapshots is replaced, also by a call that fails; the others stay. Each call for a name
 * has the same tables. One worker at a time takes snapshots of a name. *number (NULL is allowed): the snapshots of a
 * name are numbered from 1 on. Any thread, but no callback. options NULL: the defaults. INVALID: no tables, a name
 * that is too long with a table's, or another keep than that of the snapshots before. NO_TABLE. UNSUPPORTED: a USER
 * table. REFUSED: another worker takes one of this name; or a reader calls. Others as paramo_transform. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_snapshot_take(paramo_worker *worker, const char *name,
                                                           const char *const *tables, size_t n,
                                                           const paramo_snapshot_options *options,
                                                           uint64_t *number);

/* Opens the last snapshot of that name, for a worker or a reader. Close the snapshot before the worker or reader. One
 * thread at a time uses it. NOT_FOUND: none has been taken. MEMORY. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_snapshot_open(paramo_worker *worker, const char *name,
                                                           paramo_snapshot **snapshot);
/* Its number; 0 for NULL. */
PARAMO_API uint64_t paramo_snapshot_number(const paramo_snapshot *snapshot);
/* A table of the snapshot, by the original's name. Do not change it. It belongs to the snapshot. NO_TABLE: the
 * snapshot does not have this table. MEMORY. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_snapshot_table(paramo_snapshot *snapshot, const char *name,
                                                            paramo_table **table);
/* OK: all requests completed so far have read this snapshot. NOT_FOUND: a later snapshot is being taken in its place,
 * and the last requests may have read that one; open the last snapshot instead. Costs a request of a few bytes. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_snapshot_check(paramo_snapshot *snapshot);
/* No request to its tables is in flight. NULL is allowed. */
PARAMO_API void paramo_snapshot_close(paramo_snapshot *snapshot);

#ifdef __cplusplus
}
#endif
#endif
