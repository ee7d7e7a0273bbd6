#include "sim/filters.h"

#include <stdlib.h>
#include <string.h>

#include "filter/users.h"
#include "server/shard/peers.h"
#include "server/shard/shard_impl.h"
#include "sim/reals.h"
#include "sim/world.h"
#include "worker/client_impl.h"
#include "worker/filtering.h"

static const char *const pushes[] = {"none",
                                     "keycache",
                                     "lz4",
                                     "keycache,lz4",
                                     "zstd:1",
                                     "keycache,zstd:3",
                                     "bf16",
                                     "fixed:1,keycache",
                                     "fixed:2",
                                     "fixed:4,lz4",
                                     "fp16",
                                     "fixed:3,keycache,zstd:1",
                                     "bytes",
                                     "fixed:2,keycache,bytes,lz4",
                                     "topk:0.5",
                                     "threshold:5000,keycache",
                                     "skip:0.5,fp16",
                                     "significant:1,keycache",
                                     "topk:0.3,skip:0.3,bf16,keycache,lz4"};
static const char *const pulls[] = {"none",   "keycache",        "lz4",     "keycache,lz4",
                                    "zstd:1", "keycache,zstd:3", "fixed:2", "keycache,bf16",
                                    "fp16",   "fixed:3,lz4",     "bytes",   "bf16,bytes"};

/* Requests between changes of a chain, and between shards that forget; bytes of a few key lists, of none, and of a
 * few rows that are held back. */
enum { CHANGE_EVERY = 64, FORGET_EVERY = 200, FEW_LISTS = 1200, NO_LIST = 100, FEW_HELD = 300 };

/* A filter of the application: bytes without their zeros, and one bit for each. */
static size_t bytes_encode(void *user, float arg, const paramo_filter_data *data, void *to, size_t room)
{
    const uint8_t *from = data->from;
    size_t at = (data->bytes + 7) / 8;
    uint8_t *out = to;
    (void)user;
    (void)arg;
    memset(out, 0, at < room ? at : room);
    for (size_t i = 0; i < data->bytes && at < room; i++) {
        if (!from[i])
            continue;
        out[i / 8] |= (uint8_t)(1 << i % 8);
        out[at++] = from[i];
    }
    return at < room ? at : 0;
}

static int bytes_decode(void *user, float arg, const void *from, size_t bytes, void *to, size_t want)
{
    const uint8_t *in = from;
    size_t at = (want + 7) / 8;
    (void)user;
    (void)arg;
    for (size_t i = 0; i < want && at <= bytes; i++) {
        bool there = in[i / 8] >> i % 8 & 1;
        if (there && at == bytes)
            return -1;
        ((uint8_t *)to)[i] = there ? in[at++] : 0;
    }
    return at == bytes ? 0 : -1;
}

static void users_register(void)
{
    const paramo_filter bytes = {
        .size = sizeof bytes, .name = "bytes", .encode = bytes_encode, .decode = bytes_decode};
    if (!filter_users_count())
        sim_must(filter_users_register(&bytes));
}

static void draw(struct world *w, enum filter_direction direction, struct filter_chain *chain)
{
    size_t count = direction == FILTER_PUSH ? sizeof pushes / sizeof *pushes : sizeof pulls / sizeof *pulls;
    const char *const *list = direction == FILTER_PUSH ? pushes : pulls;
    sim_must(filter_chain_parse(list[dice_draw(&w->dice, count)], direction, chain));
}

void filters_draw(struct machine *m, struct customer *customer, struct client_config *config)
{
    struct world *w = m->world;
    users_register();
    for (unsigned d = 0; d < FILTER_DIRECTIONS; d++)
        draw(w, (enum filter_direction)d, &config->filters[d]);
    reals_open(customer, config->filters);
    config->held_bytes = dice_draw(&w->dice, 4) ? 0 : FEW_HELD;
    config->list_keys = 1;
    config->list_bytes = dice_draw(&w->dice, 2) ? FEW_LISTS : 0;
}

/* Does what a shard without memory for a list does, although it has answered that it has the list. */
static void forget(struct world *w)
{
    const struct machine *m = &w->machines[dice_draw(&w->dice, w->count)];
    bool full = dice_draw(&w->dice, 8) == 0;
    if (!m->up || m->role != PARAMO_ROLE_SERVER)
        return;
    for (unsigned i = 0; i < m->made->own->shards_count; i++)
        for (struct peer *p = peers_first(m->made->own->shards[i].shard); p; p = p->next) {
            keylists_clear(&p->lists);
            p->lists.most = full ? NO_LIST : KEYLISTS_KEPT_BYTES;
        }
}

void filters_change(struct machine *m, unsigned customer, enum sim_table table)
{
    struct world *w = m->world;
    struct filter_chain chain;
    if (!dice_draw(&w->dice, FORGET_EVERY))
        forget(w);
    if (dice_draw(&w->dice, CHANGE_EVERY))
        return;
    enum filter_direction direction = dice_draw(&w->dice, 2) ? FILTER_PUSH : FILTER_PULL;
    draw(w, direction, &chain);
    struct client *client = m->customers[customer].worker->client;
    struct filter_table fits = filtering_table(&m->tables[table]);
    chain = filter_chain_fitting(&chain, &fits, direction);
    if (!lane_enter(client->lane))
        abort();
    sim_must(client_filter(client, &m->tables[table], direction, &chain));
    if (reals_has(table))
        reals_chain(&m->customers[customer], table, direction, &chain);
    lane_leave(client->lane);
}

void filters_count(struct world *w, const struct client *client)
{
    struct filter_counts counts = {0};
    client_filter_counts(client, &counts);
    for (unsigned d = 0; d < FILTER_DIRECTIONS; d++) {
        w->counts[PLAY_lists_named] += (uint32_t)counts.of[FILTER_INDEX_keycache][d].messages;
        w->counts[PLAY_compressed] +=
            (uint32_t)(counts.of[FILTER_INDEX_lz4][d].messages + counts.of[FILTER_INDEX_zstd][d].messages);
        w->counts[PLAY_held_back] += (uint32_t)(counts.of[FILTER_INDEX_topk][d].messages +
                                                counts.of[FILTER_INDEX_threshold][d].messages +
                                                counts.of[FILTER_INDEX_skip][d].messages +
                                                counts.of[FILTER_INDEX_significant][d].messages);
        w->counts[PLAY_user_filtered] += (uint32_t)counts.of[FILTER_COUNT][d].messages;
        w->counts[PLAY_rounded] +=
            (uint32_t)(counts.of[FILTER_INDEX_fixed][d].messages + counts.of[FILTER_INDEX_bf16][d].messages +
                       counts.of[FILTER_INDEX_fp16][d].messages);
    }
}
