/*
 * The program: finds the verb and calls its file.
 */
#include "cmd/exitcode.h"
#include "cmd/verbs.h"

#include "paramo/paramo.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} verbs[] = {
    {"train", cmd_train, "train a click model, in one process or as one node of a cluster"},
    {"predict", cmd_predict, "write a model's probability for each row"},
    {"eval", cmd_eval, "measure a model: log-loss, AUC, accuracy, calibration"},
    {"export", cmd_export, "write a model as text: keys and values"},
    {"run", cmd_run, "run a job on this machine: scheduler, servers and workers as processes"},
    {"scheduler", cmd_scheduler, "run one scheduler of a cluster"},
    {"server", cmd_server, "run one server of a cluster"},
    {"worker", cmd_worker, "run a command as one worker of a cluster"},
    {"data", cmd_data, "generate click logs for tests"},
    {"ring", cmd_ring, "show which servers own and replicate each part of the keys"},
    {"status", cmd_status, "show the state of a live cluster"},
    {"drain", cmd_drain, "migrate a server's partitions to the others and let it leave"},
    {"checkpoint", cmd_checkpoint, "save and load checkpoints of a live job; list and verify them"},
    {"sim", cmd_sim, "test whole clusters on a simulated network with injected faults"},
    {"bench", cmd_bench, "measure each path of Paramo on this machine beside its raw limit"},
};

static void print_help(void)
{
    (void)printf("usage: paramo VERB [options]\n"
                 "\n"
                 "Paramo %s trains models whose parameters live on servers, through push and pull.\n\n",
                 paramo_version());
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        (void)printf("  %-11s%s\n", verbs[i].name, verbs[i].help);
    (void)printf("\n'paramo VERB --help' shows a verb's options. 'paramo --version' prints the version.\n"
                 "\n"
                 "  paramo train --model lr --data train.libsvm --valid test.libsvm --model-out model\n"
                 "  paramo eval --model-in model --data test.libsvm\n"
                 "\n" CODE_HELP);
}

/* Opens /dev/null in place of a closed standard stream, in the mode that the stream is not used in. Otherwise
 * the next file that is opened gets its number, and output goes into that file. */
static int hold_standard_streams(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return 0;
    return 1;
}

/* With fewer a node cannot start, or fails at its first connections. A large job needs more: two for each
 * connection. */
enum { FILES_MIN = 64 };

static int has_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= FILES_MIN)
        return 1;
    (void)fprintf(stderr, "paramo: the limit of open files is %llu, and at least %d are needed: %s %d\n",
                  (unsigned long long)limit.rlim_cur, FILES_MIN,
                  limit.rlim_max < FILES_MIN ? "have the hard limit (ulimit -H -n) raised to" : "ulimit -n",
                  FILES_MIN);
    return 0;
}

int main(int argc, char **argv)
{
    if (!hold_standard_streams()) {
        (void)fprintf(stderr, "paramo: a standard stream is closed, and /dev/null cannot be opened for it\n");
        return CODE_FAILED;
    }
    if (argc < 2) {
        (void)fprintf(stderr, "paramo: a verb is missing ('paramo --help' lists them)\n");
        return CODE_USAGE;
    }
    const char *cpu = getenv("PARAMO_CPU"); /* here too: not every verb joins a cluster */
    paramo_err err = cpu == NULL || *cpu == '\0' ? PARAMO_OK : paramo_cpu_limit(cpu);
    if (err != PARAMO_OK) {
        (void)fprintf(stderr, "paramo: PARAMO_CPU: %s\n", paramo_last_error());
        return CODE_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_help();
        return CODE_DONE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        (void)printf("paramo %s\nvector instructions: %s (PARAMO_CPU=base|avx2|avx512 limits them)\n",
                     paramo_version(), paramo_cpu());
        return CODE_DONE;
    }
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(argv[1], verbs[i].name) == 0)
            return has_files() ? verbs[i].run(argc - 1, argv + 1) : CODE_FAILED;
    (void)fprintf(stderr, "paramo: there is no verb '%s' ('paramo --help' lists them)\n", argv[1]);
    return CODE_USAGE;
}
