/*
 * Chains of shards on one simulated network: servers are killed, or cut off and declared dead, while clients
 * push. What was answered is there, once; copies are equal bit for bit; no request waits forever. Faults from a
 * seed; one seed again: test_chain_sim SEED [COUNT]. The test makes the views, as the scheduler
 * will: the dead are dropped from every chain, and each server takes the view at its own time.
 */
#include <stdlib.h>

#include "worker/support_play.h"

enum { SEEDS = 200, CLIENTS = 3, SERVERS = 4, ACTIONS = 140 };

struct run {
    struct play p;
    unsigned gone; /* servers that have died, or will */
    uint64_t dead_at, heal_at;
};

/* ---- deaths ---- */

static void drop(struct run *r, unsigned server)
{
    struct world *w = &r->p.w;
    world_server_gone(w, server);
    for (unsigned s = 0; s < SERVERS; s++)
        r->p.server_view_at[s] =
            w->servers[s].up && s != server ? sim_now(w->sim) + 1 + play_draw(&r->p, 2 * ENV_SEC) : 0;
    for (unsigned c = 0; c < CLIENTS; c++)
        r->p.view_at[c] = sim_now(w->sim) + 1 + play_draw(&r->p, 3 * ENV_SEC);
}

static void faults_go_on(struct run *r, bool now)
{
    uint64_t at = sim_now(r->p.w.sim);
    if (r->p.apart < WORLD_SERVERS && r->dead_at && (now || r->dead_at <= at)) {
        r->dead_at = 0;
        drop(r, r->p.apart);
    }
    if (r->p.apart < WORLD_SERVERS && !r->dead_at && (now || r->heal_at <= at)) {
        play_part(&r->p, r->p.apart, false, true);
        if (!r->p.w.servers[r->p.apart].alive) /* the news reaches it later, if at all */
            r->p.server_view_at[r->p.apart] = at + 1 + play_draw(&r->p, 3 * ENV_SEC);
        r->p.apart = WORLD_SERVERS;
    }
}

static void act(struct run *r)
{
    switch (play_draw(&r->p, 24)) {
    case 0: /* killed */
        if (r->gone < r->p.w.replicas && r->p.apart == WORLD_SERVERS) {
            unsigned s = play_living(&r->p);
            r->gone++;
            world_server_stop(&r->p.w, s);
            r->p.w.servers[s].alive = true; /* for all that anybody knows */
            play_views(&r->p, true);
            r->p.apart = s;
            r->dead_at = sim_now(r->p.w.sim) + play_draw(&r->p, ENV_SEC);
            r->heal_at = 0;
        }
        break;
    case 1: /* cut off from the others, but not from clients; perhaps declared dead */
        if (r->p.apart == WORLD_SERVERS) {
            bool dies = r->gone < r->p.w.replicas && play_draw(&r->p, 2);
            r->gone += dies;
            r->p.apart = play_living(&r->p);
            play_views(&r->p, true);
            play_part(&r->p, r->p.apart, true, play_draw(&r->p, 2));
            r->dead_at = dies ? sim_now(r->p.w.sim) + play_draw(&r->p, 3 * ENV_SEC) : 0;
            r->heal_at = sim_now(r->p.w.sim) + play_draw(&r->p, 6 * ENV_SEC);
        }
        break;
    case 2: { /* connections break */
        unsigned s = play_living(&r->p);
        if (r->p.w.servers[s].up)
            van_sim_reset(r->p.w.servers[s].van, UINT32_MAX);
        break;
    }
    default:
        play_issue(&r->p);
    }
}

/* ---- a run ---- */

static void start(struct run *r, uint64_t seed)
{
    play_open(&r->p, seed);
    r->gone = 0;
    r->dead_at = r->heal_at = 0;
    r->p.w.replicas = 1 + (unsigned)(seed % 3);
    play_links(&r->p, 50000, 50000, 100000);
    play_tables(&r->p);
    world_start(&r->p.w, SERVERS, SERVERS, CLIENTS);
    play_faulty(&r->p, 1u << VAN_REQUEST | 1u << VAN_ANSWER | (seed % 2 ? 1u << VAN_CHAIN : 0));
}

static void run_seed(uint64_t seed)
{
    struct run *r = malloc(sizeof *r);
    start(r, seed);
    for (unsigned i = 0; i < ACTIONS; i++) {
        act(r);
        play_run(&r->p, play_draw(&r->p, 80 * ENV_MS));
        faults_go_on(r, false);
        play_views(&r->p, false);
    }
    faults_go_on(r, true);
    faults_go_on(r, true);
    play_views(&r->p, true);
    play_verify(&r->p);
    play_close(&r->p);
    free(r);
}

int main(int argc, char **argv)
{
    return play_main(argc, argv, SEEDS, run_seed);
}
