#include "sim/fault.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "env/env.h"
#include "ring/place.h"
#include "sim/env/simfs.h"
#include "van/van.h"

static const char *const names[] = {
#define FAULT_NAME(name, number) #name,
    FAULT_KINDS(FAULT_NAME)
#undef FAULT_NAME
};

uint32_t schedule_nodes(const struct schedule *s)
{
    return 1 + s->servers + s->workers + s->meta;
}

const char *fault_name(enum fault_kind kind)
{
    return names[kind];
}

struct dice dice_of(uint64_t seed, uint64_t stream)
{
    return (struct dice){mix64(mix64(seed + 1) + stream)};
}

uint64_t dice_draw(struct dice *d, uint64_t below)
{
    d->state += UINT64_C(0x9e3779b97f4a7c15);
    return mix64(d->state) % below;
}

uint64_t dice_scale(struct dice *d, uint64_t least, uint64_t most)
{
    unsigned doublings = 0;
    while (least << (doublings + 1) <= most)
        doublings++;
    uint64_t from = least << dice_draw(d, doublings + 1);
    uint64_t n = from + dice_draw(d, from);
    return n < most ? n : most;
}

struct sides sides_of(uint64_t draw)
{
    struct dice d = dice_of(draw, 20);
    struct sides s = {.nodes = (uint32_t)dice_draw(&d, 1u << SCHEDULE_NODES_MAX)};
    s.ns = dice_scale(&d, 10 * ENV_MS, dice_draw(&d, 4) ? ENV_SEC : 12 * ENV_SEC);
    uint64_t with = dice_draw(&d, 8);
    s.client = with < 4;
    s.scheduler = with == 3 || with == 4;
    s.target = with == 2 || with == 5;
    s.worker = (uint32_t)dice_draw(&d, SCHEDULE_WORKERS_MAX);
    return s;
}

/* ---- drawing ------------------------------------------------------------------------------------------- */

static void shape_draw(struct schedule *s, struct dice *d)
{
    struct dice own = dice_of(s->seed, 3);
    s->durable = dice_draw(&own, 2);
    s->meta = dice_draw(&own, 2) && s->durable;
    struct dice size = dice_of(s->seed, 8);
    static const uint32_t servers[] = {1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4},
                          large[] = {5, 6, 7, 8};
    s->servers = dice_draw(&size, 28) ? servers[dice_draw(&size, 16)] : large[dice_draw(&size, 4)];
    s->workers =
        2 + (uint32_t)dice_draw(d, SCHEDULE_WORKERS_MAX - 2); /* the death of the only server ends the job */
    /* each shard takes each view: many shards cost much and show little more */
    uint64_t two = dice_draw(d, 12);
    s->shards = 1 + (s->servers < 3 ? two < 6 : s->servers == 3 ? two < 3 : two < 1);
    s->customers = 1 + (uint32_t)dice_draw(d, 2);
    switch (dice_draw(d, 4)) {
    case 0:
        s->datagrams = 0;
        break;
    case 1:
        s->datagrams = 1u << VAN_CONTROL;
        break;
    case 2:
        s->datagrams = 1u << VAN_REQUEST | 1u << VAN_ANSWER;
        break;
    default:
        s->datagrams = 1u << VAN_REQUEST | 1u << VAN_ANSWER | 1u << VAN_CONTROL;
    }
    static const uint32_t chunks[] = {0, 0, 64, 200}, open[] = {4, 8, 16, 16}, at_once[] = {1, 2, 4, 8};
    s->chunk_bytes = chunks[dice_draw(d, 4)];
    s->open_most = open[dice_draw(&size, 4)];
    s->at_once = at_once[dice_draw(&size, 4)];
    s->replicas = (uint32_t)dice_draw(&own, s->servers < RING_LEVELS ? s->servers : RING_LEVELS);
    if (s->replicas && s->servers < 4 && dice_draw(&own, 3) == 0) /* otherwise much is sent again and again */
        s->datagrams |= 1u << VAN_CHAIN;
    struct dice few = dice_of(s->seed, 7);
    s->fewer = s->replicas ? (uint32_t)dice_draw(&few, 12) : 0; /* half of the schedules */
    s->fewer = s->fewer > 6 ? 0 : s->fewer;
    s->fewest = s->fewer ? (uint32_t)dice_draw(&few, s->replicas) : 0;
    struct dice more = dice_of(s->seed, 3);
    s->extra = dice_draw(&more, 3) == 0;
    s->extra_after = dice_scale(&more, ENV_MS, 8 * ENV_SEC);
    s->workers += s->extra;
    struct dice late = dice_of(s->seed, 11);
    s->late = dice_draw(&late, 3) == 0 && s->servers > s->replicas + 1;
    s->late_after = dice_scale(&late, ENV_MS, 4 * ENV_SEC);
    struct dice ckpt = dice_of(s->seed, 4);
    s->ckpt = dice_draw(&ckpt, 5) < 2;
    s->ckpt_every = s->ckpt && dice_draw(&ckpt, 2) ? (uint32_t)dice_scale(&ckpt, 300, 8000) : 0;
    s->ckpt_queue_bytes = (uint32_t)dice_draw(&ckpt, 2);
    s->ckpt_full_every = 1 + 3 * (uint32_t)dice_draw(&ckpt, 2);
    s->ckpt_keep = 2 * (uint32_t)dice_draw(&ckpt, 2);
    struct dice recovery = dice_of(s->seed, 26);
    s->recovery_ms = dice_draw(&recovery, 2) ? (uint32_t)dice_scale(&recovery, 100, 20000) : 0;
    struct dice all = dice_of(s->seed, 25);
    s->migration_partitions = dice_draw(&all, 2) || s->servers == 2 ? RING_PARTITIONS : 0;
    struct dice loss = dice_of(s->seed, 14);
    s->restores = dice_draw(&loss, 2) && s->ckpt && s->servers > s->replicas + 1;
}

/* Weight of each kind where it is on. Arbitrary: faults of packets are cheap, crashes are not. */
static const uint32_t weights[FAULT_KINDS_COUNT] = {
    [FAULT_drop] = 12,   [FAULT_repeat] = 10, [FAULT_late] = 12, [FAULT_cut] = 3,  [FAULT_lag] = 2,
    [FAULT_slow] = 2,    [FAULT_reset] = 4,   [FAULT_pause] = 2, [FAULT_jump] = 1, [FAULT_crash] = 2,
    [FAULT_migrate] = 3, [FAULT_stall] = 2,   [FAULT_disk] = 4,
};
static const uint32_t most[FAULT_KINDS_COUNT] = {
    [FAULT_cut] = 16,    [FAULT_pause] = 6, [FAULT_jump] = 4, [FAULT_crash] = 6,
    [FAULT_migrate] = 4, [FAULT_stall] = 4, [FAULT_disk] = 10};

/* Faults come in bursts. Between two bursts there is time to work (far from a fault only answers count as
 * steps, play.c), so each burst strikes much finished work and many messages in flight. */
struct phases {
    struct dice dice;
    uint32_t gap, burst,
        work;      /* steps between two faults of a burst; faults of a burst; steps of work after it */
    uint64_t left; /* of this burst */
};

static struct phases phases_draw(uint64_t seed)
{
    struct phases p = {.dice = dice_of(seed, 9)};
    p.gap = 4 + (uint32_t)dice_draw(&p.dice, 40);
    p.burst = (uint32_t)dice_scale(&p.dice, 4, 32);
    p.work = 62 + 4 * p.burst + (uint32_t)dice_draw(&p.dice, 3 * p.burst);
    return p;
}

static uint32_t phase_step(struct phases *p)
{
    uint32_t step = 1 + (uint32_t)dice_draw(&p->dice, p->gap);
    if (p->left--)
        return step;
    p->left = dice_draw(&p->dice, 2 * p->burst);
    return step + (uint32_t)dice_draw(&p->dice, 2 * p->work);
}

/* One of the schedulers: node 0, or the standby. */
static uint32_t scheduler_draw(const struct schedule *s, struct dice *d)
{
    return s->meta && dice_draw(d, 2) ? schedule_nodes(s) - 1 : 0;
}

static void link_draw(const struct schedule *s, struct dice *d, struct fault *f)
{
    uint32_t server = 1 + (uint32_t)dice_draw(d, s->servers);
    uint32_t worker = 1 + s->servers + (uint32_t)dice_draw(d, s->workers);
    uint32_t a = worker, b = server;
    if (dice_draw(d, 5) == 0) {
        a = dice_draw(d, 2) ? worker : server;
        b = scheduler_draw(s, d);
    } else if (s->replicas && dice_draw(d, 3) == 0) { /* a link of a chain */
        a = 1 + (server + (uint32_t)dice_draw(d, s->servers - 1)) % s->servers;
    }
    bool back = dice_draw(d, 2);
    f->from = back ? b : a;
    f->to = back ? a : b;
}

static void strength_draw(struct dice *d, struct fault *f)
{
    switch (f->kind) {
    case FAULT_drop:
    case FAULT_repeat:
        f->n = dice_draw(d, 4) ? 1 : dice_scale(d, 1, 8);
        break;
    case FAULT_late:
        f->n = dice_scale(d, 100 * ENV_US, dice_draw(d, 4) ? 100 * ENV_MS : 2 * ENV_SEC);
        break;
    case FAULT_cut:
        f->n = dice_scale(d, 10 * ENV_MS, dice_draw(d, 3) ? ENV_SEC : 20 * ENV_SEC);
        break;
    case FAULT_lag:
        f->n = dice_scale(d, ENV_MS, 300 * ENV_MS);
        break;
    case FAULT_slow:
        f->n = dice_scale(d, 10 * ENV_MS, ENV_SEC);
        break;
    case FAULT_pause:
        f->n = dice_scale(d, ENV_MS, dice_draw(d, 3) ? ENV_SEC : 16 * ENV_SEC);
        break;
    case FAULT_jump:
        f->n = dice_scale(d, ENV_MS, 30 * ENV_SEC);
        break;
    case FAULT_crash:
        f->n = dice_draw(d, 8) ? dice_scale(d, ENV_MS, 4 * ENV_SEC) : 0;
        break;
    case FAULT_stall:
        f->n = dice_scale(d, 10 * ENV_US, 200 * ENV_MS);
        break;
    case FAULT_disk:
    case FAULT_migrate:
        f->n = dice_draw(d, 1u << 30);
        break;
    default:
        f->n = 0;
    }
}

/* Before a server dies: its successors do not reach each other, so their copies differ. */
static struct fault apart_draw(const struct schedule *s, struct dice *d, uint32_t step, uint32_t server,
                               enum fault_kind kind)
{
    uint32_t a = 1 + server % s->servers, b = 1 + a % s->servers;
    bool back = dice_draw(d, 2);
    return (struct fault){.step = step,
                          .kind = kind,
                          .from = back ? b : a,
                          .to = back ? a : b,
                          .n = kind == FAULT_cut ? dice_scale(d, 500 * ENV_MS, 8 * ENV_SEC)
                                                 : dice_scale(d, 100 * ENV_MS, ENV_SEC)};
}

/* The server does not reach the scheduler, and is declared dead while it continues to work with all others. */
static void isolate(struct schedule *s, struct dice *d, uint32_t step, uint32_t server)
{
    struct fault cut = {.step = step, .kind = FAULT_cut, .from = server, .to = 0};
    cut.n = dice_scale(d, 400 * ENV_MS, 8 * ENV_SEC);
    s->faults[s->count++] = apart_draw(s, d, step, server, FAULT_late);
    s->faults[s->count++] = (struct fault){.step = step, .kind = FAULT_reset, .from = server, .to = 0};
    s->faults[s->count++] = cut;
    cut.from = 0;
    cut.to = server;
    s->faults[s->count++] = cut;
}

/* ---- checkpoints --------------------------------------------------------------------------------------- */

enum { SCENES_MAX = 12, SCENE_FAULTS = 6 };

static void scene_add(struct schedule *s, uint32_t *step, uint32_t later, enum fault_kind kind, uint32_t from,
                      uint32_t to, uint64_t n)
{
    *step += later;
    s->faults[s->count++] = (struct fault){.step = *step, .kind = kind, .from = from, .to = to, .n = n};
}

/* A fault while a checkpoint is saved or loaded; mostly one, sometimes none. */
static void trouble_draw(struct schedule *s, struct dice *d, uint32_t *step, uint32_t server)
{
    uint32_t later = 1 + (uint32_t)dice_draw(d, 40), from, to;
    uint64_t n;
    switch (dice_draw(d, 8)) {
    case 0:
    case 1:
    case 2: /* the folder */
        scene_add(s, step, later, FAULT_disk, server, server, dice_draw(d, 1u << 30));
        break;
    case 3:
        scene_add(s, step, later, FAULT_crash, server, server, dice_scale(d, ENV_MS, ENV_SEC));
        break;
    case 4:
        n = s->durable ? dice_scale(d, ENV_MS, ENV_SEC) : 0;
        if (s->durable)
            scene_add(s, step, later, FAULT_crash, scheduler_draw(s, d), 0, n);
        break;
    case 5:
        scene_add(s, step, later, FAULT_migrate, server, server, dice_draw(d, 1u << 30));
        break;
    case 6:
        n = dice_scale(d, 10 * ENV_MS, 2 * ENV_SEC);
        to = dice_draw(d, 2) ? 0 : 1 + (uint32_t)dice_draw(d, s->servers);
        from = dice_draw(d, 2) ? server : 0;
        scene_add(s, step, later, dice_draw(d, 2) ? FAULT_cut : FAULT_late, from, to, n);
        break;
    default:
        break;
    }
}

/* Answers and the news of the server's death do not reach a worker. So the work is done and in
 * the checkpoint, and comes again when another process is the server and has loaded that checkpoint. */
static void lost_answers_draw(struct schedule *s, struct dice *d, uint32_t *step, uint32_t server,
                              uint32_t worker)
{
    uint32_t other = worker + 1 < 1 + s->servers + s->workers ? worker + 1 : 1 + s->servers;
    uint64_t ns = dice_scale(d, ENV_SEC, 8 * ENV_SEC);
    scene_add(s, step, 0, FAULT_cut, server, worker, ns);
    scene_add(s, step, 0, FAULT_cut, 0, worker, ns + ENV_MS);
    uint64_t n = dice_draw(d, 1u << 30);
    scene_add(s, step, 20 + (uint32_t)dice_draw(d, 60), FAULT_save, other, 0, n);
    n = dice_scale(d, ENV_MS, 50 * ENV_MS);
    scene_add(s, step, 40 + (uint32_t)dice_draw(d, 200), FAULT_crash, server, server, n);
    scene_add(s, step, 40 + (uint32_t)dice_draw(d, 200), FAULT_load, other, 0, 0);
}

static int by_step(const void *a, const void *b)
{
    const struct fault *x = a, *y = b;
    const uint64_t of[5][2] = {
        {x->step, y->step}, {x->kind, y->kind}, {x->from, y->from}, {x->to, y->to}, {x->n, y->n}};
    for (unsigned i = 0; i < 5; i++)
        if (of[i][0] != of[i][1])
            return of[i][0] < of[i][1] ? -1 : 1;
    return 0;
}

static void scenes_draw(struct schedule *s, uint32_t last)
{
    struct dice d = dice_of(s->seed, 5);
    uint64_t scenes = 4 + dice_draw(&d, SCENES_MAX - 3);
    for (uint64_t i = 0; i < scenes; i++) {
        uint32_t step = 1 + (uint32_t)dice_draw(&d, last), server = 1 + (uint32_t)dice_draw(&d, s->servers);
        uint32_t worker = 1 + s->servers + (uint32_t)dice_draw(&d, s->workers);
        uint64_t what = dice_draw(&d, 10), n = dice_draw(&d, 1u << 30);
        if (what < 9 && !s->replicas && dice_draw(&d, 2)) {
            lost_answers_draw(s, &d, &step, server, worker);
        } else if (what < 6) {
            scene_add(s, &step, 0, FAULT_save, worker, 0, n);
            trouble_draw(s, &d, &step, server);
        } else if (what < 9) {
            scene_add(s, &step, 0, FAULT_load, worker, 0, n);
            trouble_draw(s, &d, &step, server);
        } else {
            scene_add(s, &step, 0, FAULT_renew, 0, 0, n);
        }
    }
    qsort(s->faults, s->count, sizeof *s->faults, by_step);
}

/* ---- rows whose last copy is gone ---------------------------------------------------------------------- */

enum { LOSSES_MAX = 3, LOSS_FAULTS = 3 + RING_LEVELS };

/* A checkpoint is saved. Then as many servers die as have a copy of a row, one after the other. During the
 * restore perhaps one more dies, or the scheduler. */
static void losses_draw(struct schedule *s, uint32_t last)
{
    struct dice d = dice_of(s->seed, 15);
    uint64_t losses = s->restores ? 1 + dice_draw(&d, LOSSES_MAX) : 0;
    while (losses--) {
        uint32_t step = 1 + (uint32_t)dice_draw(&d, last), server = (uint32_t)dice_draw(&d, s->servers);
        uint32_t worker = 1 + s->servers + (uint32_t)dice_draw(&d, s->workers);
        scene_add(s, &step, 0, FAULT_save, worker, 0, dice_draw(&d, 1u << 30));
        step += 40 + (uint32_t)dice_draw(&d, 200);
        for (uint32_t i = 0; i <= s->replicas; i++, server++) {
            uint64_t n = dice_draw(&d, 8) ? dice_scale(&d, ENV_MS, 8 * ENV_SEC) : 0;
            uint32_t from = 1 + server % s->servers;
            scene_add(s, &step, (uint32_t)dice_draw(&d, 12), FAULT_crash, from, from, n);
        }
        uint64_t what = dice_draw(&d, 4), n = dice_scale(&d, ENV_MS, 4 * ENV_SEC);
        uint32_t later = 1 + (uint32_t)dice_draw(&d, 120), from = 1 + server % s->servers;
        if (what == 0)
            scene_add(s, &step, later, FAULT_crash, from, from, n);
        else if (what == 1 && s->durable)
            scene_add(s, &step, later, FAULT_crash, scheduler_draw(s, &d), 0, n);
        else if (what == 2)
            scene_add(s, &step, later, FAULT_pause, from, from, n);
    }
    qsort(s->faults, s->count, sizeof *s->faults, by_step);
}

/* ---- customers, hosts and servers that come and go ----------------------------------------------------- */

enum { CLOSES_MAX = 12, IDLES_MAX = 3, VANISHES_MAX = 2, DRAINS_MAX = 3 };
enum { NETSPLITS_MAX = 2, AMIDS_MAX = 3, STALLS_MAX = 3, LIES_MAX = 2, MEMORIES_MAX = 12, ISLANDS_MAX = 2 };
enum { SPLITS_MAX = 4, DRIFTS_MAX = 6, FREEZES_MAX = 2, BOTH_MAX = 2 };
enum {
    COMES_AND_GOES_MAX = CLOSES_MAX + IDLES_MAX + VANISHES_MAX + DRAINS_MAX + SPLITS_MAX + DRIFTS_MAX +
                         FREEZES_MAX + 2 * BOTH_MAX + NETSPLITS_MAX + AMIDS_MAX + STALLS_MAX + 2 * LIES_MAX +
                         MEMORIES_MAX + ISLANDS_MAX + 2
};

static void come_and_go(struct schedule *s, struct dice *d, uint32_t last, enum fault_kind kind,
                        uint32_t times)
{
    uint64_t count = dice_draw(d, 3) ? dice_draw(d, times + 1) : 0;
    while (count--) {
        bool server = kind == FAULT_drain || (kind == FAULT_vanish && dice_draw(d, 2));
        struct fault f = {.step = 1 + (uint32_t)dice_draw(d, last), .kind = kind};
        f.from = server ? 1 + (uint32_t)dice_draw(d, s->servers)
                        : 1 + s->servers + (uint32_t)dice_draw(d, s->workers);
        f.n = kind == FAULT_close ? dice_draw(d, 1u << 30) : dice_scale(d, 10 * ENV_MS, 20 * ENV_SEC);
        bool stays = dice_draw(d, 6) == 0; /* leaves */
        if (stays && kind != FAULT_close && kind != FAULT_idle)
            f.n = 0;
        s->faults[s->count++] = f;
    }
}

/* Partitions of any two sides, at any moment and in the middle of a migration; slow disks. */
static void netsplits_draw(struct schedule *s, uint32_t last)
{
    struct dice d = dice_of(s->seed, 16);
    uint64_t count = dice_draw(&d, 2) ? dice_draw(&d, NETSPLITS_MAX + 1) : 0;
    while (count--) {
        struct fault f = {.step = 1 + (uint32_t)dice_draw(&d, last), .kind = FAULT_netsplit};
        f.n = dice_draw(&d, 1u << 30);
        /* 0: any two sides; otherwise this server and the scheduler */
        f.to = (uint32_t)dice_draw(&d, s->servers + 1);
        f.from = (uint32_t)dice_draw(&d, schedule_nodes(s));
        s->faults[s->count++] = f;
    }
    count = dice_draw(&d, 2) ? dice_draw(&d, AMIDS_MAX + 1) : 0;
    while (count-- && s->servers > 1) {
        struct fault f = {.step = 1 + (uint32_t)dice_draw(&d, last), .kind = FAULT_amid};
        f.n = dice_draw(&d, 1u << 30);
        s->faults[s->count++] = f;
    }
    struct dice lie = dice_of(s->seed, 18);
    count = dice_draw(&lie, 3) ? 0 : 1 + dice_draw(&lie, LIES_MAX);
    while (count--) { /* then the power of the folder or of the machine fails */
        bool folder = s->ckpt && dice_draw(&lie, 2);
        struct fault f = {.step = 1 + (uint32_t)dice_draw(&lie, last), .kind = FAULT_lie};
        f.from = folder ? 1 + (uint32_t)dice_draw(&lie, s->servers)
                        : 1 + s->servers + (uint32_t)dice_draw(&lie, s->workers);
        f.n = dice_draw(&lie, 1u << 30);
        s->faults[s->count++] = f;
        f.step += 1 + (uint32_t)dice_draw(&lie, 300);
        f.kind = folder ? FAULT_disk : FAULT_crash;
        f.n = folder ? SIMFS_CRASH + SIMFS_FAULTS * dice_draw(&lie, 64)
                     : dice_scale(&lie, ENV_MS, 4 * ENV_SEC) | 1;
        s->faults[s->count++] = f;
    }
    struct dice slow = dice_of(s->seed, 17);
    bool any = s->durable || s->ckpt;
    count = any && dice_draw(&slow, 2) ? dice_draw(&slow, STALLS_MAX + 1) : 0;
    while (count--) {
        struct fault f = {.step = 1 + (uint32_t)dice_draw(&slow, last), .kind = FAULT_stall};
        f.from = s->ckpt ? (uint32_t)dice_draw(&slow, s->servers + 1) : scheduler_draw(s, &slow);
        f.to = s->ckpt && dice_draw(&slow, 3) == 0 ? 1 + f.from % s->servers : f.from;
        f.n = dice_scale(&slow, ENV_MS, 2 * ENV_SEC);
        s->faults[s->count++] = f;
    }
}

/* Two nodes that are cut off together; clocks; a server that dies together with the scheduler. */
static void sides_draw(struct schedule *s, uint32_t last)
{
    struct dice d = dice_of(s->seed, 13);
    uint64_t count = dice_draw(&d, 2) ? dice_draw(&d, SPLITS_MAX + 1) : 0;
    while (count--) {
        uint32_t server = 1 + (uint32_t)dice_draw(&d, s->servers),
                 other = 1 + (uint32_t)dice_draw(&d, s->servers);
        uint32_t worker = 1 + s->servers + (uint32_t)dice_draw(&d, s->workers);
        struct fault f = {.step = 1 + (uint32_t)dice_draw(&d, last), .kind = FAULT_split, .from = server};
        f.to = dice_draw(&d, 4) ? worker : other;
        f.n = dice_scale(&d, 10 * ENV_MS, dice_draw(&d, 3) ? 2 * ENV_SEC : 20 * ENV_SEC);
        s->faults[s->count++] = f;
    }
    count = dice_draw(&d, 2) ? dice_draw(&d, DRIFTS_MAX + 1) : 0;
    while (count--) {
        struct fault f = {.step = 1 + (uint32_t)dice_draw(&d, last), .kind = FAULT_drift};
        f.from = (uint32_t)dice_draw(&d, schedule_nodes(s));
        bool bad = dice_draw(&d, 4) == 0;
        uint64_t n = dice_draw(&d, bad ? 4 * DRIFT_MOST : 400);
        f.n = n < 2 * DRIFT_MOST ? n : 2 * DRIFT_MOST + n % 2;
        s->faults[s->count++] = f;
    }
    count = dice_draw(&d, 3) ? 0 : dice_draw(&d, FREEZES_MAX + 1);
    while (count--) {
        struct fault f = {.step = 1 + (uint32_t)dice_draw(&d, last), .kind = FAULT_freeze};
        f.from = (uint32_t)dice_draw(&d, schedule_nodes(s));
        f.n = dice_scale(&d, ENV_MS, 16 * ENV_SEC);
        s->faults[s->count++] = f;
    }
    count = s->durable && dice_draw(&d, 3) == 0 ? dice_draw(&d, BOTH_MAX + 1) : 0;
    while (count--) {
        struct fault f = {.step = 1 + (uint32_t)dice_draw(&d, last), .kind = FAULT_crash};
        f.from = scheduler_draw(s, &d);
        f.n = dice_scale(&d, ENV_MS, 4 * ENV_SEC);
        s->faults[s->count++] = f;
        f.from = 1 + (uint32_t)dice_draw(&d, s->servers);
        f.n = dice_scale(&d, ENV_MS, 4 * ENV_SEC);
        s->faults[s->count++] = f;
    }
}

/* Memory: one allocation of a process, or several in a row, fail in one of its next turns. */
static void memories_draw(struct schedule *s, uint32_t last)
{
    struct dice d = dice_of(s->seed, 21);
    uint64_t count = dice_draw(&d, 2) ? 1 + dice_draw(&d, MEMORIES_MAX) : 0;
    while (count--) {
        struct fault f = {.step = 1 + (uint32_t)dice_draw(&d, last), .kind = FAULT_memory};
        uint32_t worker = 1 + s->servers + (uint32_t)dice_draw(&d, s->workers), server = 1;
        server += (uint32_t)dice_draw(&d, s->servers);
        uint64_t whose = dice_draw(&d, 4);
        f.from = whose < 2 ? server : whose == 2 ? worker : scheduler_draw(s, &d);
        uint64_t row = dice_draw(&d, 3) ? 1 : dice_scale(&d, 1, MEMORY_ROW);
        f.n = MEMORY_ROW * dice_scale(&d, 1, 256) + row - 1;
        s->faults[s->count++] = f;
    }
}

/* An owner, with a client and perhaps with members of its chains, is cut off from the others (sim/island.c). */
static void islands_draw(struct schedule *s, uint32_t last)
{
    struct dice d = dice_of(s->seed, 22);
    bool any =
        s->replicas == RING_REPLICAS_MAX || (s->replicas && dice_draw(&d, 2)); /* the longest are rare */
    uint64_t count = any ? 1 + dice_draw(&d, ISLANDS_MAX) : 0;
    while (count--) {
        struct fault f = {.step = 1 + (uint32_t)dice_draw(&d, last), .kind = FAULT_island};
        f.n = dice_draw(&d, 1u << 30);
        s->faults[s->count++] = f;
    }
    struct dice amid = dice_of(s->seed, 24);
    if (!s->replicas || s->servers == 1)
        return;
    struct fault f = {.step = 1 + (uint32_t)dice_draw(&amid, last / 2), .kind = FAULT_island, .to = 1};
    f.n = dice_draw(&amid, 1u << 30); /* in the middle of a migration, for which it may wait for long */
    s->faults[s->count++] = f;
    if (s->servers > 2)
        return;
    /* One of two servers returns. The last migration from the other has all partitions that are left to a shard. */
    f.step += 1 + (uint32_t)dice_draw(&amid, 60);
    f.kind = FAULT_crash;
    f.from = 1 + (uint32_t)dice_draw(&amid, 2);
    f.to = 0;
    f.n = dice_scale(&amid, ENV_MS, ENV_SEC);
    s->faults[s->count++] = f;
}

static void comings_draw(struct schedule *s, uint32_t last)
{
    struct dice d = dice_of(s->seed, 10);
    come_and_go(s, &d, last, FAULT_idle, IDLES_MAX);
    come_and_go(s, &d, last, FAULT_vanish, VANISHES_MAX);
    if (s->servers > 1)
        come_and_go(s, &d, last, FAULT_drain, DRAINS_MAX);
    struct dice closes = dice_of(s->seed, 12);
    come_and_go(s, &closes, last, FAULT_close, CLOSES_MAX);
    sides_draw(s, last);
    netsplits_draw(s, last);
    memories_draw(s, last);
    islands_draw(s, last);
    qsort(s->faults, s->count, sizeof *s->faults, by_step);
}

paramo_err schedule_draw(uint64_t seed, struct schedule *s)
{
    struct dice d = dice_of(seed, 1);
    *s = (struct schedule){.seed = seed};
    shape_draw(s, &d);
    struct phases phases = phases_draw(seed);
    size_t count = 220 + dice_draw(&d, 110);
    s->faults = calloc(count + SCENES_MAX * SCENE_FAULTS + LOSSES_MAX * LOSS_FAULTS + COMES_AND_GOES_MAX,
                       sizeof *s->faults);
    if (!s->faults)
        return err_memory(count * sizeof *s->faults);
    /* Each kind is on in half of the schedules; of the three that strike single packets at least two, so that
     * much happens. */
    uint32_t on = (uint32_t)dice_draw(&d, 1u << FAULT_ANYWHERE) | 7u;
    uint32_t off = (uint32_t)dice_draw(&d, 2);
    on &= ~(off << dice_draw(&d, 3));
    on |= dice_draw(&phases.dice, 3) ? 1u << FAULT_migrate
                                     : 0; /* in most schedules partitions get another owner */
    bool scheduler_may = dice_draw(&d, 16) == 0 || s->durable;
    bool kept =
        false; /* one node that does not return is enough: with few servers or workers little can fail */
    uint32_t had[FAULT_KINDS_COUNT] = {0}, step = 1;
    while (s->count < count) {
        struct fault f = {.kind = (enum fault_kind)dice_draw(&d, FAULT_ANYWHERE)};
        bool skip = !(on >> f.kind & 1) || dice_draw(&d, 12) >= weights[f.kind];
        if (skip || (most[f.kind] && had[f.kind] >= most[f.kind]))
            continue;
        had[f.kind]++;
        step += phase_step(&phases);
        f.step = step;
        if (f.kind <= FAULT_reset) {
            link_draw(s, &d, &f);
        } else if (f.kind == FAULT_stall || f.kind == FAULT_disk) {
            f.from = 1 + s->servers + (uint32_t)dice_draw(&d, s->workers); /* servers have no rows yet */
            f.from = s->durable && f.kind == FAULT_disk && dice_draw(&d, 2) ? scheduler_draw(s, &d) : f.from;
        } else if (f.kind == FAULT_migrate) {
            f.from = 1 + (uint32_t)dice_draw(&d, s->servers);
            f.to = 1 + (uint32_t)dice_draw(&d, s->servers);
        } else {
            bool any = f.kind != FAULT_crash || scheduler_may;
            f.from = (any ? 0 : 1) + (uint32_t)dice_draw(&d, s->servers + s->workers + (any ? 1 : 0));
            if (s->meta && dice_draw(&d, 2)) /* so that other servers take over */
                f.from = scheduler_draw(s, &d);
        }
        strength_draw(&d, &f);
        bool schedules = !f.from || f.from > s->servers + s->workers;
        if (s->meta && schedules && f.kind == FAULT_pause && dice_draw(&d, 2))
            f.n += 4 * ENV_SEC; /* mostly longer than its lease */
        if (f.kind == FAULT_crash && s->replicas && f.from && f.from <= s->servers && s->count + 4 < count) {
            uint64_t how = dice_draw(&d, 3);
            if (how == 1)
                s->faults[s->count++] = apart_draw(s, &d, step, f.from, FAULT_cut);
            step += how == 1 ? 4 + (uint32_t)dice_draw(&d, 60) : 0;
            f.step = step;
            if (how == 2) {
                isolate(s, &d, step, f.from);
                continue;
            }
        }
        if (f.kind == FAULT_crash && !f.n && (kept || s->servers == 1 || (s->durable && schedules)))
            f.n = ENV_SEC;
        kept = kept || (f.kind == FAULT_crash && !f.n);
        s->faults[s->count++] = f;
    }
    if (s->ckpt)
        scenes_draw(s, step);
    losses_draw(s, step);
    comings_draw(s, step);
    return PARAMO_OK;
}

void schedule_fini(struct schedule *s)
{
    free(s->faults);
    s->faults = NULL;
    s->count = 0;
}

/* ---- files --------------------------------------------------------------------------------------------- */

size_t fault_print(const struct fault *f, char *line, size_t size)
{
    return (size_t)snprintf(line, size, "%" PRIu32 " %s %" PRIu32 " %" PRIu32 " %" PRIu64 "\n", f->step,
                            fault_name(f->kind), f->from, f->to, f->n);
}

enum { LINE = 96 };
static const char first_line[] = "paramo-sim 1";

char *schedule_write(const struct schedule *s)
{
    char *text = malloc(LINE * (s->count + 3));
    if (!text)
        return NULL;
    size_t at = (size_t)snprintf(text, LINE, "%s\n# step fault from to number\nseed %" PRIu64 "\n",
                                 first_line, s->seed);
    for (size_t i = 0; i < s->count; i++)
        at += fault_print(&s->faults[i], text + at, LINE);
    return text;
}

static paramo_err fault_read(const char *line, const struct schedule *s, struct fault *f)
{
    char name[16], end;
    uint32_t nodes = schedule_nodes(s);
    if (sscanf(line, "%" SCNu32 " %15s %" SCNu32 " %" SCNu32 " %" SCNu64 " %c", &f->step, name, &f->from,
               &f->to, &f->n, &end) != 5)
        return err_set(PARAMO_E_FORMAT, "not a fault: %.80s", line);
    for (int k = 0; k < FAULT_KINDS_COUNT; k++) {
        if (strcmp(name, names[k]) == 0 && f->from < nodes && f->to < nodes && f->n < 1000 * ENV_SEC) {
            f->kind = (enum fault_kind)k;
            return PARAMO_OK;
        }
    }
    return err_set(PARAMO_E_FORMAT, "no such fault in this cluster: %.80s", line);
}

/* Reads the next line of a file, without the blanks and comments before it, into the schedule. */
static paramo_err line_read(const char *line, struct schedule *s, bool *named)
{
    if (!*named) {
        *named = strcmp(line, first_line) == 0;
        return *named ? PARAMO_OK : err_set(PARAMO_E_FORMAT, "the first line is not '%s'", first_line);
    }
    if (!s->faults) {
        char end;
        if (sscanf(line, "seed %" SCNu64 " %c", &s->seed, &end) != 1)
            return err_set(PARAMO_E_FORMAT, "not 'seed N': %.80s", line);
        struct dice d = dice_of(s->seed, 1);
        shape_draw(s, &d);
        s->faults = calloc(SCHEDULE_FAULTS_MAX, sizeof *s->faults);
        return s->faults ? PARAMO_OK : err_memory(SCHEDULE_FAULTS_MAX * sizeof *s->faults);
    }
    if (s->count == SCHEDULE_FAULTS_MAX)
        return err_set(PARAMO_E_FORMAT, "more than %d faults", SCHEDULE_FAULTS_MAX);
    struct fault *f = &s->faults[s->count];
    paramo_err err = fault_read(line, s, f);
    if (!err && s->count && f->step < f[-1].step)
        err = err_set(PARAMO_E_FORMAT, "step %" PRIu32 " comes after step %" PRIu32, f->step, f[-1].step);
    s->count += !err;
    return err;
}

paramo_err schedule_read(const char *text, struct schedule *s)
{
    char line[LINE];
    bool named = false;
    unsigned number = 0;
    paramo_err err = PARAMO_OK;
    *s = (struct schedule){0};
    for (const char *at = text; *at && !err;) {
        size_t len = strcspn(at, "\n");
        number++;
        if (len < sizeof line) {
            memcpy(line, at, len);
            line[len] = '\0';
            if (line[0] && line[0] != '#')
                err = line_read(line, s, &named);
        } else {
            err = err_set(PARAMO_E_FORMAT, "longer than %zu bytes", sizeof line - 1);
        }
        if (err)
            err = err_prefix(err, "line %u", number);
        at += len + (at[len] == '\n');
    }
    if (!err && !s->faults)
        err = err_set(PARAMO_E_FORMAT, "there is no seed");
    if (err)
        schedule_fini(s);
    return err;
}
