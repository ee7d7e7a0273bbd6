/* The inside of chores, for env/chore.c, env/real_chore.c and env/sim.c only. */
#ifndef ENV_CHORE_IMPL_H
#define ENV_CHORE_IMPL_H

#include "env/chore.h"

struct chore_ops {
    paramo_err (*create)(struct env *env, const char *name, struct chores **chores);
    void (*post)(struct chores *chores, struct chore *chore);
    void (*destroy)(struct chores *chores);
};

/* What both kinds embed. */
struct chores {
    const struct chore_ops *ops;
};

/* Works, and posts the end. */
void chore_do(struct chore *chore);

extern const struct chore_ops real_chore_ops;

#endif
