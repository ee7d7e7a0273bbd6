/*
 * One node of 'paramo run': a process in its own process group, with its place in the job in the environment and its
 * output on a pipe; it dies with its parent (PR_SET_PDEATHSIG). This file starts it, and cmd_run.c watches it.
 *
 * The scheduler's port: `paramo run` binds a free port and keeps it bound, without listening, until the job ends. So
 * the kernel gives it to no process that asks for any port. The scheduler can still bind and listen on it, because
 * both sockets have SO_REUSEADDR. So two jobs started at once never meet. Tests: test/e2e/run.sh.
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
    int grace_s;            /* for the others when a server or the scheduler has failed ... */
    int end_s;              /* ... and when every worker has ended */
    int min_workers;        /* this many must end with 0 */
    const char *state;      /* the scheduler's; NULL: it keeps none */
    int replicas, restores; /* restores: on loss */
    const char *log_dir;    /* NULL: no log files */
    const char *log_format;
    char **command;
};

struct child {
    const char *role; /* "scheduler", "server", "worker" */
    int rank;
    pid_t pid;
    int running;
    int told;              /* we have sent it a signal: how it ends is no news */
    int code;              /* exit code, 128 + signal when killed */
    struct run_source out; /* fd -1: it writes to our own stdout and stderr */
};

/* Binds a free loopback port and returns the socket that holds it, -1 with errno if there is none. */
int run_reserve_port(uint16_t *port);
/* What all children share; only role and rank differ. 0, or -1 with errno. */
int run_set_environment(uint16_t port, const struct run_options *o);
/* Starts one child, whose role, rank and name are set; 0, or the errno of what failed. notify: the socket on
 * which the scheduler says how far the job is. */
int child_start(const struct run_options *o, struct child *c, int notify, const sigset_t *mask,
                const char *path, char **command);
/* Both of its numbers, in the form that the nodes' own messages have: "server 0 (node 8)". Returns buf. */
const char *child_label(const struct child *c, char *buf, size_t cap);

#endif
