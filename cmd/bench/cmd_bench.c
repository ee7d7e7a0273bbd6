/*
 * paramo bench: measures Paramo's paths, each in turn with the raw limit of this machine. The paths are in files of
 * their own (bench_paths.h). Tests: test/e2e/bench.sh.
 */
#include "cmd/bench/bench_job.h"
#include "cmd/bench/bench_past.h"
#include "cmd/bench/bench_paths.h"
#include "cmd/bench/bench_report.h"
#include "cmd/exitcode.h"
#include "cmd/options.h"
#include "cmd/plots.h"
#include "cmd/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: paramo bench [PATH...] [options]\n"
    "\n"
    "Measures Paramo's paths on this machine, each in turn with its raw limit (a bare socket, a bare table,\n"
    "a plain loop), and shows median and quartiles of both and of their ratio. PATH is any of\n"
    "\n"
    "  dense      push and pull of values of 1 and 16 MiB between processes\n"
    "  latency    one small push, one small pull\n"
    "  rate       small pushes and pulls, 64 in flight\n"
    "  table      a sparse table alone in this process: new and known keys, pauses\n"
    "             while it grows\n"
    "  sparse     new and known keys in batches of 10,000, between processes and\n"
    "             embedded\n"
    "  ranges     push and pull of a range of keys, beside the same with an array of\n"
    "             keys: bytes and rows\n"
    "  parse      libsvm and libffm on one core, beside a search for the line ends\n"
    "  embedded   push of a batch within one process, beside the optimizer alone\n"
    "  memory     bytes per key; memory, descriptors and threads after many requests\n"
    "             and connections\n"
    "  replicate  pushes to a job with one and with two copies of each row, beside\n"
    "             one without\n"
    "  failover   from the death of a server to the first request that its successor\n"
    "             serves\n"
    "  migrate    pushes while a server joins and another is drained, beside the same\n"
    "             undisturbed\n"
    "  checkpoint pushes while a checkpoint is taken, beside the same undisturbed;\n"
    "             what an incremental one writes\n"
    "\n"
    "and all of them if none is named. These take longer, and run only if they are named:\n"
    "\n"
    "  straggler  time to a log-loss under bsp, ssp and asp with one of 4 workers\n"
    "             slowed 2, 5 and 10 times, and the share of the time that workers\n"
    "             wait; two minutes a pair\n"
    "  filters    bytes that training sends with each filter (docs/FILTERS.md),\n"
    "             beside none; log-loss and speed, and bars that they must reach.\n"
    "             It trains on --data, or on rows that it draws\n"
    "  darlin     training with --solver darlin to a given objective, with delays of\n"
    "             0 to 16 steps, beside FTRL\n"
    "\n"
    "Everything runs on loopback with the settings that a program gets by default; those in the environment\n"
    "(PARAMO_*, DMLC_*) are ignored.\n";

static const char more[] =
    "Close other programs: figures of a busy machine are not reliable.\n\n" CODE_HELP "\n"
    "  paramo bench\n"
    "  paramo bench latency --busy 8\n"
    "  paramo bench dense latency --van ucx\n"
    "  paramo bench --json > bench/history/0.1.0.json\n"
    "  paramo bench table --compare bench/history/0.1.0.json\n"
    "  paramo bench memory --count 10000000 --connections 10000\n"
    "  paramo bench filters --data train.ffm --pairs 3\n"
    "  paramo bench --quick --json\n";

static const struct path {
    const char *name;
    int (*run)(const struct bench_settings *s, struct bench_report *r);
    int if_named; /* it runs only if it is named, because it takes minutes */
    int draws;    /* it takes --plot */
    int trains;   /* it takes --data */
} paths[] = {
    {"dense", bench_dense, 0, 0, 0},
    {"latency", bench_latency, 0, 0, 0},
    {"rate", bench_rate, 0, 0, 0},
    {"table", bench_table, 0, 0, 0},
    {"sparse", bench_sparse, 0, 0, 0},
    {"ranges", bench_ranges, 0, 0, 0},
    {"parse", bench_parse, 0, 0, 0},
    {"embedded", bench_embedded, 0, 0, 0},
    {"memory", bench_memory, 0, 0, 0},
    {"replicate", bench_replicate, 0, 0, 0},
    {"failover", bench_failover, 0, 0, 0},
    {"migrate", bench_migrate, 0, 0, 0},
    {"checkpoint", bench_checkpoint, 0, 0, 0},
    {"straggler", bench_straggler, 1, 1, 0},
    {"filters", bench_filters, 1, 0, 1},
    {"darlin", bench_darlin, 1, 0, 0},
};
enum { PATHS = sizeof paths / sizeof *paths };

/* The paths that the words name, a bit each; without words the default paths. -1: the word *wrong is not a path. */
static int named_paths(const struct options *o, const char **wrong)
{
    int named = 0;
    for (int word = 0; word < o->words; word++) {
        size_t i = 0;
        while (i < PATHS && strcmp(o->word[word], paths[i].name) != 0)
            i++;
        *wrong = o->word[word];
        if (i == PATHS)
            return -1;
        named |= 1 << i;
    }
    for (size_t i = 0; i < PATHS && o->words == 0; i++)
        named |= !paths[i].if_named << i;
    return named;
}

/* The options that the named paths take. */
static struct path taken(int named)
{
    struct path all = {0};
    for (size_t i = 0; i < PATHS; i++)
        if (named >> i & 1) {
            all.draws |= paths[i].draws;
            all.trains |= paths[i].trains;
        }
    return all;
}

/* The value of an option, or its default, which depends on --quick. */
static uint64_t number_or(const struct options *o, enum option_id id, uint64_t quick, uint64_t whole)
{
    return option_given(o, id) ? option_number(o, id) : option_flag(o, OPT_QUICK) ? quick : whole;
}

static int run(const struct bench_settings *s, int named, int json, struct bench_report *r)
{
    int code = job_environment(s->van);
    if (code != 0)
        return code;
    report_machine(r);
    if (!json)
        report_print_machine(r);
    for (size_t i = 0; i < PATHS && code == 0; i++) {
        size_t from = r->n;
        if ((named >> i & 1) == 0)
            continue;
        code = paths[i].run(s, r);
        if (code == 0 && !json)
            report_print(r, from);
    }
    if (code == 0 && json && report_print_json(r, (size_t)s->pairs, s->quick) != 0)
        code = code_fail("bench", PARAMO_E_IO, "cannot write the report");
    return code;
}

int cmd_bench(int argc, char **argv)
{
    struct options o;
    int code = options_parse(&o, VERB_BENCH, argc, argv, usage, more);
    if (code >= 0)
        return code;
    const char *wrong = NULL, *compare = option_text(&o, OPT_COMPARE);
    const int named = named_paths(&o, &wrong), json = option_flag(&o, OPT_JSON);
    if (named < 0)
        return options_wrong(&o, "unknown path '%s'", wrong);
    const struct option_list *files = option_list(&o, OPT_BENCH_DATA);
    const struct bench_settings s = {
        .pairs = number_or(&o, OPT_PAIRS, 3, 11),
        .keys = number_or(&o, OPT_KEYS, 200000, 10000000),
        .big = option_flag(&o, OPT_BIG),
        .count = number_or(&o, OPT_COUNT, 20000, 2000000),
        .connections = number_or(&o, OPT_CONNECTIONS, 20, 500),
        .busy = option_number(&o, OPT_BUSY),
        .json = json,
        .quick = option_flag(&o, OPT_QUICK),
        .plot = option_text(&o, OPT_PLOT),
        .van = option_text(&o, OPT_BENCH_VAN),
        .data = files->item,
        .data_count = files->n,
    };
    if (s.data_count > 0 && !taken(named).trains)
        return options_wrong(&o, "--data needs the path 'filters'");
    for (size_t i = 0; i < s.data_count; i++) /* checked before any measurement */
        if (!strpbrk(s.data[i], "*?[") && access(s.data[i], R_OK) != 0) {
            char text[600];
            (void)snprintf(text, sizeof text, "%s: cannot open: %s", s.data[i], strerror(errno));
            return code_fail("bench", PARAMO_E_IO, text);
        }
    if (s.plot && !taken(named).draws)
        return options_wrong(&o, "--plot needs the path 'straggler'");
    if (s.plot && plots_check(s.plot) != PARAMO_OK)
        return code_fail("bench", PARAMO_E_IO, paramo_last_error());
    if (json && compare)
        return options_wrong(&o, "--json and --compare exclude each other");
    struct bench_past *past = NULL; /* read first, so that a wrong file is reported before the benchmark */
    if (compare && (code = past_read(compare, &past)) != 0)
        return code;
    struct bench_report *r = calloc(1, sizeof *r);
    code = !r ? code_fail("bench", PARAMO_E_MEMORY, "out of memory for the report") : run(&s, named, json, r);
    if (code == 0 && past)
        past_print(past, r);
    past_free(past);
    free(r);
    return code;
}
