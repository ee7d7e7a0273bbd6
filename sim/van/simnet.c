#include "sim/van/simnet.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

struct simnet_node {
    struct simnet_node *next;
    uint32_t number;
    char name[72];
};

struct simnet {
    struct sim *sim;
    struct simnet_node *nodes;
    uint32_t count;
    struct map links; /* from << 32 | to */
    struct simnet_link defaults;
    struct simnet_fate (*decide)(void *arg, struct simnet_link *link);
    void *decide_arg;
    void *world;
    void (*world_free)(void *world);
};

paramo_err simnet_create(struct sim *sim, struct simnet **out)
{
    struct simnet *net = calloc(1, sizeof *net);
    if (!net)
        return err_memory(sizeof *net);
    net->sim = sim;
    net->defaults = (struct simnet_link){.delay_min_ns = 100 * ENV_US, .delay_max_ns = 200 * ENV_US};
    map_init(&net->links);
    *out = net;
    return PARAMO_OK;
}

void simnet_destroy(struct simnet *net)
{
    if (!net)
        return;
    if (net->world)
        net->world_free(net->world);
    size_t cursor = 0;
    uint64_t key;
    void *link;
    while (map_next(&net->links, &cursor, &key, &link))
        free(link);
    map_fini(&net->links);
    while (net->nodes) {
        struct simnet_node *next = net->nodes->next;
        free(net->nodes);
        net->nodes = next;
    }
    free(net);
}

struct sim *simnet_sim(struct simnet *net)
{
    return net->sim;
}

struct simnet_link *simnet_defaults(struct simnet *net)
{
    return &net->defaults;
}

paramo_err simnet_node(struct simnet *net, const char *name, struct simnet_node **out)
{
    struct simnet_node *node = net->nodes;
    while (node && strcmp(node->name, name) != 0)
        node = node->next;
    if (!node) {
        if (strlen(name) >= sizeof node->name)
            return err_set(PARAMO_E_INVALID, "node name \"%s\" is too long", name);
        node = calloc(1, sizeof *node);
        if (!node)
            return err_memory(sizeof *node);
        memcpy(node->name, name, strlen(name) + 1);
        node->number = net->count++;
        node->next = net->nodes;
        net->nodes = node;
    }
    *out = node;
    return PARAMO_OK;
}

paramo_err simnet_link(struct simnet *net, const struct simnet_node *from, const struct simnet_node *to,
                       struct simnet_link **out)
{
    uint64_t key = (uint64_t)from->number << 32 | to->number;
    struct simnet_link *link = map_get(&net->links, key);
    if (!link) {
        link = malloc(sizeof *link);
        if (!link)
            return err_memory(sizeof *link);
        *link = net->defaults;
        link->from = from->number;
        link->to = to->number;
        paramo_err err = map_put(&net->links, key, link);
        if (err) {
            free(link);
            return err;
        }
    }
    *out = link;
    return PARAMO_OK;
}

uint64_t simnet_bottleneck(struct simnet *net, struct simnet_link *link, uint64_t bytes)
{
    uint64_t now = sim_now(net->sim);
    link->packets++;
    link->bytes += bytes;
    if (!link->bytes_per_sec)
        return now;
    if (link->busy_until < now)
        link->busy_until = now;
    link->busy_until += (uint64_t)((double)bytes * 1e9 / (double)link->bytes_per_sec);
    return link->busy_until;
}

static bool happens(struct simnet *net, uint32_t ppm)
{
    return ppm && sim_random(net->sim) % 1000000 < ppm;
}

static uint64_t draw_delay(struct simnet *net, const struct simnet_link *link)
{
    uint64_t delay = link->delay_min_ns;
    if (link->delay_max_ns > link->delay_min_ns)
        delay += sim_random(net->sim) % (link->delay_max_ns - link->delay_min_ns + 1);
    return delay + (happens(net, link->late_ppm) ? link->late_ns : 0);
}

struct simnet_fate simnet_decide(struct simnet *net, struct simnet_link *link)
{
    struct simnet_fate fate = {.copies = 1};
    if (net->decide) {
        fate = net->decide(net->decide_arg, link);
        link->lost += fate.copies == 0;
        link->repeated += fate.copies > 1;
        return fate;
    }
    if (link->cut || happens(net, link->loss_ppm)) {
        link->lost++;
        return (struct simnet_fate){0};
    }
    if (happens(net, link->repeat_ppm)) {
        link->repeated++;
        fate.copies = 2;
    }
    for (unsigned i = 0; i < fate.copies; i++)
        fate.delay[i] = draw_delay(net, link);
    return fate;
}

void simnet_set_decider(struct simnet *net, struct simnet_fate (*decide)(void *arg, struct simnet_link *link),
                        void *arg)
{
    net->decide = decide;
    net->decide_arg = arg;
}

void *simnet_world(struct simnet *net)
{
    return net->world;
}

void simnet_set_world(struct simnet *net, void *world, void (*world_free)(void *world))
{
    net->world = world;
    net->world_free = world_free;
}
