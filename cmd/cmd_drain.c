/*
 * paramo drain: a server of a live cluster migrates its partitions to the others and leaves. Tests:
 * test/e2e/migrations.sh.
 */
#include "cmd/admin_target.h"
#include "cmd/exitcode.h"
#include "cmd/options.h"
#include "cmd/verbs.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define VERB "drain"

enum { POLL_MS = 200, POLL_SECONDS = 10 }; /* arbitrary: between two requests, and the time limit of one */

static int failed(paramo_err err)
{
    return code_fail(VERB, err, paramo_last_error());
}

/* Finds the server of that name; if there is none, the server of that rank. */
static bool find_server(const paramo_cluster *cluster, const char *name, paramo_cluster_node *found)
{
    char *end;
    unsigned long rank = strtoul(name, &end, 10);
    bool is_rank = *name >= '0' && *name <= '9' && *end == '\0', known = false;
    paramo_cluster_node node = {.size = sizeof node};
    for (uint32_t i = 0; paramo_cluster_node_get(cluster, i, &node) == PARAMO_OK; i++) {
        bool named = node.name[0] && strcmp(node.name, name) == 0;
        if (node.role != PARAMO_ROLE_SERVER || (!named && (!is_rank || node.rank != rank)))
            continue;
        *found = node;
        known = true;
        if (named)
            break;
    }
    return known;
}

static bool find_id(const paramo_cluster *cluster, uint32_t id, paramo_cluster_node *found)
{
    for (uint32_t i = 0; paramo_cluster_node_get(cluster, i, found) == PARAMO_OK; i++)
        if (found->id == id)
            return true;
    return false;
}

static uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Waits until the server has left, or another process has its rank. Returns the exit code. */
static int wait_until_left(paramo_admin *admin, uint32_t id, uint64_t incarnation, uint64_t wait_s)
{
    const struct timespec nap = {.tv_nsec = POLL_MS * 1000000L};
    const uint64_t deadline = now_ms() + wait_s * 1000;
    for (;; (void)nanosleep(&nap, NULL)) {
        paramo_cluster *cluster;
        paramo_cluster_node node = {.size = sizeof node};
        paramo_err err = paramo_admin_cluster(admin, &cluster);
        if (err)
            return failed(err);
        bool same = find_id(cluster, id, &node) && node.incarnation == incarnation;
        paramo_cluster_free(cluster); /* it owns the node's strings */
        if (same && !node.alive && !node.left)
            return code_fail(
                VERB, PARAMO_E_NODE_LOST,
                "the server died before all its partitions had migrated; 'paramo status' shows what "
                "is left");
        if (!same || !node.alive)
            return CODE_DONE;
        if (now_ms() > deadline) {
            char text[160];
            (void)snprintf(text, sizeof text,
                           "%" PRIu32 " of its partitions and copies have not migrated after %" PRIu64
                           " s; draining continues",
                           node.owns + node.copies, wait_s);
            return code_fail(VERB, PARAMO_E_TIMEOUT, text);
        }
    }
}

static int drain(const struct options *o, paramo_admin *admin)
{
    paramo_cluster *cluster;
    paramo_cluster_node server = {.size = sizeof server};
    paramo_err err = paramo_admin_cluster(admin, &cluster);
    if (err)
        return failed(err);
    bool found = find_server(cluster, o->word[0], &server);
    paramo_cluster_free(cluster); /* it owns the server's strings */
    if (!found || !server.alive)
        return options_wrong(o, "the job has no running server '%s' ('paramo status' lists the servers)",
                             o->word[0]);
    err = paramo_admin_drain(admin, server.id);
    return err ? failed(err)
               : wait_until_left(admin, server.id, server.incarnation, option_number(o, OPT_DRAIN_WAIT));
}

static const char usage[] =
    "usage: paramo drain SERVER --scheduler HOST:PORT [options]\n"
    "\n"
    "Migrates all partitions of a server to the other servers while the job continues; then the\n"
    "server leaves.\n"
    "SERVER is its name or its rank. SIGTERM to the server does the same.\n";
static const char more[] = "  paramo drain 2 --scheduler 10.0.0.1:9000\n"
                           "\n" CODE_HELP;

int cmd_drain(int argc, char **argv)
{
    struct options o;
    paramo_admin *admin = NULL;
    int code = options_parse(&o, VERB_DRAIN, argc, argv, usage, more);
    if (code < 0 && !o.words)
        code = options_wrong(&o, "SERVER is missing: the server's name or rank");
    if (code < 0 && !option_text(&o, OPT_ADMIN_SCHEDULER))
        code = options_wrong(&o, "--scheduler HOST:PORT is missing");
    if (code < 0)
        code = admin_target_open(&o, POLL_SECONDS, &admin);
    if (code < 0)
        code = drain(&o, admin);
    paramo_admin_close(admin);
    return code;
}
