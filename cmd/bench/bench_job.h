/*
 * The processes that a benchmark needs beside itself: a Paramo job (a scheduler and a server as programs of
 * their own, this process its worker) or an embedded node, and raw peers at the other end of a bare socket.
 *
 * Children die with this process (PR_SET_PDEATHSIG); everything is on loopback. Functions that return int
 * return 0, or the program's exit code after having said why in one line. Tests: test/e2e/bench.sh.
 */
#ifndef CMD_BENCH_BENCH_JOB_H
#define CMD_BENCH_BENCH_JOB_H

#include "paramo/paramo.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum { JOB_SERVERS_MAX = 8 };

/* All zero: not started; job_stop and peer_stop may still be called. */
struct bench_job {
    pid_t scheduler, server[JOB_SERVERS_MAX]; /* 0: embedded */
    char address[32];                         /* the scheduler's, host:port */
    int port_fd;                              /* holds the scheduler's port; 0: none */
    int quiet; /* set before the start: what its processes say is not shown, as they will be killed */
    paramo_node *node;
    paramo_worker *worker;
};

struct bench_peer {
    pid_t pid;
    int fd;
};

/* Removes settings from the environment: the benchmark runs with defaults. */
int job_environment(const char *van);
/* The van of the job, as the settings of a line say it. */
const char *job_van(void);

/* One scheduler, that many servers, each row on 1 + replicas of them, and this process as the worker. */
int job_start(struct bench_job *job, unsigned servers, unsigned replicas);
/* Starts server i of that many for a running job, once its predecessor has ended; its name is "server i".
 */
int job_add_server(struct bench_job *job, unsigned i);
/* With SIGKILL. Returns when it is gone. */
void job_kill_server(struct bench_job *job, unsigned i);
/* Starts 'paramo' with these arguments, argv[0] included, as a child; what it prints is not shown. */
int job_command(pid_t *pid, char *const argv[]);
/* 0: it still runs; 1: it succeeded, and *pid is 0; -1: it failed, and a line says why. */
int job_command_ended(pid_t *pid);
/* Starts it and waits for its end: 0, or -1 as above. */
int job_command_run(char *const argv[]);
/* Like job_command_run(); the output of the command goes to the file. */
int job_command_read(char *const argv[], FILE *to);
/* Kills it if it still runs. */
void job_command_stop(pid_t *pid);
/* Like job_start(), with all nodes in this process (PARAMO_ROLE_ALL). */
int job_start_embedded(struct bench_job *job);
void job_stop(struct bench_job *job);

/* Forks a process that serves its end of a fresh loopback connection until that ends. Fork before this
 * process has threads or large memory. */
int peer_start(struct bench_peer *peer, void (*serve)(int fd));
void peer_stop(struct bench_peer *peer);

/* Processes that do nothing but use a core, to see what waiting costs when cores are not free. */
int busy_start(pid_t *pids, size_t n);
void busy_stop(pid_t *pids, size_t n);

/* The exit code for a failed library call (paramo_last_error) or system call (errno), after one line. */
int bench_failed(paramo_err err, const char *what);
int bench_system(const char *what);

/* What /proc says of a process: resident memory in bytes, threads, open descriptors. */
struct process_facts {
    double rss, threads, descriptors;
};
int process_facts(pid_t pid, struct process_facts *facts);

#endif
