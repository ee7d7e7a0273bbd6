/*
 * paramo status: prints the state of a live cluster, as text or JSON. Tests: test/e2e/status.sh.
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
#include <time.h>

#define VERB "status"

struct row {
    paramo_cluster_node node;
    bool reported;                /* report is set */
    paramo_cluster_report report; /* the sums over all its shards */
    bool counts;                  /* clocks is set */
    paramo_cluster_clocks clocks;
};

struct state {
    paramo_cluster_info info;
    paramo_cluster_status status;
    struct row *row; /* [info.nodes] */
    const paramo_cluster *cluster;
};

static paramo_err state_read(struct state *s, const paramo_cluster *cluster)
{
    s->cluster = cluster;
    s->info.size = sizeof s->info;
    s->status.size = sizeof s->status;
    paramo_err err = paramo_cluster_info_get(cluster, &s->info);
    if (!err)
        err = paramo_cluster_status_get(cluster, &s->status);
    if (err)
        return err;
    s->row = calloc(s->info.nodes + 1u, sizeof *s->row);
    if (!s->row)
        return PARAMO_E_MEMORY;
    for (uint32_t i = 0; i < s->info.nodes && !err; i++) {
        struct row *row = &s->row[i];
        row->node.size = sizeof row->node;
        row->report.size = sizeof row->report;
        err = paramo_cluster_node_get(cluster, i, &row->node);
        row->clocks.size = sizeof row->clocks;
        row->counts = !paramo_cluster_clocks_get(cluster, i, &row->clocks);
        row->reported = !paramo_cluster_report_get(cluster, i, PARAMO_ALL_SHARDS, &row->report);
    }
    return err;
}

/* ---- words --------------------------------------------------------------------------------------------- */

enum { ADDRESS_BYTES = 300, NAME_BYTES = 24 };

static const char *role_name(const paramo_cluster_node *node)
{
    return node->role == PARAMO_ROLE_SCHEDULER ? "scheduler"
           : node->role == PARAMO_ROLE_SERVER  ? "server"
                                               : "worker";
}

static void node_name(const paramo_cluster_node *node, char text[NAME_BYTES])
{
    if (node->role == PARAMO_ROLE_SCHEDULER)
        (void)snprintf(text, NAME_BYTES, "scheduler");
    else
        (void)snprintf(text, NAME_BYTES, "%s %" PRIu32, role_name(node), node->rank);
}

static const char *state_name(const paramo_cluster_node *node)
{
    static const char *const names[] = {[PARAMO_NODE_JOINED] = "joined",
                                        [PARAMO_NODE_ABSENT] = "absent",
                                        [PARAMO_NODE_DEAD] = "dead",
                                        [PARAMO_NODE_LEFT] = "left",
                                        [PARAMO_NODE_DRAINING] = "draining"};
    return names[node->state];
}

static void address_of(const paramo_cluster_node *node, char text[ADDRESS_BYTES])
{
    text[0] = '\0';
    if (node->host[0] && node->port)
        (void)snprintf(text, ADDRESS_BYTES, "%s:%u", node->host, (unsigned)node->port);
    else if (node->host[0])
        (void)snprintf(text, ADDRESS_BYTES, "%s", node->host);
}

static uint32_t rank_of(const struct state *s, uint32_t id)
{
    for (uint32_t i = 0; i < s->info.nodes; i++)
        if (s->row[i].node.id == id)
            return s->row[i].node.rank;
    return 0;
}

/* Finds the next migration from index *at on whose source and target are both known. */
static bool next_migration(const struct state *s, uint32_t *at, paramo_cluster_migration *migration)
{
    migration->size = sizeof *migration;
    while (*at < s->status.migrations)
        if (!paramo_cluster_migration_get(s->cluster, (*at)++, migration) && migration->source_id &&
            migration->target_id)
            return true;
    return false;
}

static const char *migration_name(unsigned state)
{
    static const char *const names[] = {"", "planned", "copying", "full", "paused"};
    return names[state <= 4 ? state : 0];
}

static const char *checkpoint_name(paramo_checkpoint_activity now)
{
    return now == PARAMO_CHECKPOINT_SAVING ? "saving" : now == PARAMO_CHECKPOINT_LOADING ? "loading" : "none";
}

static double ms(uint64_t us)
{
    return (double)us / 1000;
}

/* ---- as text ------------------------------------------------------------------------------------------- */

static void print_nodes(const struct state *s)
{
    char address[ADDRESS_BYTES];
    (void)printf("\nnode          name             address                 state         heard  shards\n");
    for (uint32_t i = 0; i < s->info.nodes; i++) {
        const paramo_cluster_node *node = &s->row[i].node;
        char name[NAME_BYTES];
        address_of(node, address);
        node_name(node, name);
        (void)printf("%-13s %-16s %-23s %-9s", name, node->name, address, state_name(node));
        if (node->heard_ms != PARAMO_NEVER && node->state != PARAMO_NODE_DEAD &&
            node->state != PARAMO_NODE_LEFT)
            (void)printf(" %7.1f s", (double)node->heard_ms / 1000);
        else
            (void)printf(" %9s", "");
        if (node->role == PARAMO_ROLE_SERVER)
            (void)printf(" %7u", (unsigned)node->shards);
        (void)printf("\n");
    }
}

static void print_servers(const struct state *s)
{
    (void)printf(
        "\n                 partitions                                     write pauses, ms                 "
        "applied windows\n"
        "server   owns copies filling       rows        bytes     number  median    99 %% longest  "
        "senders  notes      bytes\n");
    for (uint32_t i = 0; i < s->info.nodes; i++) {
        const paramo_cluster_node *node = &s->row[i].node;
        const paramo_cluster_report *report = &s->row[i].report;
        if (node->role != PARAMO_ROLE_SERVER || !node->alive)
            continue;
        (void)printf("%-6" PRIu32 " %6" PRIu32 " %6" PRIu32 " %7" PRIu32, node->rank, node->owns,
                     node->copies, node->filling);
        if (!s->row[i].reported) {
            (void)printf("  has not reported yet\n");
            continue;
        }
        (void)printf(" %10" PRIu64 " %12" PRIu64 " %10" PRIu64 " %7.1f %7.1f %7.1f", report->rows,
                     report->bytes, report->pauses.count, ms(report->pauses.p50_us),
                     ms(report->pauses.p99_us), ms(report->pauses.max_us));
        (void)printf(" %8" PRIu64 " %6" PRIu64 " %10" PRIu64, report->senders, report->applied_notes,
                     report->applied_bytes);
        if (report->reported_ms > 1000)
            (void)printf("  (%.1f s ago)", (double)report->reported_ms / 1000);
        (void)printf("\n");
    }
}

static void print_clocks(const struct state *s)
{
    uint64_t lowest = UINT64_MAX;
    for (uint32_t i = 0; i < s->info.nodes; i++)
        if (s->row[i].counts && s->row[i].clocks.lowest < lowest)
            lowest = s->row[i].clocks.lowest;
    if (lowest == UINT64_MAX)
        return;
    (void)printf("\nnode          clocks      lowest     highest   waits  longest\n");
    for (uint32_t i = 0; i < s->info.nodes; i++) {
        const struct row *row = &s->row[i];
        char name[NAME_BYTES];
        if (!row->counts)
            continue;
        node_name(&row->node, name);
        (void)printf("%-13s %6" PRIu32 " %11" PRIu64 " %11" PRIu64 " %7" PRIu32, name, row->clocks.workers,
                     row->clocks.lowest, row->clocks.highest, row->clocks.waits);
        if (row->clocks.waits)
            (void)printf(" %6.1f s", (double)row->clocks.waited_ms / 1000);
        else
            (void)printf(" %8s", "");
        (void)printf("%s\n", row->clocks.lowest == lowest ? "  last" : "");
    }
}

static void print_migrations(const struct state *s)
{
    paramo_cluster_migration m;
    for (uint32_t at = 0; next_migration(s, &at, &m);)
        (void)printf("partitions %" PRIu32 " to %" PRIu32 " from server %" PRIu32 " to server %" PRIu32
                     ": %s\n",
                     m.first, m.first + m.partitions - 1, rank_of(s, m.source_id), rank_of(s, m.target_id),
                     migration_name(m.state));
}

static void print_checkpoint(const paramo_cluster_status *m)
{
    char date[32] = "";
    time_t at = (time_t)m->checkpoint_at;
    struct tm tm;
    if (gmtime_r(&at, &tm))
        (void)strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &tm);
    if (m->checkpoint_last)
        (void)printf("checkpoints: the last is %" PRIu64 " in %s, of %s UTC", m->checkpoint_last,
                     m->checkpoint_dir, date);
    else
        (void)printf("checkpoints: this scheduler has taken none");
    (void)printf("%s\n", m->checkpoint == PARAMO_CHECKPOINT_SAVING    ? "; one is being saved"
                         : m->checkpoint == PARAMO_CHECKPOINT_LOADING ? "; one is being loaded"
                                                                      : "");
}

static void print_converged(const paramo_cluster_status *m)
{
    if (m->converged) {
        (void)printf("rebalancing is complete: every key has all its copies\n");
        return;
    }
    (void)printf("not converged, %" PRIu32 " copies missing", m->copies_missing);
    if (m->servers_missing)
        (void)printf(": not enough servers (%" PRIu32 " more needed)", m->servers_missing);
    if (m->copies_absent)
        (void)printf(", %" PRIu32 " of them on servers that are absent", m->copies_absent);
    if (m->restoring)
        (void)printf(", lost rows are being restored");
    (void)printf("; %" PRIu32 " migrations are in progress\n", m->migrations);
}

static void print_text(const struct state *s)
{
    const paramo_cluster_status *m = &s->status;
    (void)printf("job %016" PRIx64 ", view %" PRIu64 ".%" PRIu64 ", %" PRIu32 " replicas: ", s->info.job,
                 s->info.view >> 32, s->info.view & UINT32_MAX, m->replicas);
    print_converged(m);
    print_nodes(s);
    print_servers(s);
    print_clocks(s);
    (void)printf("\n");
    print_migrations(s);
    (void)printf("write pauses, of servers that have left too: %" PRIu64
                 "; median %.1f ms, 99 %% %.1f ms, longest %.1f ms\n",
                 m->pauses.count, ms(m->pauses.p50_us), ms(m->pauses.p99_us), ms(m->pauses.max_us));
    print_checkpoint(m);
}

/* ---- as JSON ------------------------------------------------------------------------------------------- */

static json_t *json_pauses(const paramo_pauses *p)
{
    return json_pack("{s:I, s:f, s:f, s:f}", "count", (json_int_t)p->count, "p50_ms", ms(p->p50_us), "p99_ms",
                     ms(p->p99_us), "max_ms", ms(p->max_us));
}

static json_t *json_server(const struct row *row)
{
    const paramo_cluster_report *report = &row->report;
    json_t *o = json_pack("{s:i, s:i, s:i}", "owns", (int)row->node.owns, "copies", (int)row->node.copies,
                          "filling", (int)row->node.filling);
    if (!o || !row->reported)
        return o;
    (void)json_object_set_new(o, "reported_ms", json_integer(report->reported_ms));
    (void)json_object_set_new(o, "rows", json_integer((json_int_t)report->rows));
    (void)json_object_set_new(o, "bytes", json_integer((json_int_t)report->bytes));
    (void)json_object_set_new(o, "requests", json_integer((json_int_t)report->requests));
    (void)json_object_set_new(o, "repeats", json_integer((json_int_t)report->repeats));
    (void)json_object_set_new(o, "write_pauses", json_pauses(&report->pauses));
    (void)json_object_set_new(o, "applied_windows",
                              json_pack("{s:I, s:I, s:I}", "senders", (json_int_t)report->senders,
                                        "applied_notes", (json_int_t)report->applied_notes, "bytes",
                                        (json_int_t)report->applied_bytes));
    return o;
}

static json_t *json_clocks(const paramo_cluster_clocks *c)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "workers", (json_int_t)c->workers, "lowest",
                     (json_int_t)c->lowest, "highest", (json_int_t)c->highest, "waits", (json_int_t)c->waits,
                     "waited_ms", (json_int_t)c->waited_ms);
}

static json_t *json_nodes(const struct state *s)
{
    json_t *list = json_array();
    char address[ADDRESS_BYTES];
    for (uint32_t i = 0; i < s->info.nodes; i++) {
        const paramo_cluster_node *node = &s->row[i].node;
        address_of(node, address);
        json_t *o = json_pack("{s:i, s:s, s:i, s:s, s:s, s:s, s:i}", "id", (int)node->id, "role",
                              role_name(node), "rank", (int)node->rank, "name", node->name, "address",
                              address, "state", state_name(node), "shards", (int)node->shards);
        if (o && node->heard_ms != PARAMO_NEVER)
            (void)json_object_set_new(o, "heard_ms", json_integer(node->heard_ms));
        if (o && node->role == PARAMO_ROLE_SERVER)
            (void)json_object_set_new(o, "server", json_server(&s->row[i]));
        if (o && s->row[i].counts)
            (void)json_object_set_new(o, "clocks", json_clocks(&s->row[i].clocks));
        (void)json_array_append_new(list, o);
    }
    return list;
}

static json_t *json_migrations(const struct state *s)
{
    json_t *list = json_array();
    paramo_cluster_migration m;
    for (uint32_t at = 0; next_migration(s, &at, &m);)
        (void)json_array_append_new(
            list, json_pack("{s:i, s:i, s:i, s:i, s:s}", "first", (int)m.first, "partitions",
                            (int)m.partitions, "from", (int)rank_of(s, m.source_id), "to",
                            (int)rank_of(s, m.target_id), "state", migration_name(m.state)));
    return list;
}

static int print_json(const struct state *s)
{
    const paramo_cluster_status *m = &s->status;
    char job[17];
    (void)snprintf(job, sizeof job, "%016" PRIx64, s->info.job);
    json_t *root =
        json_pack("{s:s, s:I, s:i, s:b, s:i, s:i, s:i, s:o, s:{s:s, s:I, s:I, s:s}, s:o, s:o}", "job", job,
                  "view", (json_int_t)s->info.view, "replicas", (int)m->replicas, "converged", m->converged,
                  "partitions_lacking", (int)m->partitions_lacking, "copies_missing", (int)m->copies_missing,
                  "servers_missing", (int)m->servers_missing, "write_pauses", json_pauses(&m->pauses),
                  "checkpoint", "now", checkpoint_name(m->checkpoint), "last", (json_int_t)m->checkpoint_last,
                  "at", (json_int_t)m->checkpoint_at, "dir", m->checkpoint_dir, "migrations",
                  json_migrations(s), "nodes", json_nodes(s));
    return admin_json_print(VERB, root, JSON_REAL_PRECISION(6));
}

/* ---- the verb ------------------------------------------------------------------------------------------ */

static int show(const struct options *o)
{
    paramo_admin *admin = NULL;
    paramo_cluster *cluster = NULL;
    struct state s = {0};
    int code = admin_target_open(o, option_number(o, OPT_ADMIN_WAIT), &admin);
    if (code >= 0)
        return code;
    paramo_err err = paramo_admin_status(admin, &cluster);
    if (err)
        code = code_fail(VERB, err, paramo_last_error());
    else if ((err = state_read(&s, cluster)) != PARAMO_OK)
        code = code_fail(VERB, err, paramo_err_text(err));
    else if (option_flag(o, OPT_JSON))
        code = print_json(&s);
    else
        print_text(&s);
    free(s.row);
    paramo_cluster_free(cluster);
    paramo_admin_close(admin);
    return code < 0 ? CODE_DONE : code;
}

static const char usage[] =
    "usage: paramo status --scheduler HOST:PORT [options]\n"
    "\n"
    "Shows the state of a live cluster without changing it: its nodes; for each "
    "server the partitions that it\n"
    "owns, keeps copies of and receives, its rows and their memory, how long writes "
    "were held while partitions\n"
    "migrated, and the memory of its applied windows (its record of applied "
    "requests); for each node with\n"
    "worker clocks (train --consistency) the lowest and the highest, and how long its "
    "waits have lasted;\n"
    "migrations in progress; checkpoints.\n";
static const char more[] =
    "Servers have one second to report. For a server that does not, the last report is shown with its age.\n"
    "Percentiles are at most an eighth too high.\n"
    "'rebalancing is complete: every key has all its copies' (JSON: converged): the owner and all replicas "
    "of\n"
    "each partition are on servers that are registered with this scheduler, and nothing migrates or is\n"
    "restored. Only then may the next server be taken down.\n"
    "'last' marks the nodes with the lowest clock of all, for which the others wait.\n"
    "\n"
    "  paramo status --scheduler 10.0.0.1:9000\n"
    "\n" CODE_HELP;

int cmd_status(int argc, char **argv)
{
    struct options o;
    int code = options_parse(&o, VERB_STATUS, argc, argv, usage, more);
    if (code < 0 && !option_text(&o, OPT_ADMIN_SCHEDULER))
        code = options_wrong(&o, "--scheduler HOST:PORT is missing");
    return code < 0 ? show(&o) : code;
}
