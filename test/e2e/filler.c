/*
 * A worker of e2e/memory.sh: fills, clears and deletes tables as its standard input says, one command a line.
 *
 *     filler ROWS DIM < COMMANDS
 *
 *     fill TABLE      ROWS rows of DIM values are pushed; TABLE is sparse, dense or var, which is its kind
 *     clear TABLE     all rows go
 *     delete TABLE    the same, by their keys
 *     stat TABLE      nothing is done
 *     end
 *
 * After each it says "COMMAND TABLE ROWS BYTES", as the table's statistics have them.
 * Exit code: 0, 2 usage, 4 an error of Paramo.
 */
#include <inttypes.h>
#include <paramo/paramo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TABLES = 3, BATCH = 4096 };

static const struct kind {
    const char *name;
    paramo_table_kind kind;
} kinds[TABLES] = {{"sparse", PARAMO_TABLE_SPARSE}, {"dense", PARAMO_TABLE_DENSE}, {"var", PARAMO_TABLE_VAR}};

static struct filler {
    paramo_worker *worker;
    paramo_table *table[TABLES];
    size_t rows, dim;
    uint64_t keys[BATCH];
    uint32_t lens[BATCH];
    float *vals; /* BATCH rows */
} f;

static void check(paramo_err err)
{
    if (err != PARAMO_OK) {
        fprintf(stderr, "filler: %s\n", paramo_last_error());
        fflush(stdout);
        _exit(4); /* Paramo's threads go on: nothing can look for leaks beside them */
    }
}

static paramo_table *table_of(unsigned k)
{
    paramo_table_options options;
    if (f.table[k])
        return f.table[k];
    paramo_table_options_init(&options);
    options.kind = kinds[k].kind;
    if (options.kind != PARAMO_TABLE_VAR)
        options.dim = (uint32_t)f.dim;
    if (options.kind == PARAMO_TABLE_DENSE)
        options.rows = f.rows;
    check(paramo_table_open(f.worker, kinds[k].name, &options, &f.table[k]));
    return f.table[k];
}

/* The keys of rows [first, first + n), which lie on all partitions. */
static size_t keys_from(unsigned k, size_t first)
{
    size_t n = f.rows - first < BATCH ? f.rows - first : BATCH;
    for (size_t i = 0; i < n; i++)
        f.keys[i] = kinds[k].kind == PARAMO_TABLE_DENSE ? first + i : (first + i) * (UINT64_MAX / f.rows);
    return n;
}

static void fill(unsigned k)
{
    for (size_t first = 0; first < f.rows; first += BATCH) {
        paramo_kv kv;
        uint64_t ts;
        paramo_kv_init(&kv);
        kv.keys = f.keys;
        kv.n = keys_from(k, first);
        kv.vals = f.vals;
        kv.vals_len = kv.n * f.dim;
        if (kinds[k].kind == PARAMO_TABLE_VAR)
            kv.lens = f.lens;
        check(paramo_push(f.worker, f.table[k], &kv, NULL, &ts));
        check(paramo_wait(f.worker, ts, 0));
    }
}

static void delete_rows(unsigned k)
{
    for (size_t first = 0; first < f.rows; first += BATCH) {
        size_t n = keys_from(k, first);
        check(paramo_table_delete(f.worker, f.table[k], f.keys, n));
    }
}

static void command(const char *line)
{
    char verb[16], name[16];
    unsigned k = 0;
    if (sscanf(line, "%15s %15s", verb, name) != 2)
        exit(2);
    while (k < TABLES && strcmp(kinds[k].name, name) != 0)
        k++;
    if (k == TABLES)
        exit(2);
    paramo_table *table = table_of(k);
    if (strcmp(verb, "fill") == 0)
        fill(k);
    else if (strcmp(verb, "delete") == 0)
        delete_rows(k);
    else if (strcmp(verb, "clear") == 0)
        check(paramo_table_clear(f.worker, table));
    else if (strcmp(verb, "stat") != 0)
        exit(2);
    paramo_table_stats stats = {.size = sizeof stats};
    check(paramo_table_stat(f.worker, table, &stats));
    printf("%s %s %" PRIu64 " %" PRIu64 "\n", verb, name, stats.rows, stats.bytes);
}

int main(int argc, char **argv)
{
    char line[64];
    paramo_config config;
    paramo_node *node;
    f.rows = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
    f.dim = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    f.vals = f.dim && f.dim < 1024 ? calloc(BATCH * f.dim, sizeof *f.vals) : NULL;
    if (!f.rows || !f.vals) {
        fputs("usage: filler ROWS DIM < COMMANDS\n", stderr);
        return 2;
    }
    for (size_t i = 0; i < BATCH * f.dim; i++)
        f.vals[i] = 1;
    for (size_t i = 0; i < BATCH; i++)
        f.lens[i] = (uint32_t)f.dim;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    paramo_config_init(&config);
    check(paramo_config_from_env(&config));
    check(paramo_start(&config, &node));
    check(paramo_worker_open(node, 0, &f.worker));
    while (fgets(line, sizeof line, stdin) && strcmp(line, "end\n") != 0)
        command(line);
    for (unsigned k = 0; k < TABLES; k++)
        paramo_table_close(f.table[k]);
    paramo_worker_close(f.worker);
    check(paramo_stop(node));
    free(f.vals);
    return 0;
}
