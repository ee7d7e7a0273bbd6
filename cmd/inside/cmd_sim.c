/*
 * paramo sim: plays schedules of the simulator (sim/), in several processes. It writes a failing schedule to a file and
 * prints the command that replays it. Tests: test/e2e/cli.sh, scripts/sim.
 */
#include "cmd/exitcode.h"
#include "cmd/options.h"
#include "cmd/verbs.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "sim/play.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define VERB "sim"

enum {
    FAULTS_BAR = 50,
    BELOW_BAR = 200,  /* at most one schedule in 200 may have fewer; 5 of 5,000 had when this was chosen */
    PUSHES_BAR = 300, /* acknowledged; half of the schedules must have as many */
    CHANGES_BAR = 70, /* percent of schedules in which partitions with rows change their owner */
    PUSHES_MAX = 4096,
    COVER_LEAST = 1000, /* schedules */
    /* A transition that is expected in this many schedules must happen: by chance it is missing with e^-20. */
    COVER_EXPECTED = 20,
    SHRINK_PLAYS = 600,
    TEXT_MAX = 1 << 20,
    MEMORY_MAPPED = 32 << 20, /* the greatest threshold that glibc accepts */
    MEMORY_KEPT = 1 << 30,
    MEMORY_PIECE = 16 << 20,
    FAILURES_MAX = 64
};

/* A line of a file of seeds: a seed that failed once, and the cause. */
struct known_seed {
    uint64_t seed;
    char words[200];
};

struct sim_options {
    uint64_t seeds, seed, jobs;
    const char *replay, *from, *cover_bar;
    struct known_seed *known; /* from the file `from`; `seeds` of them */
    int shrink, json, go_on, bars, coverage;
};

struct failure {
    uint64_t seed;
    char text[512];
};

/* How often a transition or a pair happened, and in how many schedules. */
struct times {
    uint64_t all, schedules;
};

/* The results of a job (a process), in memory that parent and child share, so that a crash of the child loses none. */
struct tally {
    uint64_t seed;          /* being played */
    struct play_result now; /* its result so far */
    uint64_t played, again, steps, sim_ns, requests;
    uint64_t trace; /* of all schedules: the sum over hashes of seed and trace */
    uint64_t injected[FAULT_KINDS_COUNT], counts[PLAY_COUNTS_COUNT];
    struct times transitions[COVER_TRANSITIONS_COUNT], pairs[COVER_TRANSITIONS_COUNT][FAULT_KINDS_COUNT];
    uint64_t fewest, fewest_seed;          /* faults in one schedule */
    uint64_t below;                        /* schedules with fewer than FAULTS_BAR */
    uint64_t changed;                      /* schedules in which rows got another owner */
    uint64_t pushes[PUSHES_MAX];           /* schedules by acknowledged pushes; the last: that many or more */
    uint64_t next;                         /* the next seed of this job */
    uint64_t failed;                       /* schedules */
    struct failure failures[FAILURES_MAX]; /* the first failures */
};

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void times_add(struct times *to, uint64_t times)
{
    to->all += times;
    to->schedules += times > 0;
}

static void tally_add(struct tally *to, const struct play_result *r)
{
    to->played++;
    to->steps += r->steps;
    to->sim_ns += r->sim_ns;
    to->requests += r->requests;
    to->trace += mix64(to->seed ^ r->trace);
    if (r->injected_total < to->fewest) {
        to->fewest = r->injected_total;
        to->fewest_seed = to->seed;
    }
    to->below += r->injected_total < FAULTS_BAR;
    to->changed += r->counts[PLAY_ownership] > 0;
    uint32_t pushes = r->counts[PLAY_push] + r->counts[PLAY_pushpull];
    to->pushes[pushes < PUSHES_MAX ? pushes : PUSHES_MAX - 1]++;
    for (int k = 0; k < FAULT_KINDS_COUNT; k++)
        to->injected[k] += r->injected[k];
    for (int k = 0; k < PLAY_COUNTS_COUNT; k++)
        to->counts[k] += r->counts[k];
    for (int m = 0; m < COVER_TRANSITIONS_COUNT; m++) {
        times_add(&to->transitions[m], r->coverage.transitions[m]);
        for (int k = 0; k < FAULT_KINDS_COUNT; k++)
            times_add(&to->pairs[m][k], r->coverage.pairs[m][k]);
    }
}

static void failed(struct tally *t, uint64_t seed, const char *text)
{
    struct failure *f = t->failed < FAILURES_MAX ? &t->failures[t->failed] : NULL;
    t->failed++;
    if (!f)
        return;
    f->seed = seed;
    for (size_t i = 0; i < sizeof f->text - 1 && text[i] != 0; i++) /* after a defect it may have any bytes */
        f->text[i] = (char)(text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
}

/* The median of acknowledged pushes: half of the schedules have as many or more. */
static unsigned median(const struct tally *t)
{
    uint64_t less = 0;
    unsigned pushes = 0;
    while (pushes < PUSHES_MAX - 1 && 2 * (less + t->pushes[pushes]) <= t->played)
        less += t->pushes[pushes++];
    return pushes;
}

static double share(const struct tally *t)
{
    return t->played ? (double)t->changed / (double)t->played : 0;
}

/* Plays one seed. One in twenty (arbitrary) is played twice, and must give the same trace. */
static void play_seed(uint64_t seed, struct tally *t)
{
    struct schedule s;
    struct play_result *r = &t->now, again;
    t->seed = seed;
    if (schedule_draw(seed, &s))
        abort();
    play(&s, r);
    tally_add(t, r);
    if (!r->failed && mix64(seed) % 20 == 0) {
        play(&s, &again);
        t->again++;
        if (again.trace != r->trace || again.failed) {
            r->failed = true;
            (void)snprintf(r->text, sizeof r->text,
                           "played twice, the traces are %016" PRIx64 " and %016" PRIx64, r->trace,
                           again.trace);
        }
    }
    if (r->failed)
        failed(t, seed, r->text);
    schedule_fini(&s);
}

static uint64_t seed_at(const struct sim_options *o, uint64_t i)
{
    return o->known ? o->known[i].seed : o->seed + i;
}

static const char *words_of(const struct sim_options *o, uint64_t seed)
{
    for (uint64_t i = 0; o->known && i < o->seeds; i++)
        if (o->known[i].seed == seed)
            return o->known[i].words;
    return "";
}

static void job(const struct sim_options *o, struct tally *t)
{
    while (t->next < o->seeds && (!t->failed || o->go_on)) {
        uint64_t i = t->next;
        t->next += o->jobs;
        play_seed(seed_at(o, i), t);
    }
}

/* ---- replay, shrink ------------------------------------------------------------------------------------ */

static int write_file(const char *name, const struct schedule *s)
{
    char *text = schedule_write(s);
    FILE *f = text ? fopen(name, "w") : NULL;
    int bad = !f || fputs(text, f) < 0;
    if (f && fclose(f) != 0)
        bad = 1;
    free(text);
    return bad;
}

static void print_schedule(const struct schedule *s)
{
    char line[96];
    (void)printf(
        "seed %" PRIu64
        ": %u servers of %u shards, %u replicas, %u workers (%u more than expected) of %u customers, "
        "%zu faults:\n",
        s->seed, s->servers, s->shards, s->replicas, s->workers, s->extra, s->customers, s->count);
    if (s->fewer)
        (void)printf("  table %u has %u replicas\n", s->fewer - 1, s->fewest);
    for (size_t i = 0; i < s->count; i++) {
        (void)fault_print(&s->faults[i], line, sizeof line);
        (void)printf("  %s", line);
    }
}

static void report(const struct sim_options *o, struct schedule *s, struct play_result *r)
{
    char name[64];
    if (o->shrink)
        play_shrink(s, r, SHRINK_PLAYS);
    print_schedule(s);
    (void)snprintf(name, sizeof name, "paramo-sim-%" PRIu64 ".txt", s->seed);
    (void)printf("FAILED: %s\n", r->text);
    if (write_file(name, s))
        (void)printf("replay: paramo sim --seed %" PRIu64 " --seeds 1 (%s cannot be written)\n", s->seed,
                     name);
    else
        (void)printf("replay: paramo sim --replay %s\n", name);
}

static int replay(const struct sim_options *o)
{
    FILE *f = fopen(o->replay, "r");
    const int error = errno;
    char *text = calloc(1, TEXT_MAX);
    struct schedule s = {0};
    struct play_result r;
    if (!f || !text || fread(text, 1, TEXT_MAX - 1, f) == 0) {
        if (f)
            (void)fclose(f);
        free(text);
        (void)fprintf(stderr, "paramo sim: %s cannot be read: %s\n", o->replay,
                      f ? "it is empty" : strerror(error));
        return CODE_DATA;
    }
    (void)fclose(f);
    paramo_err err = schedule_read(text, &s);
    free(text);
    if (err) {
        (void)err_prefix(err, "%s", o->replay);
        return code_fail(VERB, err, err_text());
    }
    play(&s, &r);
    if (r.failed)
        report(o, &s, &r);
    else
        (void)printf("%zu faults, %" PRIu32 " struck: nothing was violated; trace %016" PRIx64 "\n", s.count,
                     r.injected_total, r.trace);
    schedule_fini(&s);
    return r.failed ? CODE_FAILED : CODE_DONE;
}

/* ---- many seeds ---------------------------------------------------------------------------------------- */

static json_t *times_json(const struct times *t)
{
    json_t *times = json_object();
    (void)json_object_set_new(times, "times", json_integer((json_int_t)t->all));
    (void)json_object_set_new(times, "schedules", json_integer((json_int_t)t->schedules));
    return times;
}

static json_t *coverage_json(const struct tally *t)
{
    json_t *all = json_object();
    for (int m = 0; m < COVER_TRANSITIONS_COUNT; m++) {
        json_t *transition = times_json(&t->transitions[m]), *after = json_object();
        for (int k = 0; k < FAULT_KINDS_COUNT; k++)
            (void)json_object_set_new(after, fault_name((enum fault_kind)k), times_json(&t->pairs[m][k]));
        (void)json_object_set_new(transition, "after", after);
        (void)json_object_set_new(all, coverage_transition_name((enum cover_transition)m), transition);
    }
    return all;
}

/* Prints each transition and how often it came after which fault, in lines of 80 columns. */
static void print_coverage(const struct tally *t)
{
    unsigned transitions = 0, pairs = 0;
    for (int m = 0; m < COVER_TRANSITIONS_COUNT; m++) {
        transitions += t->transitions[m].all > 0;
        for (int k = 0; k < FAULT_KINDS_COUNT; k++)
            pairs += t->pairs[m][k].all > 0;
    }
    (void)printf("coverage: %u of %d transitions and %u of %d pairs of a fault and a transition\n",
                 transitions, COVER_TRANSITIONS_COUNT, pairs, COVER_TRANSITIONS_COUNT * FAULT_KINDS_COUNT);
    for (int m = 0; m < COVER_TRANSITIONS_COUNT; m++) {
        const char *text = coverage_machine_text((enum cover_transition)m);
        int at = 0;
        if (text)
            (void)printf("%s\n", text);
        (void)printf("  %-30s %12" PRIu64 " in %" PRIu64 " schedules\n",
                     coverage_transition_name((enum cover_transition)m), t->transitions[m].all,
                     t->transitions[m].schedules);
        for (int k = 0; k < FAULT_KINDS_COUNT && t->transitions[m].all; k++) {
            char one[40];
            int wide =
                snprintf(one, sizeof one, " %s %" PRIu64, fault_name((enum fault_kind)k), t->pairs[m][k].all);
            if (at == 0 || at + wide > 80)
                at = printf("%s      %s", at ? "\n" : "", k ? "     " : "after") - (at > 0);
            at += printf("%s", one);
        }
        if (at)
            (void)printf("\n");
    }
}

static void print_json(const struct tally *t, bool coverage, double seconds)
{
    char trace[17];
    (void)snprintf(trace, sizeof trace, "%016" PRIx64, t->trace);
    json_t *faults = json_object(), *well = json_object(), *root = json_object();
    for (int k = 0; k < PLAY_COUNTS_COUNT; k++)
        (void)json_object_set_new(well, play_count_name((enum play_count)k),
                                  json_integer((json_int_t)t->counts[k]));
    for (int k = 0; k < FAULT_KINDS_COUNT; k++)
        (void)json_object_set_new(faults, fault_name((enum fault_kind)k),
                                  json_integer((json_int_t)t->injected[k]));
    (void)json_object_set_new(root, "schedules", json_integer((json_int_t)t->played));
    (void)json_object_set_new(root, "played_twice", json_integer((json_int_t)t->again));
    (void)json_object_set_new(root, "seconds", json_real(seconds));
    (void)json_object_set_new(root, "schedules_per_s", json_real((double)t->played / seconds));
    (void)json_object_set_new(root, "simulated_s_per_s", json_real((double)t->sim_ns * 1e-9 / seconds));
    (void)json_object_set_new(root, "events", json_integer((json_int_t)t->steps));
    (void)json_object_set_new(root, "requests", json_integer((json_int_t)t->requests));
    (void)json_object_set_new(root, "trace", json_string(trace));
    (void)json_object_set_new(root, "faults", faults);
    (void)json_object_set_new(root, "ended_well", well);
    (void)json_object_set_new(root, "fewest_faults", json_integer((json_int_t)t->fewest));
    (void)json_object_set_new(root, "fewest_seed", json_integer((json_int_t)t->fewest_seed));
    (void)json_object_set_new(root, "below_50", json_integer((json_int_t)t->below));
    (void)json_object_set_new(root, "median_pushes", json_integer(median(t)));
    (void)json_object_set_new(root, "ownership_changes", json_real(share(t)));
    if (coverage)
        (void)json_object_set_new(root, "coverage", coverage_json(t));
    (void)json_object_set_new(root, "failed", json_boolean(t->failed > 0));
    if (t->failed) {
        json_t *all = json_array();
        (void)json_object_set_new(root, "seed", json_integer((json_int_t)t->failures[0].seed));
        (void)json_object_set_new(root, "text", json_string(t->failures[0].text));
        for (uint64_t i = 0; i < t->failed && i < FAILURES_MAX; i++) {
            json_t *one = json_object();
            (void)json_object_set_new(one, "seed", json_integer((json_int_t)t->failures[i].seed));
            (void)json_object_set_new(one, "text", json_string(t->failures[i].text));
            (void)json_array_append_new(all, one);
        }
        (void)json_object_set_new(root, "failures_count", json_integer((json_int_t)t->failed));
        (void)json_object_set_new(root, "failures", all);
    }
    (void)json_dumpf(root, stdout, JSON_INDENT(2));
    (void)printf("\n");
    json_decref(root);
}

static void print_tally(const struct tally *t, double seconds)
{
    uint64_t faults = 0;
    for (int k = 0; k < FAULT_KINDS_COUNT; k++)
        faults += t->injected[k];
    double played = t->played ? (double)t->played : 1;
    (void)printf("%" PRIu64
                 " schedules in %.1f s: %.1f schedules/s, %.0f simulated seconds/s, %.0f events and %.0f "
                 "requests each; %" PRIu64 " played twice; trace %016" PRIx64 "\n",
                 t->played, seconds, (double)t->played / seconds, (double)t->sim_ns * 1e-9 / seconds,
                 (double)t->steps / played, (double)t->requests / played, t->again, t->trace);
    (void)printf("%" PRIu64 " faults that struck something (%.1f a schedule; at least %" PRIu64
                 ", seed %" PRIu64 "; fewer than %d in %" PRIu64 "):",
                 faults, (double)faults / played, t->fewest, t->fewest_seed, FAULTS_BAR, t->below);
    for (int k = 0; k < FAULT_KINDS_COUNT; k++)
        (void)printf(" %s %" PRIu64, fault_name((enum fault_kind)k), t->injected[k]);
    (void)printf("\nmedian of %u acknowledged pushes; rows got another owner in %.1f %% of schedules",
                 median(t), 100 * share(t));
    (void)printf("\nended well:");
    for (int k = 0; k < PLAY_COUNTS_COUNT; k++)
        (void)printf(" %s %" PRIu64, play_count_name((enum play_count)k), t->counts[k]);
    (void)printf("\n");
}

/* Keeps the failures of the lowest seeds, in order. */
static void failure_join(struct tally *sum, const struct failure *f)
{
    uint64_t n = sum->failed < FAILURES_MAX ? sum->failed : FAILURES_MAX, at = n;
    sum->failed++;
    while (at && sum->failures[at - 1].seed > f->seed)
        at--;
    if (at == FAILURES_MAX)
        return;
    uint64_t behind = n == FAILURES_MAX ? n - at - 1 : n - at;
    memmove(&sum->failures[at + 1], &sum->failures[at], behind * sizeof *f);
    sum->failures[at] = *f;
}

static void times_join(struct times *sum, const struct times *t)
{
    sum->all += t->all;
    sum->schedules += t->schedules;
}

/* Adds the results of a job to the sum. */
static void tally_join(struct tally *sum, const struct tally *t)
{
    sum->played += t->played;
    sum->again += t->again;
    sum->steps += t->steps;
    sum->sim_ns += t->sim_ns;
    sum->requests += t->requests;
    sum->trace += t->trace;
    sum->below += t->below;
    sum->changed += t->changed;
    for (unsigned i = 0; i < PUSHES_MAX; i++)
        sum->pushes[i] += t->pushes[i];
    if (t->fewest < sum->fewest) {
        sum->fewest = t->fewest;
        sum->fewest_seed = t->fewest_seed;
    }
    for (int k = 0; k < FAULT_KINDS_COUNT; k++)
        sum->injected[k] += t->injected[k];
    for (int k = 0; k < PLAY_COUNTS_COUNT; k++)
        sum->counts[k] += t->counts[k];
    for (int m = 0; m < COVER_TRANSITIONS_COUNT; m++) {
        times_join(&sum->transitions[m], &t->transitions[m]);
        for (int k = 0; k < FAULT_KINDS_COUNT; k++)
            times_join(&sum->pairs[m][k], &t->pairs[m][k]);
    }
    for (uint64_t i = 0; i < t->failed && i < FAILURES_MAX; i++)
        failure_join(sum, &t->failures[i]);
    if (t->failed > FAILURES_MAX)
        sum->failed += t->failed - FAILURES_MAX;
}

/* Forks a job. If fork fails, the job runs here. */
static pid_t job_start(const struct sim_options *o, struct tally *t)
{
    pid_t pid = fork();
    if (pid <= 0)
        job(o, t);
    if (pid == 0)
        _exit(0);
    return pid;
}

/* Waits for a job. If its process dies in a schedule, that schedule has failed, and with --go-on a new process plays
 * the others. */
static void job_wait(const struct sim_options *o, struct tally *t, pid_t pid)
{
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, 0) == pid && status != 0) {
        char text[sizeof t->now.text + 64];
        (void)snprintf(text, sizeof text, "%s%sthe process ended with %s %d", t->now.text,
                       *t->now.text ? "; " : "", WIFSIGNALED(status) ? "signal" : "code",
                       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        failed(t, t->seed, text);
        if (!o->go_on)
            return;
        pid = job_start(o, t);
    }
}

/* Prints each failure, with its cause if the file of seeds has it, and the command that replays it. */
static void print_failures(const struct sim_options *o, const struct tally *t)
{
    for (uint64_t i = 0; i < t->failed && i < FAILURES_MAX; i++) {
        const char *words = words_of(o, t->failures[i].seed);
        (void)printf("FAILED seed %" PRIu64 "%s%s%s: %s\n    paramo sim --seed %" PRIu64 " --seeds 1\n",
                     t->failures[i].seed, *words ? " (" : "", words, *words ? ")" : "", t->failures[i].text,
                     t->failures[i].seed);
    }
    if (t->failed > FAILURES_MAX)
        (void)printf("and %" PRIu64 " more\n", t->failed - FAILURES_MAX);
}

/* In COVER_LEAST schedules every kind of fault must strike, and everything that is counted must succeed once. */
static bool uncovered(const struct tally *t)
{
    bool is = false;
    for (int k = 0; k < FAULT_KINDS_COUNT && t->played >= COVER_LEAST; k++)
        if (t->injected[k] == 0) {
            (void)fprintf(stderr, "paramo sim: no fault struck: %s\n", fault_name((enum fault_kind)k));
            is = true;
        }
    for (int k = 0; k < PLAY_COUNTS_COUNT && t->played >= COVER_LEAST; k++)
        if (t->counts[k] == 0) {
            (void)fprintf(stderr, "paramo sim: never ended well: %s\n", play_count_name((enum play_count)k));
            is = true;
        }
    return is;
}

/* Do the schedules have too few pushes, owner changes or faults to prove anything? */
static bool thin(const struct tally *t)
{
    bool is = median(t) < PUSHES_BAR || 100 * share(t) < CHANGES_BAR || BELOW_BAR * t->below > t->played;
    if (is)
        (void)fprintf(
            stderr,
            "paramo sim: too thin: the bars are a median of %d acknowledged pushes, another owner in "
            "%d %% of schedules, and %d faults in all but one of %d\n",
            PUSHES_BAR, CHANGES_BAR, FAULTS_BAR, BELOW_BAR);
    return uncovered(t) || is;
}

/* The number of a transition by its name; COVER_TRANSITIONS_COUNT: it is unknown. */
static int transition_named(const char *name)
{
    int m = 0;
    while (m < COVER_TRANSITIONS_COUNT &&
           strcmp(coverage_transition_name((enum cover_transition)m), name) != 0)
        m++;
    return m;
}

/* The number of a fault by its name; FAULT_KINDS_COUNT: it is unknown. */
static int fault_named(const char *name)
{
    int k = 0;
    while (k < FAULT_KINDS_COUNT && strcmp(fault_name((enum fault_kind)k), name) != 0)
        k++;
    return k;
}

/* Reads a line of the file of expected coverage: "MACHINE FROM TO [after FAULT] SCHEDULES". Returns false if it is not
 * of that form. */
static bool bar_read(const char *line, int *transition, int *fault, uint64_t *schedules)
{
    char machine[32], from[32], to[32], kind[32], name[100];
    *fault = FAULT_KINDS_COUNT;
    bool after = sscanf(line, "%31s %31s %31s after %31s %" SCNu64, machine, from, to, kind, schedules) == 5;
    if (!after && sscanf(line, "%31s %31s %31s %" SCNu64, machine, from, to, schedules) != 4)
        return false;
    (void)snprintf(name, sizeof name, "%s %s %s", machine, from, to);
    *transition = transition_named(name);
    if (after)
        *fault = fault_named(kind);
    return *transition < COVER_TRANSITIONS_COUNT && (!after || *fault < FAULT_KINDS_COUNT);
}

/* Reports transitions that never happened, although by the counts in the file COVER_EXPECTED of the played schedules
 * should have had them, and transitions that the file lacks. Returns the exit code. */
static int cover_judge(const struct tally *t, const char *path)
{
    char line[160];
    uint64_t number = 0, of = 0, schedules;
    bool listed[COVER_TRANSITIONS_COUNT] = {false};
    int code = CODE_DONE, transition, fault;
    FILE *f = fopen(path, "r");
    if (!f) {
        (void)fprintf(stderr, "paramo sim: %s cannot be read: %s\n", path, strerror(errno));
        return CODE_DATA;
    }
    while (fgets(line, sizeof line, f)) {
        number++;
        if (line[0] == '#' || line[0] == '\n' || (!of && sscanf(line, "schedules %" SCNu64, &of) == 1 && of))
            continue;
        if (!of || !bar_read(line, &transition, &fault, &schedules)) {
            (void)fprintf(stderr, "paramo sim: %s, line %" PRIu64 ": no transition, nor pair: %.80s\n", path,
                          number, line);
            (void)fclose(f);
            return CODE_DATA;
        }
        listed[transition] |= fault == FAULT_KINDS_COUNT;
        const struct times *got =
            fault == FAULT_KINDS_COUNT ? &t->transitions[transition] : &t->pairs[transition][fault];
        double expected = (double)schedules * (double)t->played / (double)of;
        if (got->all || expected < COVER_EXPECTED)
            continue;
        (void)fprintf(stderr, "paramo sim: never happened: %s%s%s; expected in %.0f schedules\n",
                      coverage_transition_name((enum cover_transition)transition),
                      fault == FAULT_KINDS_COUNT ? "" : " after ",
                      fault == FAULT_KINDS_COUNT ? "" : fault_name((enum fault_kind)fault), expected);
        code = CODE_FAILED;
    }
    (void)fclose(f);
    for (int m = 0; m < COVER_TRANSITIONS_COUNT; m++)
        if (!listed[m]) {
            (void)fprintf(stderr, "paramo sim: %s has no line for: %s\n", path,
                          coverage_transition_name((enum cover_transition)m));
            code = CODE_DATA;
        }
    return code;
}

static int many(const struct sim_options *o)
{
    size_t bytes = o->jobs * sizeof(struct tally);
    struct tally *tallies = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[64];
    static struct tally sum = {.fewest = UINT64_MAX};
    double start = now();
    if (tallies == MAP_FAILED)
        return code_fail(VERB, PARAMO_E_MEMORY, "out of memory for the tallies of the processes");
    for (uint64_t j = 0; j < o->jobs; j++) {
        tallies[j].fewest = UINT64_MAX;
        tallies[j].next = j;
        pids[j] = job_start(o, &tallies[j]);
    }
    for (uint64_t j = 0; j < o->jobs; j++) {
        job_wait(o, &tallies[j], pids[j]);
        tally_join(&sum, &tallies[j]);
    }
    (void)munmap(tallies, bytes);
    double seconds = now() - start;
    if (o->json)
        print_json(&sum, o->coverage, seconds);
    else
        print_tally(&sum, seconds);
    if (o->coverage && !o->json)
        print_coverage(&sum);
    int covered = !o->cover_bar ? CODE_DONE : cover_judge(&sum, o->cover_bar);
    if (!sum.failed)
        return covered ? covered : o->bars && thin(&sum) ? CODE_FAILED : CODE_DONE;
    if (!o->json && !o->go_on) {
        struct schedule s;
        struct play_result r = {.failed = true};
        (void)snprintf(r.text, sizeof r.text, "%s", sum.failures[0].text);
        if (schedule_draw(sum.failures[0].seed, &s))
            return code_fail(VERB, PARAMO_E_MEMORY, err_text());
        report(o, &s, &r);
        schedule_fini(&s);
    }
    if (!o->json)
        print_failures(o, &sum);
    return CODE_FAILED;
}

/* ---- seeds from a file --------------------------------------------------------------------------------- */

/* Reads a file of seeds: each line has a seed and the cause of its failure. Empty lines and lines that begin with # are
 * skipped. Returns the exit code. */
static int known_read(struct sim_options *o)
{
    char line[512];
    uint64_t room = 0, number = 0;
    FILE *f = fopen(o->from, "r");
    if (!f) {
        (void)fprintf(stderr, "paramo sim: %s cannot be read: %s\n", o->from, strerror(errno));
        return CODE_DATA;
    }
    o->seeds = 0;
    while (fgets(line, sizeof line, f)) {
        struct known_seed known = {0};
        number++;
        if (line[0] == '#' || line[0] == '\n')
            continue;
        if (sscanf(line, "%" SCNu64 " %199[^\n]", &known.seed, known.words) != 2) {
            (void)fprintf(stderr, "paramo sim: %s, line %" PRIu64 ": a line has a seed and what it shows\n",
                          o->from, number);
            (void)fclose(f);
            return CODE_DATA;
        }
        if (o->seeds == room) {
            room = room ? 2 * room : 64;
            struct known_seed *more = realloc(o->known, room * sizeof *more);
            if (!more) {
                (void)fclose(f);
                return code_fail(VERB, PARAMO_E_MEMORY, "out of memory for the list of known seeds");
            }
            o->known = more;
        }
        o->known[o->seeds++] = known;
    }
    (void)fclose(f);
    return CODE_DONE;
}

static int many_known(struct sim_options *o)
{
    int code = known_read(o);
    if (code == CODE_DONE)
        code = many(o);
    free(o->known);
    return code;
}

static struct sim_options settings(const struct options *o)
{
    return (struct sim_options){
        .seeds = option_number(o, OPT_SEEDS),
        .seed = option_number(o, OPT_SIM_SEED),
        .jobs = option_number(o, OPT_JOBS),
        .replay = option_text(o, OPT_REPLAY),
        .from = option_text(o, OPT_SEEDS_FROM),
        .go_on = option_flag(o, OPT_GO_ON),
        .shrink = option_flag(o, OPT_SHRINK),
        .bars = option_flag(o, OPT_BARS),
        .coverage = option_flag(o, OPT_COVERAGE),
        .cover_bar = option_text(o, OPT_COVERAGE_BAR),
        .json = option_flag(o, OPT_JSON),
    };
}

static const char usage[] =
    "usage: paramo sim [options]\n\n"
    "Plays whole clusters on a simulated network, with faults drawn from seeds, and checks after\n"
    "each event the invariants of docs/SIMULATOR.md.\n";

/* Keeps freed memory in the process, and takes new memory in large pieces: each schedule allocates and frees the same
 * memory thousands of times, and the kernel takes longer to clear a page than the simulator for a step. */
static void memory_stays(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, MEMORY_MAPPED); /* an error only costs speed */
    (void)mallopt(M_TRIM_THRESHOLD, MEMORY_KEPT);
    (void)mallopt(M_TOP_PAD, MEMORY_PIECE);
}

int cmd_sim(int argc, char **argv)
{
    struct options o;
    int code = options_parse(&o, VERB_SIM, argc, argv, usage, CODE_HELP);
    if (code >= 0)
        return code;
    struct sim_options s = settings(&o);
    memory_stays();
    log_set_level(option_flag(&o, OPT_SIM_VERBOSE) ? LOG_INFO : LOG_ERROR);
    if (s.from)
        return many_known(&s);
    return s.replay ? replay(&s) : many(&s);
}
