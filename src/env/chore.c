#include "env/chore_impl.h"

static void chore_end(struct lane_task *task)
{
    struct chore *chore = container_of(task, struct chore, end);
    chore->done(chore);
}

void chore_do(struct chore *chore)
{
    chore->work(chore);
    chore->end.run = chore_end;
    lane_post(chore->lane, &chore->end);
}

paramo_err chores_create(struct env *env, const char *name, struct chores **chores)
{
    paramo_err err = env->ops->chores->create(env, name, chores);
    if (!err)
        (*chores)->ops = env->ops->chores;
    return err;
}

void chores_post(struct chores *chores, struct chore *chore)
{
    chores->ops->post(chores, chore);
}

void chores_destroy(struct chores *chores)
{
    if (chores)
        chores->ops->destroy(chores);
}
