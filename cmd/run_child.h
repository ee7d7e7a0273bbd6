/*
 * Starts one node of 'paramo run': a process in its own process group, with its role in the environment and its output
 * on a pipe. It dies with its parent (PR_SET_PDEATHSIG). cmd_run.c watches it.
 *
 * The scheduler's port: `paramo run` binds a free port and keeps it bound, without listening, until the job ends, so
 * that the kernel gives it to no process that asks for any port. The scheduler can bind and listen on it, because both
 * sockets have SO_REUSEADDR. So two jobs that start at the same time have different ports. Tests: test/e2e/run.sh.
 */
#ifndef CMD_RUN_CHILD_H
#define CMD_RUN_CHILD_H

#include "cmd/run_output.h"

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

enum { RUN_NODES_MAX = 512 }; /* of a role; arbitrary: far beyond what one machine runs well */

struct run_options {
    int servers, workers, workers_only, scheduler_wait_s, verbose;
    int grace_s;       /* how long other processes may run after a server or the scheduler has failed ... */
    int end_s;         /* ... and after every worker has ended */
    int min_workers;   /* the job succeeds if this many end with 0 */
    const char *state; /* the folder of the scheduler's state; NULL: it keeps none */
    int replicas, restores; /* restores: --on-loss restore */
    const char *log_dir;    /* NULL: no log files */
    const char *log_format;
    char **command;
};

struct child {
    const char *role; /* "scheduler", "server", "worker" */
    int rank;
    pid_t pid;
    int running;
    int signalled;         /* by us: its end need not be reported */
    int code;              /* exit code, 128 + signal when killed */
    struct run_source out; /* fd -1: it writes to our stdout and stderr */
};

/* Binds a free port of the loopback address. Returns the socket that keeps it, or -1 with errno. */
int run_reserve_port(uint16_t *port);
/* Sets the environment that all children share; child_start adds role and rank. Returns 0, or -1 with errno. */
int run_set_environment(uint16_t port, const struct run_options *o);
/* Starts one child, whose role, rank and name are set. Returns 0, or an errno. notify: the socket on which the
 * scheduler reports the state of the job. */
int child_start(const struct run_options *o, struct child *c, int notify, const sigset_t *mask,
                const char *path, char **command);
/* Rank and node id, as in the messages of the nodes: "server 0 (node 8)". Returns buf. */
const char *child_label(const struct child *c, char *buf, size_t cap);

#endif
