/*
 * The program: finds the verb and calls its file.
 */
#include "cmd/exitcode.h"
#include "cmd/suggest.h"
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
#define VERB_LINE(id, name, words, summary) {#name, cmd_##name, summary},
    VERBS(VERB_LINE)
#undef VERB_LINE
};

static void print_help(void)
{
    (void)printf("usage: paramo VERB [options]\n"
                 "\n"
                 "Paramo %s trains models whose parameters live on servers, through push and\n"
                 "pull.\n\n",
                 paramo_version());
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        (void)printf("  %-11s%s\n", verbs[i].name, verbs[i].help);
    (void)printf("\n'paramo VERB --help' and 'paramo help VERB' show a verb's options. 'paramo\n"
                 "--version' prints the version.\n"
                 "\n"
                 "  paramo train --model lr --data train.libsvm --valid test.libsvm \\\n"
                 "      --model-out model\n"
                 "  paramo eval --model-in model --data test.libsvm\n"
                 "\n" CODE_HELP);
}

/* Opens /dev/null in place of a closed standard stream, in the mode in which the stream is not used, so that using it
 * fails. Otherwise the next file that is opened would get its number, and output would go into that file. */
static int hold_standard_streams(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return 0;
    return 1;
}

/* With fewer open files a node cannot start, or fails at its first connections. A large job needs more: two for each
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

static int run_verb(int argc, char **argv)
{
    struct suggestion near;
    suggest_begin(&near, argv[0]);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(argv[0], verbs[i].name) == 0)
            return has_files() ? verbs[i].run(argc, argv) : CODE_FAILED;
        suggest_try(&near, verbs[i].name);
    }
    (void)fprintf(stderr, "paramo: unknown verb '%s'", argv[0]);
    if (near.best)
        (void)fprintf(stderr, "; did you mean '%s'?", near.best);
    (void)fprintf(stderr, " ('paramo --help' lists the verbs)\n");
    return CODE_USAGE;
}

int main(int argc, char **argv)
{
    if (!hold_standard_streams()) {
        (void)fprintf(stderr, "paramo: a standard stream is closed, and /dev/null cannot be opened for it\n");
        return CODE_FAILED;
    }
    if (argc < 2) {
        (void)fprintf(stderr, "paramo: a verb is missing ('paramo --help' lists the verbs)\n");
        return CODE_USAGE;
    }
    const char *cpu = getenv("PARAMO_CPU"); /* also for verbs that start no node */
    paramo_err err = !cpu || *cpu == '\0' ? PARAMO_OK : paramo_cpu_limit(cpu);
    if (err != PARAMO_OK) {
        (void)fprintf(stderr, "paramo: PARAMO_CPU: %s\n", paramo_last_error());
        return CODE_USAGE;
    }
    if (strcmp(argv[1], "help") == 0 && argc > 2) {
        char option[] = "--help", *words[] = {argv[2], option, NULL};
        return run_verb(2, words);
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
    return run_verb(argc - 1, argv + 1);
}
