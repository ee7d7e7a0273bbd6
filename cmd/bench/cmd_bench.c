/*
 * paramo bench: Paramo's paths beside what this machine can do at most, measured in turn in one run.
 * The paths are files of their own (bench_paths.h). Tests: test/e2e/bench.sh.
 */
#include "cmd/args.h"
#include "cmd/bench/bench_job.h"
#include "cmd/bench/bench_past.h"
#include "cmd/bench/bench_paths.h"
#include "cmd/bench/bench_report.h"
#include "cmd/exitcode.h"
#include "cmd/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: paramo bench [PATH...] [options]\n"
    "\n"
    "Measures Paramo's paths on this machine, each in turn with its raw limit (a bare socket, a bare table,\n"
    "a plain loop), and shows median and quartiles of both and of their ratio. PATH is any of\n"
    "\n"
    "  dense      push and pull of values of 1 and 16 MiB between processes\n"
    "  latency    one small push, one small pull\n"
    "  rate       small pushes and pulls, 64 in flight\n"
    "  table      a sparse table alone in this process: new and known keys, pauses while it grows\n"
    "  sparse     new and known keys in batches of 10,000, between processes and embedded\n"
    "  embedded   push of a batch within one process, beside the optimizer alone\n"
    "  memory     bytes per key; memory, descriptors and threads after many requests and connections\n"
    "  replicate  pushes to a job with one and with two copies of each row, beside one without\n"
    "  failover   from the death of a server to the first request that its successor serves\n"
    "  migrate    pushes while a server joins and another is drained, beside the same undisturbed\n"
    "  checkpoint pushes while a checkpoint is taken, beside the same undisturbed; what one of changes "
    "writes\n"
    "\n"
    "and all of them if none is named. Everything runs on loopback with the settings that a program gets by\n"
    "default; those in the environment (PARAMO_*, DMLC_*) are ignored.\n";

static const char more[] =
    "Close other programs: figures of a busy machine are not reliable.\n" CODE_HELP "\n"
    "  paramo bench\n"
    "  paramo bench latency --busy 8\n"
    "  paramo bench dense latency --van ucx\n"
    "  paramo bench --json > bench/history/0.1.0.json\n"
    "  paramo bench table --compare bench/history/0.1.0.json\n"
    "  paramo bench memory --count 10000000 --connections 10000\n"
    "  paramo bench --quick --json\n";

static const struct {
    const char *name;
    int (*run)(const struct bench_settings *s, struct bench_report *r);
} paths[] = {
    {"dense", bench_dense},     {"latency", bench_latency},       {"rate", bench_rate},
    {"table", bench_table},     {"sparse", bench_sparse},         {"embedded", bench_embedded},
    {"memory", bench_memory},   {"replicate", bench_replicate},   {"failover", bench_failover},
    {"migrate", bench_migrate}, {"checkpoint", bench_checkpoint},
};
enum { PATHS = sizeof paths / sizeof *paths };

/* Which of the leading words are paths: a bit each. -1: one is none. */
static int named_paths(int argc, char **argv, int *words)
{
    int named = 0;
    for (*words = 0; *words + 1 < argc && argv[*words + 1][0] != '-'; ++*words) {
        size_t i = 0;
        while (i < PATHS && strcmp(argv[*words + 1], paths[i].name) != 0)
            i++;
        if (i == PATHS)
            return -1;
        named |= 1 << i;
    }
    return named != 0 ? named : (1 << PATHS) - 1;
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
    struct bench_settings s = {.pairs = 11, .van = "tcp"};
    const char *compare = NULL;
    int json = 0, given_pairs = 0, given_keys = 0, given_count = 0, given_connections = 0, words;
    const struct arg args[] = {
        {.name = "quick",
         .kind = ARG_FLAG,
         .out = &s.quick,
         .help = "small samples, three pairs: rough figures in seconds"},
        {.name = "pairs",
         .kind = ARG_INT,
         .out = &s.pairs,
         .meta = "N",
         .help = "samples of each figure, in turn with its raw limit (11; quick: 3)",
         .min = 1,
         .max = BENCH_PAIRS_MAX,
         .given = &given_pairs},
        {.name = "keys",
         .kind = ARG_INT,
         .out = &s.keys,
         .meta = "N",
         .help = "table, sparse, memory: keys in the table (10000000; quick: 200000); migrate,\n"
                 "checkpoint: at most a million of them",
         .min = 10000,
         .max = 1000000000,
         .given = &given_keys},
        {.name = "big",
         .kind = ARG_FLAG,
         .out = &s.big,
         .help = "table: 100 M keys as well (7 GB of memory)"},
        {.name = "count",
         .kind = ARG_INT,
         .out = &s.count,
         .meta = "N",
         .help = "memory: small pushes (2000000; quick: 20000)",
         .min = 1,
         .max = UINT64_MAX,
         .given = &given_count},
        {.name = "connections",
         .kind = ARG_INT,
         .out = &s.connections,
         .meta = "N",
         .help = "memory: workers opened and closed (500; quick: 20)",
         .min = 1,
         .max = 1000000,
         .given = &given_connections},
        {.name = "busy",
         .kind = ARG_INT,
         .out = &s.busy,
         .meta = "N",
         .help = "latency: processes that keep the cores busy (0)",
         .max = 64},
        {.name = "van",
         .kind = ARG_CHOICE,
         .out = &s.van,
         .meta = "tcp|ucx",
         .help = "what goes between processes: sockets, or UCX with shared memory (tcp)"},
        {.name = "json", .kind = ARG_FLAG, .out = &json, .help = "one JSON document instead of the tables"},
        {.name = "compare",
         .kind = ARG_STRING,
         .out = &compare,
         .meta = "FILE",
         .help = "then show ratios against an earlier run's document (bench/history/)"},
    };
    int named = named_paths(argc, argv, &words);
    if (named < 0)
        return args_wrong("bench", "there is no path '%s'", argv[words + 1]);
    int code = args_parse("bench", argc - words, argv + words, args, sizeof args / sizeof *args, usage, more);
    if (code >= 0)
        return code;
    if (!given_pairs && s.quick)
        s.pairs = 3;
    if (!given_keys)
        s.keys = s.quick ? 200000 : 10000000;
    if (!given_count)
        s.count = s.quick ? 20000 : 2000000;
    if (!given_connections)
        s.connections = s.quick ? 20 : 500;

    if (json && compare != NULL)
        return args_wrong("bench", "--json and --compare: one or the other");
    struct bench_past *past = NULL; /* read first: a wrong file costs no benchmark */
    if (compare != NULL && (code = past_read(compare, &past)) != 0)
        return code;
    struct bench_report *r = calloc(1, sizeof *r);
    code = r == NULL ? code_fail("bench", PARAMO_E_MEMORY, "out of memory") : run(&s, named, json, r);
    if (code == 0 && past != NULL)
        past_print(past, r);
    past_free(past);
    free(r);
    return code;
}
