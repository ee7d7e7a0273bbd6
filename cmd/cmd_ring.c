/*
 * paramo ring show: draws the ring of a planned or a live cluster, and prints each server's share and what a change
 * would move. Tests: test/e2e/ring.sh.
 */
#include "cmd/admin_json.h"
#include "cmd/admin_target.h"
#include "cmd/exitcode.h"
#include "cmd/options.h"
#include "cmd/verbs.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERB "ring"

enum { COLUMNS = 64, SERVERS_MAX = 4096, DOMAIN_MAX = 256, PARTITIONS = PARAMO_PARTITIONS };

/* In names of this file, `now` is before the change, and `then` after it. */

struct server {
    char domain[DOMAIN_MAX];
    uint32_t weight, then; /* then: the weight after the change */
    uint32_t shards;
    bool joins, leaves, dead;
};

struct plan {
    struct server *server;
    size_t servers;
    paramo_ring_shard *shard; /* with the weights that set_weights has set last */
    uint16_t *index;          /* of a shard within its server */
    size_t shards;
    unsigned replicas;
    bool live, changes;
    uint64_t view;
    paramo_ring *now, *then;
};

static int failed(paramo_err err)
{
    int code = code_fail(VERB, err, paramo_last_error());
    return err == PARAMO_E_AGAIN ? CODE_CLUSTER : code;
}

static int no_memory(void)
{
    return code_fail(VERB, PARAMO_E_MEMORY, "out of memory for the ring");
}

/* ---- the plan ------------------------------------------------------------------------------------------ */

/* Fills in the servers of the live cluster: shards, weights, domains, and which are dead. */
static void servers_from(struct plan *p, const paramo_cluster *cluster)
{
    paramo_cluster_node node = {.size = sizeof node};
    paramo_cluster_shard shard = {.size = sizeof shard};
    for (uint32_t i = 0; paramo_cluster_node_get(cluster, i, &node) == PARAMO_OK; i++) {
        if (node.role != PARAMO_ROLE_SERVER || node.rank >= p->servers)
            continue;
        struct server *server = &p->server[node.rank];
        server->shards = 0;
        for (uint32_t k = 0; paramo_cluster_shard_get(cluster, k, &shard) == PARAMO_OK; k++)
            server->shards += shard.node == node.id;
        server->dead = !node.alive;
        server->weight = server->then = node.weight;
        (void)snprintf(server->domain, sizeof server->domain, "%s", node.domain);
    }
}

static int plan_servers(struct plan *p, const struct options *o, const paramo_cluster *cluster)
{
    paramo_cluster_info info = {.size = sizeof info,
                                .num_servers = (uint32_t)option_number(o, OPT_PLAN_SERVERS)};
    if (cluster && paramo_cluster_info_get(cluster, &info))
        return failed(PARAMO_E_INVALID);
    size_t there = info.num_servers;
    p->servers = there + option_number(o, OPT_ADD);
    p->view = info.view;
    if (cluster)
        p->replicas = info.replicas;
    if (!there)
        return options_wrong(o, "the job has no servers");
    if (p->servers > SERVERS_MAX)
        return options_wrong(o, "%zu servers are too many: at most %d are possible", p->servers, SERVERS_MAX);
    p->server = calloc(p->servers, sizeof *p->server);
    if (!p->server)
        return no_memory();
    for (size_t i = 0; i < p->servers; i++) {
        struct server *server = &p->server[i];
        *server = (struct server){.weight = 1,
                                  .then = 1,
                                  .shards = (uint32_t)option_number(o, OPT_PLAN_SHARDS),
                                  .joins = i >= there};
        (void)snprintf(server->domain, sizeof server->domain, "host-%zu", i);
    }
    if (cluster)
        servers_from(p, cluster);
    return -1;
}

/* Reads "R=VALUE", or "R" if value is false: the rank of a server of the plan, and the text of the value. Returns -1,
 * or the exit code. */
static int parse_server(const struct options *o, const struct plan *p, const char *option, const char *text,
                        bool value, size_t *rank, const char **rest)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    if (end == text || text[0] < '0' || text[0] > '9' || (value ? *end != '=' || !end[1] : *end != '\0'))
        return options_wrong(o, "--%s '%s' is not of the form %s", option, text, value ? "R=VALUE" : "R");
    if (n >= p->servers)
        return options_wrong(o, "--%s %s: the servers are 0 to %zu", option, text, p->servers - 1);
    *rank = (size_t)n;
    *rest = end + 1;
    return -1;
}

static int plan_changes(struct plan *p, const struct options *o)
{
    size_t rank;
    const char *rest;
    char *end;
    int code = -1;
    for (size_t i = 0; i < option_list(o, OPT_REMOVE)->n && code < 0; i++) {
        code = parse_server(o, p, "remove", option_list(o, OPT_REMOVE)->item[i], false, &rank, &rest);
        if (code < 0)
            p->server[rank].leaves = true;
    }
    size_t stay = 0;
    for (size_t i = 0; i < p->servers; i++)
        stay += !p->server[i].leaves;
    if (code < 0 && !stay)
        return options_wrong(o, "--remove: no server would be left");
    for (size_t i = 0; i < option_list(o, OPT_WEIGHTS)->n && code < 0; i++) {
        code = parse_server(o, p, "weight", option_list(o, OPT_WEIGHTS)->item[i], true, &rank, &rest);
        if (code >= 0)
            break;
        unsigned long long weight = strtoull(rest, &end, 10);
        if (rest[0] < '0' || rest[0] > '9' || *end || weight < 1 || weight > PARAMO_WEIGHT_MAX)
            return options_wrong(o, "--weight '%s': a weight is 1 to %u",
                                 option_list(o, OPT_WEIGHTS)->item[i], PARAMO_WEIGHT_MAX);
        p->server[rank].then = (uint32_t)weight;
        if (!p->live || p->server[rank].joins)
            p->server[rank].weight = (uint32_t)weight;
    }
    for (size_t i = 0; i < option_list(o, OPT_DOMAINS)->n && code < 0; i++) {
        code = parse_server(o, p, "domain", option_list(o, OPT_DOMAINS)->item[i], true, &rank, &rest);
        if (code < 0 && strlen(rest) >= DOMAIN_MAX)
            return options_wrong(o, "--domain: the name has more than %d bytes", DOMAIN_MAX - 1);
        if (code < 0)
            (void)snprintf(p->server[rank].domain, DOMAIN_MAX, "%s", rest);
    }
    p->changes = option_number(o, OPT_ADD) || option_list(o, OPT_REMOVE)->n ||
                 (p->live && option_list(o, OPT_WEIGHTS)->n);
    return code;
}

/* Sets the weights of the shards before the change, or after it; 0: the shard is not in the cluster then. */
static void set_weights(struct plan *p, bool then)
{
    for (size_t i = 0; i < p->shards; i++) {
        const struct server *server = &p->server[p->shard[i].server];
        bool there = then ? !server->leaves : !server->joins;
        p->shard[i].weight = !there ? 0 : then ? server->then : server->weight;
    }
}

static int plan_place(struct plan *p, const paramo_cluster *cluster)
{
    for (size_t i = 0; i < p->servers; i++)
        p->shards += p->server[i].shards;
    p->shard = calloc(p->shards, sizeof *p->shard);
    p->index = calloc(p->shards, sizeof *p->index);
    if (!p->shard || !p->index)
        return no_memory();
    size_t at = 0;
    for (size_t i = 0; i < p->servers; i++)
        for (uint32_t k = 0; k < p->server[i].shards; k++, at++) {
            p->shard[at] = (paramo_ring_shard){.server = (uint32_t)i, .domain = p->server[i].domain};
            p->index[at] = (uint16_t)k;
        }
    set_weights(p, false);
    paramo_err err = cluster ? paramo_cluster_ring(cluster, p->shard, p->shards, &p->now)
                             : paramo_ring_plan(p->shard, p->shards, p->replicas, NULL, &p->now);
    if (!err && p->changes) {
        set_weights(p, true);
        err = paramo_ring_plan(p->shard, p->shards, p->replicas, p->now, &p->then);
    }
    return err ? failed(err) : -1;
}

/* ---- the partitions of a shard ------------------------------------------------------------------------- */

struct portion {
    /* Partitions; holds: as owner or replica; runs: of neighbouring ones that it owns. */
    uint32_t owns, holds, runs;
    double due; /* the share of all partitions that follows from its weight */
};

static struct portion portion_of(const struct plan *p, const paramo_ring *ring, size_t shard)
{
    struct portion portion = {0};
    double total = 0;
    for (size_t i = 0; i < p->shards; i++)
        total += p->shard[i].weight;
    portion.due = total > 0 ? p->shard[shard].weight / total : 0;
    for (uint32_t l = 0; l <= p->replicas; l++)
        for (uint32_t a = 0; a < PARTITIONS; a++) {
            bool has = paramo_ring_holder(ring, a, l) == shard;
            portion.holds += has;
            portion.owns += has && !l;
            portion.runs += has && !l && (!a || paramo_ring_holder(ring, a - 1, 0) != shard);
        }
    return portion;
}

/* How many copies of each partition there are. */
static uint32_t present(const paramo_ring *ring)
{
    paramo_ring_info info = {.size = sizeof info};
    return paramo_ring_info_get(ring, &info) ? 0 : info.present;
}

static void name_shard(const struct plan *p, size_t shard, char text[24])
{
    const struct server *server = &p->server[p->shard[shard].server];
    if (server->shards > 1)
        (void)snprintf(text, 24, "%" PRIu32 ".%u", p->shard[shard].server, p->index[shard]);
    else
        (void)snprintf(text, 24, "%" PRIu32, p->shard[shard].server);
}

static const char *state_of(const struct server *server, bool then)
{
    return server->leaves && then ? "  leaves" : server->joins ? "  joins" : server->dead ? "  dead" : "";
}

/* ---- as text ------------------------------------------------------------------------------------------- */

static const char symbols[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

static char symbol_of(size_t shard)
{
    return shard == PARAMO_NO_SHARD ? '-' : shard < sizeof symbols - 1 ? symbols[shard] : '*';
}

/* The symbol of the shard that holds most of the column's partitions. */
static char symbol_at(const paramo_ring *ring, uint32_t level, uint32_t column)
{
    enum { EACH = PARTITIONS / COLUMNS };
    uint32_t holder[EACH], best = 0, most = 0;
    for (uint32_t i = 0; i < EACH; i++)
        holder[i] = paramo_ring_holder(ring, column * EACH + i, level);
    for (uint32_t i = 0; i < EACH; i++) {
        uint32_t count = 0;
        for (uint32_t k = i; k < EACH; k++)
            count += holder[k] == holder[i];
        if (count > most) {
            most = count;
            best = i;
        }
    }
    return symbol_of(holder[best]);
}

static void draw(const struct plan *p, const paramo_ring *ring)
{
    for (uint32_t l = 0; l <= p->replicas; l++) {
        char row[COLUMNS + 1];
        for (uint32_t i = 0; i < COLUMNS; i++)
            row[i] = symbol_at(ring, l, i);
        row[COLUMNS] = '\0';
        if (l)
            (void)printf("replica %u |%s|\n", l, row);
        else
            (void)printf("owner     |%s|  %d partitions, %d to a sign\n", row, PARTITIONS,
                         PARTITIONS / COLUMNS);
    }
}

static void print_shares(const struct plan *p, const paramo_ring *ring, bool then)
{
    (void)printf("\nsign server  domain            weight   owns    share      due  runs%s\n",
                 p->replicas ? "   holds    share" : "");
    uint32_t unowned = 0;
    for (uint32_t a = 0; a < PARTITIONS; a++)
        unowned += paramo_ring_holder(ring, a, 0) == PARAMO_NO_SHARD;
    for (size_t i = 0; i < p->shards; i++) {
        const struct server *server = &p->server[p->shard[i].server];
        if (server->joins && !then)
            continue;
        struct portion portion = portion_of(p, ring, i);
        char name[24];
        name_shard(p, i, name);
        (void)printf("%-4c %-7s %-16s %7" PRIu32 "  %5" PRIu32 "  %5.2f %%  %5.2f %%  %4" PRIu32,
                     symbol_of(i), name, server->domain, then ? server->then : server->weight, portion.owns,
                     100.0 * portion.owns / PARTITIONS, 100 * portion.due, portion.runs);
        if (p->replicas)
            (void)printf("   %5" PRIu32 "  %5.2f %%", portion.holds,
                         100.0 * portion.holds / ((present(ring) + 1) * PARTITIONS));
        (void)printf("%s\n", state_of(server, then));
    }
    if (unowned)
        (void)printf("%-4c none   %41" PRIu32 "  %5.2f %%\n", '-', unowned, 100.0 * unowned / PARTITIONS);
}

static void print_part(const char *what, uint32_t transfers, uint32_t least, double all)
{
    (void)printf("%s %" PRIu32 " partitions, %.2f %% of all; least possible %" PRIu32, what, transfers,
                 100 * transfers / all, least);
    if (least)
        (void)printf(", %.3f times that", (double)transfers / least);
    (void)printf("\n");
}

static void print_plan(struct plan *p, const paramo_ring_transfers *transfers)
{
    size_t there = 0;
    for (size_t i = 0; i < p->servers; i++)
        there += !p->server[i].joins;
    if (p->live)
        (void)printf("%zu server%s, view %" PRIu64 ".%" PRIu64 "\n\n", there, there == 1 ? "" : "s",
                     p->view >> 32, p->view & UINT32_MAX);
    else
        (void)printf("%zu server%s, %u replica%s\n\n", there, there == 1 ? "" : "s", p->replicas,
                     p->replicas == 1 ? "" : "s");
    draw(p, p->now);
    set_weights(p, false);
    print_shares(p, p->now, false);
    if (!p->changes)
        return;
    (void)printf("\nafter the change\n\n");
    draw(p, p->then);
    set_weights(p, true);
    print_shares(p, p->then, true);
    (void)printf("\n");
    print_part("other owner:", transfers->owners, transfers->owners_least, PARTITIONS);
    print_part("rows travel:", transfers->copies, transfers->copies_least,
               (double)PARTITIONS * (present(p->then) + 1));
}

/* ---- as JSON ------------------------------------------------------------------------------------------- */

static json_t *json_shards(struct plan *p, const paramo_ring *ring, bool then)
{
    json_t *list = json_array();
    set_weights(p, then);
    for (size_t i = 0; i < p->shards; i++) {
        const struct server *server = &p->server[p->shard[i].server];
        if (server->joins && !then)
            continue;
        struct portion portion = portion_of(p, ring, i);
        (void)json_array_append_new(
            list,
            json_pack("{s:i, s:i, s:i, s:s, s:i, s:b, s:i, s:f, s:i, s:i}", "number", (int)i, "server",
                      (int)p->shard[i].server, "shard", (int)p->index[i], "domain", server->domain, "weight",
                      (int)p->shard[i].weight, "dead", (int)server->dead, "owns", (int)portion.owns, "due",
                      portion.due * PARTITIONS, "holds", (int)portion.holds, "runs", (int)portion.runs));
    }
    return list;
}

static json_t *json_holder(const paramo_ring *ring, uint32_t partition, uint32_t level)
{
    uint32_t shard = paramo_ring_holder(ring, partition, level);
    return shard == PARAMO_NO_SHARD ? json_null() : json_integer(shard);
}

static bool same_holders(const struct plan *p, const paramo_ring *ring, uint32_t a, uint32_t b)
{
    bool same = true;
    for (uint32_t l = 0; l <= p->replicas; l++)
        same &= paramo_ring_holder(ring, a, l) == paramo_ring_holder(ring, b, l);
    return same;
}

static json_t *json_ring(struct plan *p, const paramo_ring *ring, bool then)
{
    json_t *runs = json_array();
    paramo_ring_info info = {.size = sizeof info};
    for (uint32_t a = 0, end; a < PARTITIONS; a = end) {
        for (end = a + 1; end < PARTITIONS && same_holders(p, ring, a, end);)
            end++;
        json_t *replicas = json_array();
        for (uint32_t l = 1; l <= p->replicas; l++)
            (void)json_array_append_new(replicas, json_holder(ring, a, l));
        (void)json_array_append_new(runs, json_pack("{s:i, s:i, s:o, s:o}", "first", (int)a, "partitions",
                                                    (int)(end - a), "owner", json_holder(ring, a, 0),
                                                    "replicas", replicas));
    }
    if (paramo_ring_info_get(ring, &info))
        return NULL;
    return json_pack("{s:i, s:i, s:o, s:o}", "apart", (int)info.apart, "present", (int)info.present, "shards",
                     json_shards(p, ring, then), "runs", runs);
}

static int print_json(struct plan *p, const paramo_ring_transfers *transfers)
{
    json_t *root = json_pack("{s:i, s:i, s:o}", "partitions", (int)PARTITIONS, "replicas", (int)p->replicas,
                             "now", json_ring(p, p->now, false));
    if (root && p->live)
        (void)json_object_set_new(root, "view", json_integer((json_int_t)p->view));
    if (root && p->changes) {
        (void)json_object_set_new(root, "then", json_ring(p, p->then, true));
        (void)json_object_set_new(root, "transfers",
                                  json_pack("{s:i, s:i, s:i, s:i}", "owners", (int)transfers->owners,
                                            "owners_least", (int)transfers->owners_least, "copies",
                                            (int)transfers->copies, "copies_least",
                                            (int)transfers->copies_least));
    }
    return admin_json_print(VERB, root, 0);
}

/* ---- the verb ------------------------------------------------------------------------------------------ */

static int show(const struct options *o)
{
    struct plan p = {.replicas = (unsigned)option_number(o, OPT_PLAN_REPLICAS),
                     .live = option_text(o, OPT_ADMIN_SCHEDULER) != NULL};
    paramo_admin *admin = NULL;
    paramo_cluster *cluster = NULL;
    paramo_ring_transfers transfers = {.size = sizeof transfers};
    int code = -1;
    if (p.live) {
        code = admin_target_open(o, option_number(o, OPT_ADMIN_WAIT), &admin);
        if (code >= 0)
            return code;
        paramo_err err = paramo_admin_cluster(admin, &cluster);
        code = err ? failed(err) : -1;
        paramo_admin_close(admin);
    }
    if (code < 0)
        code = plan_servers(&p, o, cluster);
    if (code < 0)
        code = plan_changes(&p, o);
    if (code < 0)
        code = plan_place(&p, cluster);
    if (code < 0 && p.changes) {
        paramo_err err = paramo_ring_compare(p.now, p.then, &transfers);
        code = err ? failed(err) : -1;
    }
    if (code < 0) {
        char text[256];
        if (!p.live && paramo_ring_warning(p.changes ? p.then : p.now, text, sizeof text))
            (void)fprintf(stderr, "paramo " VERB ": warning: %s\n", text);
        code = CODE_DONE;
        if (option_flag(o, OPT_JSON))
            code = print_json(&p, &transfers);
        else
            print_plan(&p, &transfers);
    }
    paramo_cluster_free(cluster);
    paramo_ring_free(p.now);
    paramo_ring_free(p.then);
    free(p.server);
    free(p.shard);
    free(p.index);
    return code;
}

static const char usage[] =
    "usage: paramo ring show --servers N [--replicas K] [--add N] [--remove R...]\n"
    "       paramo ring show --scheduler HOST:PORT [--add N] [--remove R...]\n"
    "\n"
    "Draws the ring: which servers own and replicate each part of the key space. Prints each server's\n"
    "share, the share due to its weight, what a change would move, and the least that it could move. The\n"
    "cluster is a planned one (--servers) or a live one (--scheduler), whose state is read and not "
    "changed.\n";
static const char more[] =
    "Each sign of the drawing is the server that holds most of 64 partitions. Replicas are kept in distinct\n"
    "failure domains. With too few domains some are only on distinct servers, and a warning says so.\n"
    "\n"
    "  paramo ring show --servers 8 --replicas 2 --add 1\n"
    "  paramo ring show --servers 4 --weight 0=3 --domain 1=a 2=a --replicas 1\n"
    "  paramo ring show --scheduler 10.0.0.1:9000 --remove 2\n"
    "\n" CODE_HELP;

int cmd_ring(int argc, char **argv)
{
    struct options o;
    int code = options_parse(&o, VERB_RING, argc, argv, usage, more);
    if (code < 0 && !o.words)
        code = options_wrong(&o, "a subcommand is missing: 'show'");
    if (code < 0 && strcmp(o.word[0], "show") != 0)
        code = options_wrong(&o, "unknown subcommand '%s': use 'show'", o.word[0]);
    const int live = option_given(&o, OPT_ADMIN_SCHEDULER);
    if (code < 0 && live == option_given(&o, OPT_PLAN_SERVERS))
        code = options_wrong(&o, "give either --servers N or --scheduler HOST:PORT");
    if (code < 0 && live && option_given(&o, OPT_PLAN_REPLICAS))
        code = options_wrong(&o, "--replicas is for a planned cluster: a live one has its own number");
    if (code < 0)
        code = show(&o);
    options_free(&o);
    return code;
}
