#include "worker/callbacks.h"

#include <assert.h>

#include "worker/waiting.h"

void callbacks_init(struct client *c)
{
    atomic_flag_clear(&c->callbacks->running);
}

void callbacks_begun(struct client *c)
{
    assert(lane_held(c->lane));
    unsigned before = atomic_load_explicit(&c->callbacks->out, memory_order_relaxed);
    atomic_store_explicit(&c->callbacks->out, before + 1, memory_order_relaxed);
}

void callbacks_ended(struct client *c)
{
    assert(lane_held(c->lane));
    unsigned before = atomic_load_explicit(&c->callbacks->out, memory_order_relaxed);
    assert(before > 0);
    atomic_store_explicit(&c->callbacks->out, before - 1,
                          memory_order_release); /* a closing thread may free it now */
}

unsigned callbacks_out(const struct client *c)
{
    return atomic_load(&c->callbacks->out);
}

bool callbacks_deferred(struct client *c)
{
    return !mailbox_empty(&c->callbacks->queue);
}

void client_defer_callbacks(struct client *c)
{
    atomic_store(&c->callbacks->deferred, true);
}

void client_run_callbacks(struct client *c)
{
    while (!mailbox_empty(&c->callbacks->queue)) {
        if (atomic_flag_test_and_set(&c->callbacks->running))
            return; /* another thread runs them */
        struct queue tasks = {0};
        mailbox_drain(&c->callbacks->queue, &tasks);
        lane_callbacks_begin();
        for (struct qnode *node; (node = queue_pop(&tasks));)
            container_of(node, struct lane_task, node)->run(container_of(node, struct lane_task, node));
        lane_callbacks_end();
        atomic_flag_clear(&c->callbacks->running);
    }
}

void client_complete(struct client *c, struct lane_task *task)
{
    if (!atomic_load(&c->callbacks->deferred)) {
        lane_complete(c->lane, task);
        return;
    }
    mailbox_post(&c->callbacks->queue, &task->node);
    if (c->config.callbacks_pending)
        c->config.callbacks_pending(c->config.arg);
}
