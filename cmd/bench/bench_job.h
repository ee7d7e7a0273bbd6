/*
 * The processes that a benchmark needs: a Paramo job (scheduler and servers as processes, with this process as the
 * worker) or an embedded node, and raw peers at the other end of a bare socket. It never knows what is measured.
 *
 * Children die with this process (PR_SET_PDEATHSIG); everything is on loopback. Functions that return int return 0, or
 * the program's exit code after an error is printed, unless they say otherwise. Tests: test/e2e/bench.sh.
 */
#ifndef CMD_BENCH_BENCH_JOB_H
#define CMD_BENCH_BENCH_JOB_H

#include "paramo/paramo.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum { JOB_SERVERS_MAX = 8 }; /* arbitrary */

/* Zeros: the job, or the peer, is not started; job_stop and peer_stop may be called all the same. */
struct bench_job {
    pid_t scheduler, server[JOB_SERVERS_MAX]; /* 0: embedded */
    char address[32];                         /* of the scheduler, host:port */
    int port_fd;                              /* holds the scheduler's port; 0: none */
    int quiet; /* set before the start: the output of its processes, which will be killed, is not shown */
    paramo_node *node;
    paramo_worker *worker;
};

struct bench_peer {
    pid_t pid;
    int fd;
};

/* Removes Paramo's settings from the environment, so that the benchmark runs with defaults; sets a token and the
 * van. */
int job_environment(const char *van);
/* The name of the job's van, for the settings of a line. */
const char *job_van(void);

/* Starts one scheduler, that many servers with each row on 1 + replicas of them, and this process as the worker. */
int job_start(struct bench_job *job, unsigned servers, unsigned replicas);
/* Starts server i of a running job, named "server-i", after the process that was server i before has ended. */
int job_add_server(struct bench_job *job, unsigned i);
/* Kills a server with SIGKILL, and returns when the process has ended. */
void job_kill_server(struct bench_job *job, unsigned i);
/* Starts 'paramo' with these arguments, argv[0] included, as a child whose output is not shown. */
int job_command(pid_t *pid, char *const argv[]);
/* Returns 0 while the command runs; 1: it has succeeded; -1: it has failed, which is printed. Then *pid is 0. */
int job_command_ended(pid_t *pid);
/* Starts a command and waits for its end. */
int job_command_run(char *const argv[]);
/* Like job_command_run(), but the output of the command goes to the file. */
int job_command_read(char *const argv[], FILE *to);
/* Kills the command if it still runs. */
void job_command_stop(pid_t *pid);
/* Like job_start(), with all nodes in this process (PARAMO_ROLE_ALL). */
int job_start_embedded(struct bench_job *job);
void job_stop(struct bench_job *job);

/* Forks a process that serves its end of a new loopback connection until that ends. To be called before this process
 * has threads or large memory. */
int peer_start(struct bench_peer *peer, void (*serve)(int fd));
void peer_stop(struct bench_peer *peer);

/* Starts and stops processes that only use a core, to measure what waiting costs when no core is free. */
int busy_start(pid_t *pids, size_t n);
void busy_stop(pid_t *pids, size_t n);

/* Print the error of a library call (paramo_last_error) or a system call (errno). Return the exit code for it. */
int bench_failed(paramo_err err, const char *what);
int bench_system(const char *what);

/* Numbers from /proc about a process: resident memory in bytes, threads, open descriptors. */
struct process_facts {
    double rss, threads, descriptors;
};
int process_facts(pid_t pid, struct process_facts *facts);

#endif
