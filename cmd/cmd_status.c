/*
 * paramo status: how a live cluster is. Like cmd_ring.c it looks inside src/ (scripts/layers). Tests:
 * test/e2e/status.sh.
 */
#include "cmd/admin_request.h"
#include "cmd/args.h"
#include "cmd/exitcode.h"
#include "cmd/verbs.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define VERB "status"

/* A server: what the view says of its shards, and what it says itself, of all of them. */
struct row {
    const struct view_node *node;
    const struct status_node *status; /* NULL: the scheduler that answers has none of it */
    uint32_t owns, copies, filling;   /* partitions */
    struct shard_report sum;
};

struct state {
    const struct view *view;
    const struct status *status;
    struct row *row;          /* of each node of the view */
    uint32_t lacking;         /* partitions, of which some copy is missing */
    uint32_t missing, absent; /* copies; of them, on servers that the scheduler has not heard of */
    uint32_t servers;         /* that may have copies, the absent ones among them */
};

static void add_report(struct shard_report *to, const struct shard_report *from)
{
    to->rows += from->rows;
    to->table_bytes += from->table_bytes;
    to->senders += from->senders;
    to->applied_window_notes += from->applied_window_notes;
    to->applied_window_bytes += from->applied_window_bytes;
    to->requests += from->requests;
    to->repeats += from->repeats;
    spread_join(&to->pauses, &from->pauses);
}

static struct row *row_of(const struct state *s, uint16_t shard)
{
    for (uint32_t i = 0; shard < s->view->shards_count && i < s->view->nodes_count; i++)
        if (s->view->nodes[i].id == s->view->shards[shard].node)
            return &s->row[i];
    return NULL;
}

static bool is_in(const struct row *row, unsigned state)
{
    return row && row->status && row->status->state == state;
}

/* For all copies that the job is to have. */
static uint32_t servers_missing(const struct state *s)
{
    uint32_t needed = 1 + s->status->replicas;
    return s->servers < needed ? needed - s->servers : 0;
}

static void count_partitions(struct state *s)
{
    const struct view *view = s->view;
    for (uint32_t k = 0; k < view->shards_count; k++) {
        struct row *row = row_of(s, (uint16_t)k);
        for (size_t a = 0; row && a < RING_PARTITIONS; a++)
            for (unsigned l = 0; l <= view->chains.replicas; l++)
                if (view->chains.level[l].owner[a] == k)
                    *(l ? &row->copies : &row->owns) += 1;
    }
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        uint32_t before = s->missing;
        for (unsigned l = 0; l <= view->chains.replicas; l++) {
            const struct row *row = row_of(s, view->chains.level[l].owner[a]);
            s->missing += !is_in(row, STATUS_JOINED);
            s->absent += is_in(row, STATUS_ABSENT);
        }
        s->lacking += s->missing > before;
    }
    for (uint32_t i = 0; i < view->nodes_count; i++)
        s->servers += s->row[i].node->role == PARAMO_ROLE_SERVER && s->row[i].node->weight &&
                      (is_in(&s->row[i], STATUS_JOINED) || is_in(&s->row[i], STATUS_ABSENT));
    for (uint32_t i = 0; i < s->status->migrations_count; i++) {
        const struct status_migration *migration = &s->status->migration[i];
        struct row *row = row_of(s, migration->to);
        if (row && !migration->handover)
            row->filling += migration->partitions;
    }
}

static bool state_make(struct state *s)
{
    s->row = calloc(s->view->nodes_count + 1u, sizeof *s->row);
    if (!s->row)
        return false;
    for (uint32_t i = 0; i < s->view->nodes_count; i++) {
        struct row *row = &s->row[i];
        row->node = &s->view->nodes[i];
        for (uint32_t k = 0; k < s->status->nodes_count && !row->status; k++)
            if (s->status->nodes[k].id == row->node->id)
                row->status = &s->status->nodes[k];
        for (uint32_t k = 0; row->status && k < row->status->shards; k++)
            add_report(&row->sum, &row->status->shard[k]);
    }
    count_partitions(s);
    return true;
}

/* ---- words --------------------------------------------------------------------------------------------- */

static const char *role_name(const struct view_node *node)
{
    return node->role == PARAMO_ROLE_SCHEDULER ? "scheduler"
           : node->role == PARAMO_ROLE_SERVER  ? "server"
                                               : "worker";
}

static uint32_t rank_of(const struct view_node *node)
{
    return node->role == PARAMO_ROLE_SCHEDULER ? 0 : (node->id - PARAMO_ID_SERVER(0)) / 2;
}

static const char *state_name(const struct row *row)
{
    static const char *const names[] = {[STATUS_JOINED] = "joined",
                                        [STATUS_ABSENT] = "absent",
                                        [STATUS_DEAD] = "dead",
                                        [STATUS_LEFT] = "left"};
    if (!row->status) /* the scheduler's own process, without a member */
        return row->node->alive ? "joined" : "dead";
    bool there = row->status->state == STATUS_JOINED || row->status->state == STATUS_ABSENT;
    if (there && row->node->role == PARAMO_ROLE_SERVER && !row->node->weight)
        return "draining";
    return names[row->status->state];
}

static void address_of(const struct view_node *node, char text[VIEW_HOST_MAX + 8])
{
    text[0] = '\0';
    if (node->host[0] && node->port)
        (void)snprintf(text, VIEW_HOST_MAX + 8, "%s:%u", node->host, (unsigned)node->port);
    else if (node->host[0])
        (void)snprintf(text, VIEW_HOST_MAX + 8, "%s", node->host);
}

static const char *migration_name(unsigned state)
{
    static const char *const names[] = {"", "planned", "copying", "full", "paused"};
    return names[state <= 4 ? state : 0];
}

static const char *ckpt_name(enum status_ckpt now)
{
    return now == STATUS_SAVING ? "saving" : now == STATUS_LOADING ? "loading" : "none";
}

static double ms(uint64_t us)
{
    return (double)us / 1000;
}

/* ---- as text ------------------------------------------------------------------------------------------- */

static void print_nodes(const struct state *s)
{
    char address[VIEW_HOST_MAX + 8];
    (void)printf("\nnode          name             address                 state         heard  shards\n");
    for (uint32_t i = 0; i < s->view->nodes_count; i++) {
        const struct row *row = &s->row[i];
        char name[24];
        address_of(row->node, address);
        if (row->node->role == PARAMO_ROLE_SCHEDULER)
            (void)snprintf(name, sizeof name, "scheduler");
        else
            (void)snprintf(name, sizeof name, "%s %" PRIu32, role_name(row->node), rank_of(row->node));
        (void)printf("%-13s %-16s %-23s %-9s", name, row->node->name, address, state_name(row));
        if (row->status && row->status->state <= STATUS_ABSENT)
            (void)printf(" %7.1f s", (double)row->status->heard_ms / 1000);
        else
            (void)printf(" %9s", "");
        if (row->node->role == PARAMO_ROLE_SERVER)
            (void)printf(" %7u", (unsigned)row->node->shards);
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
    for (uint32_t i = 0; i < s->view->nodes_count; i++) {
        const struct row *row = &s->row[i];
        const struct shard_report *sum = &row->sum;
        if (row->node->role != PARAMO_ROLE_SERVER || !row->node->alive)
            continue;
        (void)printf("%-6" PRIu32 " %6" PRIu32 " %6" PRIu32 " %7" PRIu32, rank_of(row->node), row->owns,
                     row->copies, row->filling);
        if (!row->status || !row->status->shards) {
            (void)printf("  has not reported yet\n");
            continue;
        }
        (void)printf(" %10" PRIu64 " %12" PRIu64 " %10" PRIu64 " %7.1f %7.1f %7.1f", sum->rows,
                     sum->table_bytes, sum->pauses.count, ms(spread_quantile(&sum->pauses, 0.5)),
                     ms(spread_quantile(&sum->pauses, 0.99)), ms(sum->pauses.max));
        (void)printf(" %8" PRIu64 " %6" PRIu64 " %10" PRIu64, sum->senders, sum->applied_window_notes,
                     sum->applied_window_bytes);
        if (row->status->reported_ms > 1000)
            (void)printf("  (%.1f s ago)", (double)row->status->reported_ms / 1000);
        (void)printf("\n");
    }
}

static void print_migrations(const struct state *s)
{
    for (uint32_t i = 0; i < s->status->migrations_count; i++) {
        const struct status_migration *migration = &s->status->migration[i];
        const struct row *from = row_of(s, migration->from), *to = row_of(s, migration->to);
        if (!from || !to)
            continue;
        (void)printf("partitions %u to %u from server %" PRIu32 " to server %" PRIu32 ": %s\n",
                     (unsigned)migration->first, (unsigned)migration->first + migration->partitions - 1,
                     rank_of(from->node), rank_of(to->node), migration_name(migration->state));
    }
}

static void print_ckpt(const struct status *m)
{
    char date[32] = "";
    time_t at = (time_t)m->ckpt.at;
    struct tm tm;
    if (gmtime_r(&at, &tm))
        (void)strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &tm);
    if (m->ckpt.last)
        (void)printf("checkpoints: the last is %" PRIu64 " in %s, of %s UTC", m->ckpt.last, m->ckpt.dir,
                     date);
    else
        (void)printf("checkpoints: this scheduler has taken none");
    (void)printf("%s\n", m->ckpt.now == STATUS_SAVING    ? "; one is being taken"
                         : m->ckpt.now == STATUS_LOADING ? "; one is being loaded"
                                                         : "");
}

static void print_converged(const struct state *s)
{
    const struct status *m = s->status;
    if (m->converged) {
        (void)printf("rebalancing is complete: every key has all its copies\n");
        return;
    }
    (void)printf("not converged, %" PRIu32 " copies missing", s->missing);
    if (servers_missing(s))
        (void)printf(": not enough servers (%" PRIu32 " more needed)", servers_missing(s));
    if (s->absent)
        (void)printf(", %" PRIu32 " of them on servers that are absent", s->absent);
    if (s->view->lost_at)
        (void)printf(", lost rows are being restored");
    (void)printf("; %" PRIu32 " migrations are in progress\n", m->migrations_count);
}

static void print_text(const struct state *s)
{
    const struct status *m = s->status;
    (void)printf("job %016" PRIx64 ", view %" PRIu64 ".%" PRIu64 ", %" PRIu32 " replicas: ", s->view->job,
                 s->view->number >> 32, s->view->number & UINT32_MAX, m->replicas);
    print_converged(s);
    print_nodes(s);
    print_servers(s);
    (void)printf("\n");
    print_migrations(s);
    (void)printf("write pauses, of servers that have left too: %" PRIu64
                 "; median %.1f ms, 99 %% %.1f ms, longest %.1f ms\n",
                 m->pauses.count, ms(spread_quantile(&m->pauses, 0.5)), ms(spread_quantile(&m->pauses, 0.99)),
                 ms(m->pauses.max));
    print_ckpt(m);
}

/* ---- as JSON ------------------------------------------------------------------------------------------- */

static json_t *json_pauses(const struct spread *p)
{
    return json_pack("{s:I, s:f, s:f, s:f}", "count", (json_int_t)p->count, "p50_ms",
                     ms(spread_quantile(p, 0.5)), "p99_ms", ms(spread_quantile(p, 0.99)), "max_ms",
                     ms(p->max));
}

static json_t *json_server(const struct row *row)
{
    const struct shard_report *sum = &row->sum;
    json_t *o = json_pack("{s:i, s:i, s:i}", "owns", (int)row->owns, "copies", (int)row->copies, "filling",
                          (int)row->filling);
    if (!o || !row->status || !row->status->shards)
        return o;
    (void)json_object_set_new(o, "reported_ms", json_integer(row->status->reported_ms));
    (void)json_object_set_new(o, "rows", json_integer((json_int_t)sum->rows));
    (void)json_object_set_new(o, "bytes", json_integer((json_int_t)sum->table_bytes));
    (void)json_object_set_new(o, "requests", json_integer((json_int_t)sum->requests));
    (void)json_object_set_new(o, "repeats", json_integer((json_int_t)sum->repeats));
    (void)json_object_set_new(o, "write_pauses", json_pauses(&sum->pauses));
    (void)json_object_set_new(o, "applied_windows",
                              json_pack("{s:I, s:I, s:I}", "senders", (json_int_t)sum->senders,
                                        "applied_notes", (json_int_t)sum->applied_window_notes, "bytes",
                                        (json_int_t)sum->applied_window_bytes));
    return o;
}

static json_t *json_nodes(const struct state *s)
{
    json_t *list = json_array();
    char address[VIEW_HOST_MAX + 8];
    for (uint32_t i = 0; i < s->view->nodes_count; i++) {
        const struct row *row = &s->row[i];
        address_of(row->node, address);
        json_t *o = json_pack("{s:i, s:s, s:i, s:s, s:s, s:s, s:i}", "id", (int)row->node->id, "role",
                              role_name(row->node), "rank", (int)rank_of(row->node), "name", row->node->name,
                              "address", address, "state", state_name(row), "shards", (int)row->node->shards);
        if (o && row->status)
            (void)json_object_set_new(o, "heard_ms", json_integer(row->status->heard_ms));
        if (o && row->node->role == PARAMO_ROLE_SERVER)
            (void)json_object_set_new(o, "server", json_server(row));
        (void)json_array_append_new(list, o);
    }
    return list;
}

static json_t *json_migrations(const struct state *s)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->status->migrations_count; i++) {
        const struct status_migration *migration = &s->status->migration[i];
        const struct row *from = row_of(s, migration->from), *to = row_of(s, migration->to);
        if (from && to)
            (void)json_array_append_new(
                list, json_pack("{s:i, s:i, s:i, s:i, s:s}", "first", (int)migration->first, "partitions",
                                (int)migration->partitions, "from", (int)rank_of(from->node), "to",
                                (int)rank_of(to->node), "state", migration_name(migration->state)));
    }
    return list;
}

static int print_json(const struct state *s)
{
    const struct status *m = s->status;
    char job[17];
    (void)snprintf(job, sizeof job, "%016" PRIx64, s->view->job);
    json_t *root = json_pack(
        "{s:s, s:I, s:i, s:b, s:i, s:i, s:i, s:o, s:{s:s, s:I, s:I, s:s}, s:o, s:o}", "job", job, "view",
        (json_int_t)s->view->number, "replicas", (int)m->replicas, "converged", (int)m->converged,
        "partitions_lacking", (int)s->lacking, "copies_missing", (int)s->missing, "servers_missing",
        (int)servers_missing(s), "write_pauses", json_pauses(&m->pauses), "checkpoint", "now",
        ckpt_name(m->ckpt.now), "last", (json_int_t)m->ckpt.last, "at", (json_int_t)m->ckpt.at, "dir",
        m->ckpt.dir, "migrations", json_migrations(s), "nodes", json_nodes(s));
    int wrong = root ? json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) : -1;
    json_decref(root);
    if (wrong)
        return code_fail(VERB, PARAMO_E_MEMORY, "the report could not be written");
    (void)printf("\n");
    return CODE_DONE;
}

/* ---- the verb ------------------------------------------------------------------------------------------ */

static int show(const struct admin_target *where, uint64_t wait, int json)
{
    char secret[TOKEN_BYTES];
    struct admin_request see = {.wait_s = wait, .want_status = true};
    int code = admin_request_target(VERB, where, secret, &see);
    if (code >= 0)
        return code;
    paramo_err err = admin_request_run(&see);
    if (err)
        return code_fail(VERB, err, err_text());
    struct state s = {.view = see.view, .status = see.status};
    if (!state_make(&s)) {
        code = code_fail(VERB, PARAMO_E_MEMORY, "out of memory");
    } else if (json) {
        code = print_json(&s);
    } else {
        print_text(&s);
        code = CODE_DONE;
    }
    free(s.row);
    status_fini(see.status);
    free(see.status);
    view_unref(see.view);
    return code;
}

static const char usage[] =
    "usage: paramo status --scheduler HOST:PORT [options]\n"
    "\n"
    "How a live cluster is, which is looked at and not touched: its nodes; of each server the partitions "
    "that it "
    "owns,\n"
    "keeps copies of and is being filled with, its rows and their memory, for how long writes were held "
    "when\n"
    "partitions moved, and the memory of its applied windows (what it knows of requests that were done); "
    "moves that "
    "are\n"
    "under way; checkpoints.\n";
static const char more[] =
    "Servers are asked and have a second for it; of one that does not answer its last answer is shown.\n"
    "Percentiles are at most an eighth too high.\n"
    "'rebalancing is complete: every key has all its copies' (converged): each partition has its owner and "
    "its "
    "replicas on\n"
    "servers that are registered with this scheduler now, and nothing moves or is restored. Only then may "
    "the next\n"
    "server be taken down.\n"
    "\n"
    "  paramo status --scheduler 10.0.0.1:9000\n"
    "\n" CODE_HELP;

int cmd_status(int argc, char **argv)
{
    struct admin_target where = {0};
    uint64_t wait = 10;
    int json = 0;
    const struct arg args[] = {
        ADMIN_ARGS(where, "the job's; with commas, of whichever leads"),
        {.name = "wait",
         .kind = ARG_INT,
         .out = &wait,
         .meta = "SECONDS",
         .help = "for its scheduler (10)",
         .min = 1,
         .max = 86400},
        {.name = "json", .kind = ARG_FLAG, .out = &json, .help = "the report as JSON"},
    };
    const size_t n = sizeof args / sizeof *args;
    if (argc > 1 && argv[1][0] != '-')
        return args_wrong(VERB, "'%s' is too much: it has options only", argv[1]);
    int code = args_parse(VERB, argc, argv, args, n, usage, more);
    if (code < 0 && !where.scheduler)
        code = args_wrong(VERB, "--scheduler HOST:PORT is needed");
    if (code < 0)
        code = show(&where, wait, json);
    args_free(args, n);
    return code;
}
