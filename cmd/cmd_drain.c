/*
 * paramo drain: a server of a live cluster gives away what it has, and leaves. Like cmd_ring.c it looks
 * inside src/ (scripts/layers). Tests: test/e2e/migrations.sh.
 */
#include "cmd/admin_request.h"
#include "cmd/args.h"
#include "cmd/exitcode.h"
#include "cmd/verbs.h"

#include "env/env.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define VERB "drain"

enum { POLL_MS = 200, POLL_SECONDS = 10 };

struct options {
    const char *server;
    struct admin_target where;
    uint64_t wait;
};

/* By name, or by rank. */
static const struct view_node *server_named(const struct view *view, const char *name)
{
    char *end;
    unsigned long rank = strtoul(name, &end, 10);
    for (uint32_t i = 0; i < view->nodes_count; i++)
        if (view->nodes[i].role == PARAMO_ROLE_SERVER && view->nodes[i].name[0] &&
            strcmp(view->nodes[i].name, name) == 0)
            return &view->nodes[i];
    if (*name < '0' || *name > '9' || *end || rank >= VIEW_NODES_MAX)
        return NULL;
    return view_node(view, PARAMO_ID_SERVER((uint32_t)rank));
}

static unsigned partitions_of(const struct view *view, uint32_t node)
{
    unsigned count = 0;
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        for (unsigned level = 0; level <= view->chains.replicas; level++) {
            uint16_t shard = view->chains.level[level].owner[a];
            count += shard < view->shards_count && view->shards[shard].node == node;
        }
    return count;
}

static int look(struct admin_request *see)
{
    paramo_err err = admin_request_run(see);
    return err ? code_fail(VERB, err, err_text()) : -1;
}

/* Until it has left, or is another process. */
static int wait_until_left(struct admin_request *see, const struct view_node *server, uint64_t wait_s)
{
    struct env *env = env_real();
    uint64_t deadline = env_now(env) + wait_s * ENV_SEC;
    for (;;) {
        const struct timespec nap = {.tv_nsec = POLL_MS * 1000000L};
        int code = look(see);
        if (code >= 0)
            return code;
        const struct view_node *now = view_node(see->view, server->id);
        bool here = now && now->alive && now->incarnation == server->incarnation;
        bool died = now && now->incarnation == server->incarnation && !now->alive && !now->left;
        unsigned left = partitions_of(see->view, server->id);
        view_unref(see->view);
        see->view = NULL;
        if (died)
            return code_fail(VERB, PARAMO_E_NODE_LOST, "it died before it had given everything away");
        if (!here)
            return CODE_DONE;
        if (env_now(env) > deadline) {
            char text[128];
            (void)snprintf(text, sizeof text,
                           "%u of its partitions and copies are still there after %" PRIu64 " s; it goes on",
                           left, wait_s);
            return code_fail(VERB, PARAMO_E_TIMEOUT, text);
        }
        (void)nanosleep(&nap, NULL);
    }
}

static int drain(const struct options *o)
{
    char secret[TOKEN_BYTES];
    struct admin_request see = {.wait_s = POLL_SECONDS};
    int code = admin_request_target(VERB, &o->where, secret, &see);
    if (code < 0)
        code = look(&see);
    if (code >= 0)
        return code;
    const struct view_node *found = server_named(see.view, o->server);
    if (!found || !found->alive) {
        view_unref(see.view);
        return args_wrong(VERB, "the job has no server '%s' that is there", o->server);
    }
    struct view_node server = *found;
    view_unref(see.view);
    see.view = NULL;
    see.drain = server.id;
    code = look(&see);
    see.drain = 0;
    return code >= 0 ? code : wait_until_left(&see, &server, o->wait);
}

static const char usage[] = "usage: paramo drain SERVER --scheduler HOST:PORT [options]\n"
                            "\n"
                            "Has a server of a live cluster give what it has to the others while the job "
                            "goes on, and leave. SERVER is\n"
                            "its name or its rank. SIGTERM to the server does the same.\n";
static const char more[] = "\n"
                           "  paramo drain 2 --scheduler 10.0.0.1:9000\n"
                           "\n" CODE_HELP;

int cmd_drain(int argc, char **argv)
{
    struct options o = {.wait = 600};
    const struct arg args[] = {
        ADMIN_ARGS(o.where, "the job's"),
        {.name = "wait",
         .kind = ARG_INT,
         .out = &o.wait,
         .meta = "SECONDS",
         .help = "how long to wait until it has left (600)",
         .min = 1,
         .max = 604800},
    };
    const size_t n = sizeof args / sizeof *args;
    const int named = argc > 1 && argv[1][0] != '-';
    if (named)
        o.server = argv[1];
    int code = args_parse(VERB, argc - named, argv + named, args, n, usage, more);
    if (code < 0 && !named)
        code = args_wrong(VERB, "which server?");
    if (code < 0 && !o.where.scheduler)
        code = args_wrong(VERB, "--scheduler HOST:PORT is needed");
    if (code < 0)
        code = drain(&o);
    args_free(args, n);
    return code;
}
