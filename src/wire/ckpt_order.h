/*
 * Checkpoints of a running job: the calls CKPT_SAVE and CKPT_LOAD (of a member or an admin client), and the
 * orders CKPT_SAVE, CKPT_DROP, CKPT_LOAD with their answers. It never knows rows. Tests: test/wire/test_calls.c,
 * test/cluster/test_sched_ckpt.c.
 */
#ifndef WIRE_CKPT_ORDER_H
#define WIRE_CKPT_ORDER_H

#include "base/cursor.h"
#include "env/fs.h"

enum { CKPT_SHARDS_MAX = 256, CKPT_FILE_NAME_MAX = 32 };

/* Calls: save (number 0: the next), load (number 0: the last whole one). Orders: all fields are set. */
struct ckpt_order {
    uint64_t number, id;
    uint64_t base, base_id; /* the order SAVE: what has changed since this checkpoint; 0: everything */
    uint32_t timeout_ms;    /* calls: the deadline */
    /* the call SAVE: save only what has changed, if possible. The order: this one may be the base of the next, so
     * changes are noted from here on */
    bool changes;
    char dir[FS_PATH_MAX];
};
void ckpt_order_encode(const struct ckpt_order *m, struct writer *w);
MUST_USE paramo_err ckpt_order_decode(struct reader *r, struct ckpt_order *m);

/* The answer to a call: the checkpoint's number. */
struct ckpt_result {
    uint64_t number;
};
void ckpt_result_encode(const struct ckpt_result *m, struct writer *w);
MUST_USE paramo_err ckpt_result_decode(struct reader *r, struct ckpt_result *m);

/* What a server has written: a file from each of its shards. */
struct ckpt_written {
    uint32_t count;
    struct ckpt_written_file {
        char name[CKPT_FILE_NAME_MAX];
        uint64_t bytes, blocks, sum;
    } file[CKPT_SHARDS_MAX];
};
void ckpt_written_encode(const struct ckpt_written *m, struct writer *w);
MUST_USE paramo_err ckpt_written_decode(struct reader *r, struct ckpt_written *m);

#endif
