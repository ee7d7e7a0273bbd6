/*
 * A worker for e2e/on_loss.sh: a table whose servers die, with a checkpoint before that.
 *
 *     loser --dir DIR --until FILE
 *
 * Adds 1 to every key, has a checkpoint taken into DIR ("-": none), adds 2, says "ready", and adds 4 again
 * and again until the file appears. Then a key has 3 and all the 4s, or it went back: 1 and the 4s since,
 * which are as many for all that went back, but for one that was under way. Says how many there are of each.
 * All keys are read after each 4: a key has one more of them than when it was read before, or it went back in between.
 * Exit code: 0 nothing else is there, 1 something is, 2 usage, 4 an error of Paramo.
 */
#include <getopt.h>
#include <paramo/paramo.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEYS = 4096 };

static uint64_t keys[KEYS];
static float vals[KEYS];

static void check(paramo_err err)
{
    if (err != PARAMO_OK) {
        fprintf(stderr, "loser: %s\n", paramo_last_error());
        fflush(stdout);
        _exit(4); /* Paramo's threads still run: a leak check is not possible */
    }
}

static void all(paramo_worker *worker, paramo_table *table, float add)
{
    paramo_kv kv;
    uint64_t ts;
    paramo_kv_init(&kv);
    kv.keys = keys;
    kv.n = kv.vals_len = KEYS;
    kv.vals = vals;
    for (size_t i = 0; i < KEYS && add > 0; i++)
        vals[i] = add;
    check(add > 0 ? paramo_push(worker, table, &kv, NULL, &ts) : paramo_pull(worker, table, &kv, NULL, &ts));
    check(paramo_wait(worker, ts, 0));
}

static unsigned wrong;
static unsigned long long reads;

/* Reads all after the fours-th 4, and compares with what was read before. */
static void read_and_compare(paramo_worker *worker, paramo_table *table, unsigned fours)
{
    static float before[KEYS];
    all(worker, table, 0);
    for (size_t i = 0; i < KEYS; i++, reads++) {
        float now = vals[i], expected = fours == 1 ? 7 : before[i] + 4;
        float back = (now - 1) / 4;
        bool went = now < expected && back >= 0 && back == (float)(unsigned)back;
        if (now != expected && !went && wrong++ < 5)
            fprintf(stderr, "loser: after four %u a key is read as %.0f, and was %.0f before\n", fours,
                    (double)now, (double)expected - 4);
        before[i] = now;
    }
}

static int look(unsigned fours)
{
    unsigned kept = 0, back = 0;
    float least = (float)fours, most = 0;
    for (size_t i = 0; i < KEYS; i++) {
        float four = (vals[i] - 1) / 4;
        bool whole = four >= 0 && four <= (float)fours && four == (float)(unsigned)four;
        if (vals[i] == 3 + 4 * (float)fours) {
            kept++;
        } else if (whole) {
            back++;
            least = four < least ? four : least;
            most = four > most ? four : most;
        } else if (wrong++ < 5) {
            fprintf(stderr, "loser: a key holds %.0f after %u fours\n", (double)vals[i], fours);
        }
    }
    if (back && most > least + 1) {
        fprintf(stderr, "loser: of %u fours some keys have %.0f since, some %.0f\n", fours, (double)least,
                (double)most);
        wrong++;
    }
    printf("{\"kept\": %u, \"back\": %u, \"wrong\": %u, \"fours\": %u, \"reads\": %llu}\n", kept, back, wrong,
           fours, reads);
    return wrong ? 1 : 0;
}

static int work(paramo_node *node, const char *dir, const char *until)
{
    paramo_worker *worker;
    paramo_table *table;
    paramo_table_options options;
    unsigned fours = 0;
    paramo_table_options_init(&options); /* sparse, one float a key, added */
    check(paramo_worker_open(node, 0, &worker));
    check(paramo_table_open(worker, "t", &options, &table));
    for (uint64_t i = 0; i < KEYS; i++)
        keys[i] = i << 52 | i; /* they ascend */
    all(worker, table, 1);
    if (strcmp(dir, "-") != 0)
        check(paramo_checkpoint_save(node, dir, 0, 0, NULL));
    all(worker, table, 2);
    puts("ready");
    while (access(until, F_OK) != 0 || !fours) {
        all(worker, table, 4);
        read_and_compare(worker, table, ++fours);
    }
    all(worker, table, 0);
    paramo_table_close(table);
    paramo_worker_close(worker);
    return look(fours);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"dir", required_argument, NULL, 'd'}, {"until", required_argument, NULL, 'u'}, {0}};
    const char *dir = NULL, *until = NULL;
    for (int opt; (opt = getopt_long(argc, argv, "", options, NULL)) != -1;)
        *(opt == 'd' ? &dir : &until) = optarg;
    if (!dir || !until) {
        fputs("usage: loser --dir DIR --until FILE\n", stderr);
        return 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    paramo_config config;
    paramo_config_init(&config);
    check(paramo_config_from_env(&config));
    paramo_node *node;
    check(paramo_start(&config, &node));
    int code = paramo_node_is(node, PARAMO_ROLE_WORKER) ? work(node, dir, until) : 0;
    check(paramo_stop(node));
    return code;
}
