/*
 * paramo ring show: the ring of a cluster, thought of or live, its shares, and what a change would move. It
 * looks inside src/ (scripts/layers): the public API has no admin clients. Tests: test/e2e/ring.sh.
 */
#include "cmd/admin_request.h"
#include "cmd/args.h"
#include "cmd/exitcode.h"
#include "cmd/verbs.h"

#include "base/err.h"
#include "ring/place.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERB "ring"

enum { COLUMNS = 64, SERVERS_MAX = 4096, WEIGHT_MAX = 1000000, DOMAIN_MAX = 256 };

struct server {
    char domain[DOMAIN_MAX];
    uint32_t weight, then; /* after the change */
    uint32_t shards;
    bool joins, leaves, dead;
};

struct plan {
    struct server *server;
    size_t servers;
    struct ring_shard *shard; /* as they are now, then as they will be */
    uint16_t *index;          /* of a shard within its server */
    size_t shards;
    unsigned replicas;
    bool live, changes;
    uint64_t view;
    struct ring_chains *now, *then;
};

struct options {
    uint64_t servers, shards, replicas, add, wait;
    int servers_given, shards_given, replicas_given, json;
    struct arg_list remove, weight, domain;
    struct admin_target where;
};

static int failed(paramo_err err)
{
    return err == PARAMO_E_AGAIN ? (code_fail(VERB, err, err_text()), CODE_CLUSTER)
                                 : code_fail(VERB, err, err_text());
}

/* ---- the plan ------------------------------------------------------------------------------------------ */

static int plan_servers(struct plan *p, const struct options *o, const struct view *view)
{
    size_t there = view ? view->num_servers : o->servers;
    p->servers = there + o->add;
    if (!there)
        return args_wrong(VERB, "the job has no servers");
    if (p->servers > SERVERS_MAX)
        return args_wrong(VERB, "%zu servers: there are at most %d", p->servers, SERVERS_MAX);
    p->server = calloc(p->servers, sizeof *p->server);
    if (!p->server)
        return failed(err_memory(p->servers * sizeof *p->server));
    for (size_t i = 0; i < p->servers; i++) {
        struct server *server = &p->server[i];
        const struct view_node *node = view ? view_node(view, PARAMO_ID_SERVER((uint32_t)i)) : NULL;
        *server = (struct server){.weight = 1, .then = 1, .shards = (uint32_t)o->shards, .joins = i >= there};
        if (node) {
            server->shards = 0; /* as the ring numbers them */
            for (uint32_t k = 0; k < view->shards_count; k++)
                server->shards += view->shards[k].node == node->id;
            server->dead = !node->alive;
            server->weight = server->then = node->weight;
        }
        if (node)
            (void)snprintf(server->domain, sizeof server->domain, "%s", node->domain);
        else
            (void)snprintf(server->domain, sizeof server->domain, "host-%zu", i);
    }
    return -1;
}

/* "R=..." of an existing server; its number and what follows. */
static int parse_server(const struct plan *p, const char *option, const char *text, bool value, size_t *rank,
                        const char **rest)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    if (end == text || text[0] < '0' || text[0] > '9' || (value ? *end != '=' || !end[1] : *end != '\0'))
        return args_wrong(VERB, "--%s '%s' is not of the form %s", option, text, value ? "R=VALUE" : "R");
    if (n >= p->servers)
        return args_wrong(VERB, "--%s %s: the servers are 0 to %zu", option, text, p->servers - 1);
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
    for (size_t i = 0; i < o->remove.n && code < 0; i++) {
        code = parse_server(p, "remove", o->remove.item[i], false, &rank, &rest);
        if (code < 0)
            p->server[rank].leaves = true;
    }
    size_t stay = 0;
    for (size_t i = 0; i < p->servers; i++)
        stay += !p->server[i].leaves;
    if (code < 0 && !stay)
        return args_wrong(VERB, "--remove: no server would be left");
    for (size_t i = 0; i < o->weight.n && code < 0; i++) {
        code = parse_server(p, "weight", o->weight.item[i], true, &rank, &rest);
        if (code >= 0)
            break;
        unsigned long long weight = strtoull(rest, &end, 10);
        if (rest[0] < '0' || rest[0] > '9' || *end || weight < 1 || weight > WEIGHT_MAX)
            return args_wrong(VERB, "--weight '%s': a weight is 1 to %d", o->weight.item[i], WEIGHT_MAX);
        p->server[rank].then = (uint32_t)weight;
        if (!p->live || p->server[rank].joins)
            p->server[rank].weight = (uint32_t)weight;
    }
    for (size_t i = 0; i < o->domain.n && code < 0; i++) {
        code = parse_server(p, "domain", o->domain.item[i], true, &rank, &rest);
        if (code < 0 && strlen(rest) >= DOMAIN_MAX)
            return args_wrong(VERB, "--domain: a name of more than %d bytes", DOMAIN_MAX - 1);
        if (code < 0)
            (void)snprintf(p->server[rank].domain, DOMAIN_MAX, "%s", rest);
    }
    p->changes = o->add || o->remove.n || (p->live && o->weight.n);
    return code;
}

static void set_weights(struct plan *p, bool then)
{
    for (size_t i = 0; i < p->shards; i++) {
        const struct server *server = &p->server[p->shard[i].server];
        bool there = then ? !server->leaves : !server->joins;
        p->shard[i].weight = !there ? 0 : then ? server->then : server->weight;
    }
}

static paramo_err plan_place(struct plan *p, const struct view *view)
{
    for (size_t i = 0; i < p->servers; i++)
        p->shards += p->server[i].shards;
    p->shard = calloc(p->shards, sizeof *p->shard);
    p->index = calloc(p->shards, sizeof *p->index);
    p->now = calloc(2, sizeof *p->now);
    if (!p->shard || !p->index || !p->now)
        return err_memory(p->shards * sizeof *p->shard);
    p->then = p->now + 1;
    size_t at = 0;
    for (size_t i = 0; i < p->servers; i++)
        for (uint32_t k = 0; k < p->server[i].shards; k++, at++) {
            p->shard[at] = (struct ring_shard){.server = (uint32_t)i, .domain = p->server[i].domain};
            p->index[at] = (uint16_t)k;
        }
    paramo_err err = PARAMO_OK;
    if (view) {
        *p->now = view->chains;
        p->replicas = view->chains.replicas;
        ring_measure(p->shard, p->now);
    } else {
        set_weights(p, false);
        err = ring_place(p->shard, p->shards, p->replicas, NULL, p->now);
    }
    if (!err && p->changes) {
        set_weights(p, true);
        err = ring_place(p->shard, p->shards, p->replicas, p->now, p->then);
    }
    return err;
}

/* ---- what a shard has ---------------------------------------------------------------------------------- */

struct portion {
    uint32_t owns, holds, runs;
    double due; /* of all partitions */
};

static struct portion portion_of(const struct plan *p, const struct ring_chains *c, size_t shard)
{
    struct portion portion = {0};
    double total = 0;
    for (size_t i = 0; i < p->shards; i++)
        total += p->shard[i].weight;
    portion.due = total > 0 ? p->shard[shard].weight / total : 0;
    for (unsigned l = 0; l <= p->replicas; l++)
        for (size_t a = 0; a < RING_PARTITIONS; a++) {
            bool has = c->level[l].owner[a] == shard;
            portion.holds += has;
            portion.owns += has && !l;
            portion.runs += has && !l && (!a || c->level[l].owner[a - 1] != shard);
        }
    return portion;
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
    return shard == RING_NONE ? '-' : shard < sizeof symbols - 1 ? symbols[shard] : '*';
}

/* The shard that has most of the column's partitions. */
static char symbol_at(const struct ring *ring, size_t column)
{
    const uint16_t *owner = ring->owner + column * (RING_PARTITIONS / COLUMNS);
    size_t best = 0, most = 0;
    for (size_t i = 0; i < RING_PARTITIONS / COLUMNS; i++) {
        size_t count = 0;
        for (size_t k = i; k < RING_PARTITIONS / COLUMNS; k++)
            count += owner[k] == owner[i];
        if (count > most) {
            most = count;
            best = i;
        }
    }
    return symbol_of(owner[best]);
}

static void draw(const struct plan *p, const struct ring_chains *c)
{
    for (unsigned l = 0; l <= p->replicas; l++) {
        char row[COLUMNS + 1];
        for (size_t i = 0; i < COLUMNS; i++)
            row[i] = symbol_at(&c->level[l], i);
        row[COLUMNS] = '\0';
        if (l)
            (void)printf("replica %u |%s|\n", l, row);
        else
            (void)printf("owner     |%s|  %d partitions, %d to a sign\n", row, RING_PARTITIONS,
                         RING_PARTITIONS / COLUMNS);
    }
}

static void print_shares(const struct plan *p, const struct ring_chains *c, bool then)
{
    (void)printf("\nsign server  domain            weight   owns    share      due  runs%s\n",
                 p->replicas ? "   holds    share" : "");
    uint32_t unowned = 0;
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        unowned += c->level[0].owner[a] == RING_NONE;
    for (size_t i = 0; i < p->shards; i++) {
        const struct server *server = &p->server[p->shard[i].server];
        if (server->joins && !then)
            continue;
        struct portion portion = portion_of(p, c, i);
        char name[24];
        name_shard(p, i, name);
        (void)printf("%-4c %-7s %-16s %7" PRIu32 "  %5" PRIu32 "  %5.2f %%  %5.2f %%  %4" PRIu32,
                     symbol_of(i), name, server->domain, then ? server->then : server->weight, portion.owns,
                     100.0 * portion.owns / RING_PARTITIONS, 100 * portion.due, portion.runs);
        if (p->replicas)
            (void)printf("   %5" PRIu32 "  %5.2f %%", portion.holds,
                         100.0 * portion.holds / ((c->present + 1) * RING_PARTITIONS));
        (void)printf("%s\n", state_of(server, then));
    }
    if (unowned)
        (void)printf("%-4c none   %41" PRIu32 "  %5.2f %%\n", '-', unowned,
                     100.0 * unowned / RING_PARTITIONS);
}

static void print_part(const char *what, uint32_t transfers, uint32_t least, double all)
{
    (void)printf("%s %" PRIu32 " partitions, %.2f %% of all; least possible %" PRIu32, what, transfers,
                 100 * transfers / all, least);
    if (least)
        (void)printf(", %.3f times that", (double)transfers / least);
    (void)printf("\n");
}

static void print_plan(struct plan *p, const struct ring_transfers *transfers)
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
    print_part("other owner:", transfers->owners, transfers->owners_least, RING_PARTITIONS);
    print_part("rows travel:", transfers->copies, transfers->copies_least,
               (double)RING_PARTITIONS * (p->then->present + 1));
}

/* ---- as JSON ------------------------------------------------------------------------------------------- */

static json_t *json_shards(struct plan *p, const struct ring_chains *c, bool then)
{
    json_t *list = json_array();
    set_weights(p, then);
    for (size_t i = 0; i < p->shards; i++) {
        const struct server *server = &p->server[p->shard[i].server];
        if (server->joins && !then)
            continue;
        struct portion portion = portion_of(p, c, i);
        (void)json_array_append_new(
            list,
            json_pack("{s:i, s:i, s:i, s:s, s:i, s:b, s:i, s:f, s:i, s:i}", "number", (int)i, "server",
                      (int)p->shard[i].server, "shard", (int)p->index[i], "domain", server->domain, "weight",
                      (int)p->shard[i].weight, "dead", (int)server->dead, "owns", (int)portion.owns, "due",
                      portion.due * RING_PARTITIONS, "holds", (int)portion.holds, "runs", (int)portion.runs));
    }
    return list;
}

static json_t *json_holder(uint16_t shard)
{
    return shard == RING_NONE ? json_null() : json_integer(shard);
}

static json_t *json_ring(struct plan *p, const struct ring_chains *c, bool then)
{
    json_t *runs = json_array();
    for (size_t a = 0, end; a < RING_PARTITIONS; a = end) {
        bool same = true;
        for (end = a + 1; end < RING_PARTITIONS; end++) {
            for (unsigned l = 0; l <= p->replicas; l++)
                same &= c->level[l].owner[end] == c->level[l].owner[a];
            if (!same)
                break;
        }
        json_t *replicas = json_array();
        for (unsigned l = 1; l <= p->replicas; l++)
            (void)json_array_append_new(replicas, json_holder(c->level[l].owner[a]));
        (void)json_array_append_new(runs, json_pack("{s:i, s:i, s:o, s:o}", "first", (int)a, "partitions",
                                                    (int)(end - a), "owner",
                                                    json_holder(c->level[0].owner[a]), "replicas", replicas));
    }
    return json_pack("{s:i, s:i, s:o, s:o}", "apart", (int)c->apart, "present", (int)c->present, "shards",
                     json_shards(p, c, then), "runs", runs);
}

static int print_json(struct plan *p, const struct ring_transfers *transfers)
{
    json_t *root = json_pack("{s:i, s:i, s:o}", "partitions", (int)RING_PARTITIONS, "replicas",
                             (int)p->replicas, "now", json_ring(p, p->now, false));
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
    int wrong = root ? json_dumpf(root, stdout, JSON_INDENT(1)) : -1;
    json_decref(root);
    if (wrong)
        return code_fail(VERB, PARAMO_E_MEMORY, "the report could not be written");
    (void)printf("\n");
    return CODE_DONE;
}

/* ---- the verb ------------------------------------------------------------------------------------------ */

static int show(const struct options *o)
{
    char secret[TOKEN_BYTES];
    struct plan p = {.replicas = (unsigned)o->replicas, .live = o->where.scheduler != NULL};
    struct view *view = NULL;
    struct ring_transfers transfers = {0};
    int code = -1;
    if (p.live) {
        struct admin_request see = {.wait_s = o->wait};
        code = admin_request_target(VERB, &o->where, secret, &see);
        if (code >= 0)
            return code;
        paramo_err err = admin_request_run(&see);
        view = see.view;
        code = err ? failed(err) : -1;
        p.view = view ? view->number : 0;
    }
    if (code < 0)
        code = plan_servers(&p, o, view);
    if (code < 0)
        code = plan_changes(&p, o);
    if (code < 0) {
        paramo_err err = plan_place(&p, view);
        if (!err && p.changes)
            err = ring_compare(p.now, p.then, &transfers);
        if (err)
            code = failed(err);
    }
    if (code < 0) {
        char text[256];
        if (!p.live && ring_warning(p.changes ? p.then : p.now, text, sizeof text))
            (void)fprintf(stderr, "paramo " VERB ": warning: %s\n", text);
        code = CODE_DONE;
        if (o->json)
            code = print_json(&p, &transfers);
        else
            print_plan(&p, &transfers);
    }
    view_unref(view);
    free(p.server);
    free(p.shard);
    free(p.index);
    free(p.now);
    return code;
}

static const char usage[] =
    "usage: paramo ring show --servers N [--replicas K] [--add N] [--remove R...] [options]\n"
    "       paramo ring show --scheduler HOST:PORT [--add N] [--remove R...] [options]\n"
    "\n"
    "Draws the ring: which server owns and which ones keep copies of each part of the keys; prints each "
    "one's\n"
    "share beside what is due to it by weight, and what a change would move, beside the least possible. Of "
    "a\n"
    "cluster that is only thought of, or of a live one, which is looked at and not touched.\n";
static const char more[] =
    "Each sign of the drawing stands for the server that has most of 64 partitions. Replicas are kept in "
    "distinct\n"
    "domains; with fewer domains than replicas and owner, the rest is in distinct servers (a warning says "
    "so).\n"
    "\n"
    "  paramo ring show --servers 8 --replicas 2 --add 1\n"
    "  paramo ring show --servers 4 --weight 0=3 --domain 1=rack-a 2=rack-a --replicas 1\n"
    "  paramo ring show --scheduler 10.0.0.1:9000 --remove 2\n"
    "\n" CODE_HELP;

int cmd_ring(int argc, char **argv)
{
    struct options o = {.shards = 1, .wait = 10};
    const struct arg args[] = {
        {.name = "servers",
         .kind = ARG_INT,
         .out = &o.servers,
         .meta = "N",
         .help = "servers of the cluster that is thought of",
         .min = 1,
         .max = SERVERS_MAX,
         .given = &o.servers_given},
        {.name = "shards",
         .kind = ARG_INT,
         .out = &o.shards,
         .meta = "N",
         .help = "shards of each; of those that join (1)",
         .min = 1,
         .max = 256,
         .given = &o.shards_given},
        {.name = "replicas",
         .kind = ARG_INT,
         .out = &o.replicas,
         .meta = "K",
         .help = "copies beside the owner, 0 to 3 (0)",
         .max = RING_REPLICAS_MAX,
         .given = &o.replicas_given},
        ADMIN_ARGS(o.where, "look at this live cluster instead; with commas, at whichever scheduler leads"),
        {.name = "wait",
         .kind = ARG_INT,
         .out = &o.wait,
         .meta = "SECONDS",
         .help = "for its scheduler (10)",
         .min = 1,
         .max = 86400},
        {.name = "the change", .kind = ARG_SECTION},
        {.name = "add",
         .kind = ARG_INT,
         .out = &o.add,
         .meta = "N",
         .help = "so many servers join, with the next numbers",
         .max = SERVERS_MAX},
        {.name = "remove",
         .kind = ARG_LIST,
         .out = &o.remove,
         .meta = "R...",
         .help = "these servers leave or die"},
        {.name = "weight",
         .kind = ARG_LIST,
         .out = &o.weight,
         .meta = "R=W...",
         .help = "the weight of a server's shards (1); in a live\ncluster a change"},
        {.name = "domain",
         .kind = ARG_LIST,
         .out = &o.domain,
         .meta = "R=NAME...",
         .help = "what it fails together with (its host)"},
        {.name = "json", .kind = ARG_FLAG, .out = &o.json, .help = "the report as JSON"},
    };
    const size_t n = sizeof args / sizeof *args;
    if (argc > 1 && argv[1][0] != '-' && strcmp(argv[1], "show") != 0)
        return args_wrong(VERB, "unknown subject '%s': there is 'show'", argv[1]);
    const int named = argc > 1 && argv[1][0] != '-';
    int code = args_parse(VERB, argc - named, argv + named, args, n, usage, more);
    if (code < 0 && !named)
        code = args_wrong(VERB, "what? There is 'show'");
    if (code < 0 && (o.where.scheduler != NULL) == (o.servers_given != 0))
        code = args_wrong(VERB, "either --servers N or --scheduler HOST:PORT is needed");
    if (code < 0 && o.where.scheduler && o.replicas_given)
        code =
            args_wrong(VERB, "--replicas is of a cluster that is thought of: the live one has what it has");
    if (code < 0)
        code = show(&o);
    args_free(args, n);
    return code;
}
