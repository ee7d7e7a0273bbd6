#include "node/interrupt.h"

#include <assert.h>

#include <sys/epoll.h>

#include "env/process.h"
#include "node/api_worker.h"
#include "node/serve.h"

static void interrupt_ready(struct lane_source *source, uint32_t events)
{
    (void)events;
    paramo_node *node = container_of(source, paramo_node, interrupt);
    assert(lane_held(node->control)); /* which owns the list of workers */
    event_drain(node->interrupt_fd);
    for (paramo_worker *w = node->workers; w; w = w->next) {
        client_interrupt(w->client);
        worker_nudge(w);
    }
    serve_nudge(node);
    lane_notify(node->control);
}

paramo_err node_watch_interrupts(paramo_node *node)
{
    node->interrupt =
        (struct lane_source){.fd = node->interrupt_fd, .events = EPOLLIN, .ready = interrupt_ready};
    return lane_source_add(node->control, &node->interrupt);
}

void paramo_drain(paramo_node *node)
{
    if (node)
        atomic_store(&node->draining, true);
    paramo_interrupt(node);
}

void paramo_interrupt(paramo_node *node)
{
    if (!node)
        return;
    atomic_store(&node->interrupted, true);
    event_signal(node->interrupt_fd);
}
