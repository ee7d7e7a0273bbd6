#include "worker/support_scene.h"

#include <string.h>

struct scene scene;
const uint64_t scene_key = KEY;
const float scene_one = 1;

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void nothing(struct sim_event *event)
{
    (void)event;
}

void scene_pass(uint64_t ns)
{
    struct sim_event marker = {.fire = nothing}; /* so that the clock comes to this moment */
    assert_int_equal(sim_schedule(scene.w.sim, &marker, sim_now(scene.w.sim) + ns), PARAMO_OK);
    (void)sim_run(scene.w.sim, never, NULL, marker.at);
}

struct simnet_link *scene_link(const char *from, const char *to)
{
    struct simnet_node *a, *b;
    struct simnet_link *link;
    assert_int_equal(simnet_node(scene.w.net, from, &a), PARAMO_OK);
    assert_int_equal(simnet_node(scene.w.net, to, &b), PARAMO_OK);
    assert_int_equal(simnet_link(scene.w.net, a, b, &link), PARAMO_OK);
    return link;
}

void scene_cut(const char *a, const char *b, bool is)
{
    scene_link(a, b)->cut = scene_link(b, a)->cut = is;
}

void scene_apart(unsigned servers, bool is)
{
    scene.apart = servers;
    for (unsigned a = 0; a < servers; a++) {
        char one[] = {'s', (char)('0' + a), 0};
        scene_cut("w0", one, is);
        for (unsigned b = servers; b < SERVERS; b++) {
            char other[] = {'s', (char)('0' + b), 0};
            scene_cut(one, other, is);
            scene_cut("w1", other, is);
        }
    }
}

void scene_part(bool is)
{
    scene_apart(1, is);
}

/* ---- the scheduler ---- */

void scene_answered(void *arg, paramo_err status)
{
    struct scene_order *o = arg;
    o->done = true;
    o->status = status;
}

static void carry_out(void *arg)
{
    struct scene_order *o = arg;
    shard_migration_order(o->server->shard, o->what, &o->fields, scene_answered, o);
}

struct scene_order *scene_order(unsigned server, uint32_t what, struct migration_order fields)
{
    assert_true(scene.asked < sizeof scene.orders / sizeof *scene.orders);
    struct scene_order *o = &scene.orders[scene.asked++];
    *o = (struct scene_order){.server = &scene.w.servers[server], .what = what, .fields = fields};
    world_on_lane(o->server->lane, carry_out, o);
    return o;
}

void scene_must(unsigned server, uint32_t what, struct migration_order fields)
{
    const struct scene_order *o = scene_order(server, what, fields);
    scene_pass(500 * ENV_MS);
    assert_true(o->done);
    assert_int_equal(o->status, PARAMO_OK);
}

struct migration_order scene_migration(unsigned to, uint8_t level, uint8_t had)
{
    return (struct migration_order){.id = (UINT64_C(1) << 32) + 1,
                                    .partitions = PARTITIONS,
                                    .from = {.node = PARAMO_ID_SERVER(0)},
                                    .to = {.node = PARAMO_ID_SERVER(to)},
                                    .level = level,
                                    .had = had};
}

void scene_chain(uint16_t owner, uint16_t first, uint16_t second)
{
    for (unsigned a = 0; a < PARTITIONS; a++) {
        scene.w.ring.owner[a] = owner;
        scene.w.follower[1].owner[a] = first;
        scene.w.follower[2].owner[a] = second;
    }
}

void scene_changed(unsigned server)
{
    scene.w.partitions_changed[server] = scene.w.chain_changed[server] = scene.w.number + 1;
}

void scene_begin(unsigned replicas, uint16_t first, uint16_t second)
{
    memset(&scene, 0, sizeof scene);
    world_init(&scene.w, true, 7);
    scene.w.replicas = replicas;
    scene.w.migrations = true;
    scene.w.timeout_ms = 60000;
    for (unsigned table = 0; table < TABLES; table++)
        world_table(&scene.w, PARAMO_TABLE_DENSE, 1)->rows = RING_PARTITIONS;
    scene.w.options[NONE].replicas = 0;
    scene.w.options[ONE].replicas = 1;
    world_start(&scene.w, SERVERS, SERVERS, CLIENTS);
    for (unsigned a = 0; a < RING_PARTITIONS; a++) {
        scene.w.ring.owner[a] = 3;
        scene.w.follower[1].owner[a] = 2;
        scene.w.follower[2].owner[a] = replicas > 1 ? 1 : RING_NONE;
        scene.w.follower[3].owner[a] = replicas > 2 ? (a < PARTITIONS ? 3 : 0) : RING_NONE;
    }
    scene_chain(0, first, second);
    for (unsigned s = 0; s < SERVERS; s++)
        scene_changed(s);
    world_view(&scene.w);
    world_all_view(&scene.w);
    scene_pass(ENV_SEC);
}

void scene_view_from(unsigned server)
{
    world_view(&scene.w);
    for (unsigned s = server; s < SERVERS; s++)
        world_server_view(&scene.w, s);
    world_client_view(&scene.w, 0);
}

void scene_view_without_s0(void)
{
    scene_view_from(1);
}

/* ---- requests ---- */

void scene_push(unsigned client, unsigned table)
{
    uint64_t ts;
    assert_int_equal(world_push(&scene.w, client, table, &scene_key, 1, &scene_one, 1, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&scene.w, client, ts), PARAMO_OK);
}

float scene_pulled(unsigned client, unsigned table)
{
    uint64_t ts;
    float val = -1;
    assert_int_equal(world_pull(&scene.w, client, table, &scene_key, 1, &val, 1, &ts), PARAMO_OK);
    assert_int_equal(world_wait(&scene.w, client, ts), PARAMO_OK);
    return val;
}

void scene_pull_held(unsigned client, float later)
{
    static float val;
    uint64_t ts;
    val = -1;
    assert_int_equal(world_pull(&scene.w, client, DENSE, &scene_key, 1, &val, 1, &ts), PARAMO_OK);
    if (client_wait(scene.w.clients[client].client, ts, 3000) != PARAMO_E_TIMEOUT)
        fail_msg("a stale read: %g, but %g is acknowledged", (double)val, (double)later);
    scene_apart(scene.apart, false);
    scene_pass(ENV_SEC);
    world_all_view(&scene.w);
    assert_int_equal(world_wait(&scene.w, client, ts), PARAMO_OK);
    assert_true(val == later);
}
