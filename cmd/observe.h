/*
 * Asking a live job's scheduler one thing and waiting for the answer (post/look.h). It looks inside src/
 * (scripts/layers): the public API has no observers. Tests: test/e2e/ring.sh, moves.sh, checkpoint.sh.
 */
#ifndef CMD_OBSERVE_H
#define CMD_OBSERVE_H

#include "post/look.h"

struct observation {
    const char *scheduler, *token;
    uint64_t wait_s;
    const struct ckpt_order *ckpt; /* NULL: the view is asked for */
    bool load;
    uint32_t drain; /* this server is to be drained; 0: none is */
    /* the answer */
    struct view *view; /* NULL, or the caller's reference */
    uint64_t number;
};

MUST_USE paramo_err observe(struct observation *o);

#endif
