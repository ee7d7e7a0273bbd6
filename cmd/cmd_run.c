/*
 * paramo run: one job as processes on this machine: a scheduler, S servers, W workers, each running COMMAND with its
 * role in the environment (DMLC_ROLE, DMLC_PS_ROOT_URI, DMLC_PS_ROOT_PORT, DMLC_NUM_SERVER, DMLC_NUM_WORKER,
 * DMLC_RANK, PARAMO_TOKEN). It never knows what COMMAND does.
 *
 * The scheduler reports on a socket (PARAMO_NOTIFY_FD) that it listens, and that the job is complete, which means that
 * all nodes have joined. Until then the job needs every node, and the others would wait for a dead one until their
 * time-out. So a node that fails before that ends the job. If COMMAND runs no scheduler, there are no reports, and it
 * is not stopped.
 *
 * After that the nodes learn of a death from Paramo itself. This program only makes sure that no process is left: every
 * child has its own process group, which is killed when the child ends, and dies with this program (PR_SET_PDEATHSIG).
 * Tests: test/e2e/run.sh, test/e2e/kill.sh.
 */
#include "cmd/command.h"
#include "cmd/exitcode.h"
#include "cmd/options.h"
#include "cmd/run_child.h"
#include "cmd/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TERM_SECONDS = 5 };  /* between SIGTERM and SIGKILL; arbitrary */
enum { RESTARTS_MAX = 20 }; /* how often a scheduler that keeps its state is started again */
enum {
    IDLE_SECONDS = 2
}; /* for scheduler and servers when every worker has ended and one has failed; arbitrary */
/* A scheduler with --state and a full disk tries for up to 33 s to save the end of the job, and then reports why it
 * cannot. */
enum { STATE_SECONDS = 40 };

/* The phases of the end of a job, in their order. */
enum phase {
    PHASE_RUNNING,  /* no deadline */
    PHASE_ENDING,   /* nodes are expected to end by themselves; at the deadline they get SIGTERM */
    PHASE_STOPPING, /* they have got SIGTERM; at the deadline they get SIGKILL */
    PHASE_KILLED
};

struct job {
    struct child *children;
    struct run_output output;
    const struct run_options *options;
    const sigset_t *mask;        /* of the children */
    int restarts;                /* of the scheduler */
    int notify;                  /* our end of the scheduler's socket; -1: closed */
    int listening, complete;     /* reported by the scheduler */
    const struct child *missing; /* the node that failed before the job was complete, which ended the job */
    size_t n;
    size_t running, workers_running;
    int worker_code;            /* of the first worker that failed, 0: none did */
    const struct child *failed; /* the first server, or the scheduler, that has failed by itself */
    const struct child *dead;   /* the same, but also one that was killed from outside */
    size_t cut_short;           /* workers that were stopped because `dead` had ended */
    int state_left;             /* the scheduler was stopped before it had removed the job's state */
    int reported;               /* a failure has been reported: those that follow from it are not */
    int interrupts;             /* SIGINT, SIGTERM and SIGHUP that came */
    int ended_by;               /* SIGTERM or SIGHUP, which decides the exit code; 0: neither came */
    int grace_s;
    int spare; /* servers that may still fail: the job has as many copies of its rows, or restores them */
    int verbose;
    enum phase phase;
    int64_t deadline_ms;
};

static const char usage[] =
    "usage: paramo run -s SERVERS -w WORKERS [options] [--] COMMAND...\n"
    "\n"
    "Runs a job as processes on this machine: a scheduler, servers and workers, each running COMMAND\n"
    "with its role and the scheduler's address in the environment. COMMAND may be 'paramo ...' (this\n"
    "program) or any program that uses the library.\n";

static const char more[] =
    "With --state a scheduler that is killed is started again and continues the job.\n"
    "\n"
    "Worker 0 has standard input, output and error. Output of the other nodes goes to standard error, each\n"
    "line after a prefix such as '[server 1] '. A message that several nodes print at the same time appears\n"
    "once, after all their names.\n"
    "\n"
    "Ctrl-C goes to the workers; a second one kills the job. SIGTERM and SIGHUP (unless ignored, as by\n"
    "nohup) end the job: the workers get SIGTERM, and processes that run after --grace seconds are killed.\n"
    "\n"
    "If a server or worker fails before the job is complete, the job ends at once.\n"
    "\n"
    "Exit code: 0 if all workers, or --min-workers of them, exit with 0; else that of the first worker that\n"
    "failed (128 + signal if it was killed), or of the node without which the job could not become\n"
    "complete. If all workers succeed, or wait for a dead server or scheduler until they are stopped: that\n"
    "of the first server or scheduler that failed, unless it was killed and the workers continued without\n"
    "it. 143 after SIGTERM, 129 after SIGHUP, 130 after Ctrl-C where COMMAND is 'paramo train'; 1 if the\n"
    "job cannot be started, 2 for wrong usage, 3 if --log-dir cannot be created or the scheduler is stopped\n"
    "before it has removed the state of a job that is over, 126 or 127 if COMMAND cannot be run.\n"
    "\n"
    "  paramo run -s 2 -w 2 -- \\\n"
    "      paramo train --model lr --data train.ffm --model-out model\n";

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- life ---- */

static void job_signal(struct job *job, const char *role, int sig)
{
    for (size_t i = 0; i < job->n; i++) {
        struct child *c = &job->children[i];
        if (c->running && (!role || strcmp(c->role, role) == 0)) {
            c->signalled = 1;
            kill(-c->pid, sig);
        }
    }
}

/* The processes that still run have `seconds` from now, or less if a deadline is nearer. */
static void job_expect_end(struct job *job, int seconds)
{
    int64_t deadline = now_ms() + (int64_t)seconds * 1000;
    if (job->phase == PHASE_RUNNING || (job->phase == PHASE_ENDING && deadline < job->deadline_ms)) {
        job->phase = PHASE_ENDING;
        job->deadline_ms = deadline;
    }
}

static void job_kill(struct job *job)
{
    job_signal(job, NULL, SIGKILL);
    job->phase = PHASE_KILLED;
}

/* Sends SIGTERM to all children but the scheduler, and to the scheduler when it runs alone: so no node reports that the
 * scheduler has ended. */
static void job_signal_stop(struct job *job)
{
    int last = job->running == 1;
    for (size_t i = last ? 0 : 1; i < job->n; i++) {
        struct child *c = &job->children[i];
        if (!c->running)
            continue;
        c->signalled = 1;
        kill(-c->pid, SIGTERM);
        kill(-c->pid, SIGCONT); /* a stopped process would not handle SIGTERM */
    }
}

static void job_stop(struct job *job)
{
    job_signal_stop(job);
    job->phase = PHASE_STOPPING;
    job->deadline_ms = now_ms() + TERM_SECONDS * 1000;
}

/* Ends the job, which lacks a node. child_report has reported the end of the node. */
static void job_give_up(struct job *job, const struct child *missing)
{
    char label[64];
    job->missing = missing;
    if (!job->interrupts)
        fprintf(stderr, "paramo run: the job cannot become complete without %s: ending it\n",
                child_label(missing, label, sizeof label));
    job_stop(job);
}

static void job_deadline(struct job *job)
{
    const struct child *scheduler = &job->children[0];
    if (job->phase == PHASE_STOPPING) {
        job_kill(job);
        return;
    }
    if (!scheduler->running && scheduler->code != 0 && !job->listening && job->workers_running > 0) {
        job_give_up(job, scheduler);
        return;
    }
    job->state_left = job->options->state && scheduler->running;
    for (size_t i = 0; i < job->n; i++) {
        char label[64];
        if (job->children[i].running)
            fprintf(stderr, "paramo run: %s did not end in time, stopping it\n",
                    child_label(&job->children[i], label, sizeof label));
    }
    job_stop(job);
}

/* Has the node failed before the job is complete? Then the others would wait for it in vain. */
static int job_lacks(const struct job *job, const struct child *c)
{
    return job->listening && !job->complete && !c->running && c->code != 0 && job->phase < PHASE_STOPPING;
}

static void child_report(struct job *job, const struct child *c, int status)
{
    char label[64], how[96];
    int failed = c->code != 0;
    int killed = WIFSIGNALED(status) && !c->signalled;
    int news = killed || (failed && !c->signalled && !job->reported);
    if (!news && !job->verbose)
        return;
    if (news)
        run_output_flush(&job->output, &c->out); /* its last lines come before ours */
    job->reported |= failed;
    if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(how, sizeof how, "ended with exit code %d", c->code);
    fprintf(stderr, "paramo run: %s, pid %d, %s%s\n", child_label(c, label, sizeof label), (int)c->pid, how,
            job_lacks(job, c) && !job->interrupts ? " before the job was complete: ending it" : "");
}

/* Starts a child; each scheduler gets a new socket for its reports. Returns 0, or errno if the child does not run. */
static int job_start_child(struct job *job, struct child *c)
{
    char *own[] = {(char *)"paramo", (char *)c->role, NULL};
    int ours = job->options->workers_only && strcmp(c->role, "worker") != 0;
    char **command = ours ? own : job->options->command;
    int notify[2] = {-1, -1};
    int first = c == &job->children[0];
    if (first && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, notify) != 0)
        return errno;
    int e = child_start(job->options, c, notify[1], job->mask, command_path(command[0]), command);
    if (first) {
        close(notify[1]); /* so that the reader sees its end */
        if (job->notify >= 0)
            close(job->notify);
        job->notify = notify[0];
    }
    if (e != 0)
        return e;
    job->running++;
    job->workers_running += strcmp(c->role, "worker") == 0;
    if (job->options->verbose)
        fprintf(stderr, "paramo run: %s is pid %d\n", c->out.name, (int)c->pid);
    return 0;
}

/* Starts a scheduler again that was killed and has kept its state. Returns 1 if it runs. */
static int restart_scheduler(struct job *job, struct child *c, int status)
{
    if (c != &job->children[0] || !job->options->state || !WIFSIGNALED(status) || c->signalled ||
        job->phase != PHASE_RUNNING || job->workers_running == 0 || job->restarts == RESTARTS_MAX)
        return 0;
    job->restarts++;
    run_output_flush(&job->output, &c->out);
    run_output_end(&c->out);
    if (c->out.fd >= 0) /* a process that it has started holds the other end */
        close(c->out.fd);
    c->out.fd = -1;
    int e = job_start_child(job, c);
    if (e != 0)
        fprintf(stderr, "paramo run: the scheduler cannot be started again: %s\n", strerror(e));
    else
        fprintf(stderr, "paramo run: the scheduler was killed by signal %d (%s), and is started again\n",
                WTERMSIG(status), strsignal(WTERMSIG(status)));
    return e == 0;
}

/* Has this server, or the scheduler, failed by itself? If it was killed from outside while workers run, the exit codes
 * of the workers count: they fail, or continue without it. */
static int failed_by_itself(const struct job *job, const struct child *c, int status)
{
    int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    int outside = sig == SIGKILL || sig == SIGTERM || sig == SIGINT || sig == SIGHUP;
    return c->code != 0 && !c->signalled && !job->interrupts && !(outside && job->workers_running > 0);
}

static void child_ended(struct job *job, struct child *c, int status)
{
    c->running = 0;
    c->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    job->running--;
    if (restart_scheduler(job, c, status))
        return;
    child_report(job, c, status);
    int needed = job_lacks(job, c);
    if (strcmp(c->role, "worker") == 0) {
        int stopped = c->code != 0 && c->signalled && !job->interrupts && (job->missing || job->dead);
        job->workers_running--;
        job->cut_short += stopped && !job->missing;
        if (job->worker_code == 0 && !stopped)
            job->worker_code = c->code;
    } else if (c->code != 0 && job->complete && job->spare > 0 && c != &job->children[0]) {
        job->spare--; /* the scheduler decides, and ends the job if rows are lost */
    } else if (c->code != 0) {
        if (!job->failed && failed_by_itself(job, c, status))
            job->failed = c;
        if (!job->dead && !c->signalled && !job->interrupts)
            job->dead = c;
        /* If the scheduler fails before it listens, the others would wait for it, unless they fail for the same
         * cause. */
        int early = c == &job->children[0] && !job->listening;
        job_expect_end(job, !early ? job->grace_s : WIFSIGNALED(status) ? 0 : IDLE_SECONDS);
    }
    if (needed) {
        job->missing = c;
        job_stop(job);
    }
    if (job->phase == PHASE_STOPPING && job->running == 1 && job->children[0].running)
        job_signal_stop(job);
    if (job->workers_running == 0)
        job_expect_end(job, job->worker_code != 0 && job->options->end_s > IDLE_SECONDS
                                ? IDLE_SECONDS
                                : job->options->end_s);
}

/* Reads a report of the scheduler about the state of the job. */
static void job_read_notice(struct job *job)
{
    char message[64];
    ssize_t n = recv(job->notify, message, sizeof message - 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        close(job->notify);
        job->notify = -1;
        return;
    }
    message[n] = '\0';
    job->listening |= strstr(message, "listening") != NULL;
    job->complete |= strstr(message, "complete") != NULL;
    for (size_t i = 0; i < job->n; i++) {
        if (job_lacks(job, &job->children[i]))
            job_give_up(job, &job->children[i]);
    }
}

static void job_reap(struct job *job)
{
    for (size_t i = 0; i < job->n; i++) {
        struct child *c = &job->children[i];
        siginfo_t info = {0};
        if (!c->running || waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid == 0)
            continue;
        /* While it is a zombie, no other process can have its id: its process group can be killed safely. */
        kill(-c->pid, SIGKILL);
        int status = 0;
        waitpid(c->pid, &status, 0);
        if (c->out.fd >= 0)
            run_output_read(&job->output, &c->out, now_ms());
        child_ended(job, c, status);
    }
}

static void job_on_signal(struct job *job, int sig)
{
    if (sig == SIGCHLD) {
        job_reap(job);
        return;
    }
    if (sig != SIGINT && job->ended_by == 0)
        job->ended_by = sig;
    if (job->interrupts++ > 0) {
        job_kill(job);
        return;
    }
    job->reported = 1; /* later failures follow from it */
    job_signal(job, "worker", sig == SIGINT ? SIGINT : SIGTERM);
    if (job->workers_running == 0)
        job_expect_end(job, 0);
    else if (sig != SIGINT) /* SIGTERM ends the job; Ctrl-C can be given twice */
        job_expect_end(job, job->grace_s);
}

/* Milliseconds until the next held message or the deadline; -1: there is neither. */
static int job_timeout(const struct job *job)
{
    int64_t due = run_output_due(&job->output);
    if ((job->phase == PHASE_ENDING || job->phase == PHASE_STOPPING) && (due < 0 || job->deadline_ms < due))
        due = job->deadline_ms;
    int64_t left = due - now_ms();
    return due < 0 ? -1 : left > 0 ? (int)left : 0;
}

/* Handles one pending signal. Returns 0 if there is none. */
static int job_take_signal(struct job *job, int signal_fd)
{
    struct signalfd_siginfo info;
    if (read(signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
        return 0;
    job_on_signal(job, (int)info.ssi_signo);
    return 1;
}

static void job_wait(struct job *job, int signal_fd, struct pollfd *fds)
{
    while (job->running > 0) {
        nfds_t n = 2;
        fds[0] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
        fds[1] = (struct pollfd){.fd = job->notify, .events = POLLIN};
        for (size_t i = 0; i < job->n; i++)
            fds[n++] = (struct pollfd){.fd = job->children[i].out.fd, .events = POLLIN}; /* poll skips -1 */
        int ready = poll(fds, n, job_timeout(job));
        int64_t now = now_ms();
        run_output_tick(&job->output, now);
        if ((job->phase == PHASE_ENDING || job->phase == PHASE_STOPPING) && now >= job->deadline_ms)
            job_deadline(job);
        if (ready <= 0)
            continue; /* the timeout or EINTR; the signals that we handle are blocked, and come through signal_fd */
        for (size_t i = 0; i < job->n; i++) {
            if (fds[i + 2].revents)
                run_output_read(&job->output, &job->children[i].out, now);
        }
        if (fds[1].revents) /* before deaths: the scheduler's messages are older */
            job_read_notice(job);
        if (fds[0].revents & POLLIN)
            job_take_signal(job, signal_fd);
    }
    while (job_take_signal(job, signal_fd)) /* those that came with the end of the last child */
        continue;
    for (size_t i = 0; i < job->n; i++) {
        struct child *c = &job->children[i];
        run_output_flush(&job->output, &c->out);
        run_output_end(&c->out);
    }
}

/* Prints the last line after a worker has failed or was stopped: how the other workers and the job ended. */
static void job_report(const struct job *job, const struct child *failed, size_t workers, size_t well,
                       int enough)
{
    const char *checkpoints = getenv("PARAMO_CHECKPOINT_DIR");
    char label[64];
    (void)child_label(failed, label, sizeof label);
    if (enough)
        fprintf(stderr,
                "paramo run: %zu of %zu workers succeeded, which is enough (--min-workers %d); exit code %d "
                "was that of %s\n",
                well, workers, job->options->min_workers, failed->code, label);
    else if (well > 0)
        fprintf(stderr, "paramo run: %zu of %zu workers succeeded; exit code %d is that of %s\n", well,
                workers, failed->code, label);
    else if (job->complete)
        fprintf(stderr, "paramo run: no worker succeeded; exit code %d is that of %s; %s%s\n", failed->code,
                label,
                checkpoints ? "the tables are lost except for the checkpoints in "
                            : "the tables are lost (see --checkpoint-dir)",
                checkpoints ? checkpoints : "");
    else if (job->cut_short)
        fprintf(stderr, "paramo run: no worker succeeded; exit code %d is that of %s\n", failed->code, label);
}

/* Returns the exit code. If a worker has failed, or enough workers have succeeded, the code of a failed server or
 * scheduler does not count. */
static int job_sum_up(const struct job *job)
{
    size_t workers = 0, well = 0;
    const struct child *first = NULL, *other = job->missing ? job->missing : job->failed;
    char label[64];
    for (size_t i = 0; i < job->n; i++) {
        const struct child *c = &job->children[i];
        if (strcmp(c->role, "worker") != 0)
            continue;
        workers++;
        well += c->code == 0;
        if (!first && c->code == job->worker_code)
            first = c;
    }
    int enough = !job->missing && well >= (size_t)job->options->min_workers;
    if (job->worker_code != 0) {
        if (first && !job->interrupts && !job->missing)
            job_report(job, first, workers, well, enough);
        return enough ? 0 : job->worker_code;
    }
    if (job->cut_short > 0 && !job->missing) {
        job_report(job, job->dead, workers, well, enough);
        return enough ? 0 : job->dead->code;
    }
    if (job->failed && !job->missing)
        fprintf(stderr, "paramo run: every worker succeeded; exit code %d is that of %s\n", job->failed->code,
                child_label(job->failed, label, sizeof label));
    if (!other && job->state_left && !job->interrupts) {
        fprintf(
            stderr,
            "paramo run: every worker succeeded, but the scheduler has not removed the job's state within "
            "%d s (--grace); a job with --state %s would continue this one: remove that folder first\n",
            job->options->end_s, job->options->state);
        return CODE_DATA;
    }
    return other ? other->code : 0;
}

/* ---- the verb ---- */

/* Sets the environment variables of the options that the nodes read. */
static void export_settings(const struct options *o)
{
    static const enum option_id settings[] = {
        OPT_CHECKPOINT_DIR,  OPT_CHECKPOINT_EVERY, OPT_CHECKPOINT_FULL_EVERY,
        OPT_CHECKPOINT_KEEP, OPT_RESTORE,          OPT_ON_LOSS,
        OPT_PLUGIN};
    options_export(o, settings, sizeof settings / sizeof *settings);
    if (option_given(o, OPT_VAN))
        setenv("PARAMO_VAN", option_text(o, OPT_VAN), 1);
}

/* The scheduler checks this, too, but it may be any program, with any exit code. */
static int state_can_be_kept(const char *dir)
{
    char inside[PATH_MAX];
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return 0;
    int n = snprintf(inside, sizeof inside, "%s/.", dir);
    return n < 0 || (size_t)n >= sizeof inside || access(inside, W_OK | X_OK) == 0;
}

/* -1: continue; otherwise the exit code. */
static int make_options(const struct options *o, struct run_options *run)
{
    const char *missing = !option_given(o, OPT_RUN_SERVERS)   ? "-s SERVERS"
                          : !option_given(o, OPT_RUN_WORKERS) ? "-w WORKERS"
                          : !o->words                         ? "COMMAND"
                                                              : NULL;
    *run = (struct run_options){
        .servers = (int)option_number(o, OPT_RUN_SERVERS),
        .workers = (int)option_number(o, OPT_RUN_WORKERS),
        .workers_only = option_flag(o, OPT_WORKERS_ONLY),
        .grace_s = (int)option_number(o, OPT_GRACE),
        .end_s = option_given(o, OPT_STATE) && !option_given(o, OPT_GRACE) ? STATE_SECONDS
                                                                           : (int)option_number(o, OPT_GRACE),
        .scheduler_wait_s =
            option_given(o, OPT_SCHEDULER_WAIT) ? (int)option_number(o, OPT_SCHEDULER_WAIT) : -1,
        .verbose = option_flag(o, OPT_RUN_VERBOSE),
        .min_workers =
            (int)option_number(o, option_given(o, OPT_MIN_WORKERS) ? OPT_MIN_WORKERS : OPT_RUN_WORKERS),
        .state = option_given(o, OPT_STATE) ? option_text(o, OPT_STATE) : NULL,
        .replicas = (int)option_number(o, OPT_REPLICAS),
        .restores = option_number(o, OPT_ON_LOSS) == PARAMO_ON_LOSS_RESTORE,
        .log_dir = option_given(o, OPT_LOG_DIR) ? option_text(o, OPT_LOG_DIR) : NULL,
        .log_format = option_text(o, OPT_LOG_FORMAT),
        .command = o->word,
    };
    if (option_given(o, OPT_CHECKPOINT_EVERY) && !option_text(o, OPT_CHECKPOINT_DIR))
        return options_wrong(o, "--checkpoint-every needs --checkpoint-dir");
    if (run->restores && !option_text(o, OPT_CHECKPOINT_DIR))
        return options_wrong(o, "--on-loss restore needs --checkpoint-dir");
    if (missing)
        return options_wrong(o, "%s is missing", missing);
    if (run->min_workers > run->workers)
        return options_wrong(o, "--min-workers %d is above --workers %d", run->min_workers, run->workers);
    if (option_given(o, OPT_LOG_FORMAT) && !run->log_dir)
        return options_wrong(o, "--log-format needs --log-dir");
    if (run->log_dir && mkdir(run->log_dir, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "paramo run: --log-dir %s cannot be created: %s\n", run->log_dir, strerror(errno));
        return CODE_DATA;
    }
    if (run->state && !state_can_be_kept(run->state)) {
        fprintf(stderr, "paramo run: the job's state cannot be kept in %s: %s\n", run->state,
                strerror(errno));
        return CODE_DATA;
    }
    return -1;
}

static int job_start(struct job *job)
{
    size_t servers = (size_t)job->options->servers;
    for (size_t i = 0; i < job->n; i++) {
        struct child *c = &job->children[i];
        size_t k = i; /* in the order scheduler, servers, workers */
        c->role = k == 0 ? "scheduler" : k <= servers ? "server" : "worker";
        c->rank = k == 0 ? 0 : (int)(k <= servers ? k - 1 : k - 1 - servers);
        if (k == 0)
            snprintf(c->out.name, sizeof c->out.name, "scheduler");
        else
            snprintf(c->out.name, sizeof c->out.name, "%s %d", c->role, c->rank);
        int e = job_start_child(job, c);
        if (e != 0) {
            int ours = job->options->workers_only && strcmp(c->role, "worker") != 0;
            fprintf(stderr, "paramo run: cannot run '%s': %s\n", ours ? "paramo" : job->options->command[0],
                    strerror(e));
            return command_exit_code(e);
        }
    }
    return 0;
}

static int ignored(int sig)
{
    struct sigaction action;
    return sigaction(sig, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int cmd_run(int argc, char **argv)
{
    struct options options;
    struct run_options o;
    int code = options_parse(&options, VERB_RUN, argc, argv, usage, more);
    if (code < 0)
        code = make_options(&options, &o);
    if (code >= 0)
        return code;
    export_settings(&options);

    struct job job = {.options = &o,
                      .grace_s = o.grace_s,
                      .spare = o.restores ? o.servers : o.replicas,
                      .verbose = o.verbose,
                      .notify = -1};
    job.n = 1 + (size_t)o.servers + (size_t)o.workers;
    job.children = calloc(job.n, sizeof *job.children);
    job.output.sources = job.n;
    struct pollfd *fds = calloc(job.n + 2, sizeof *fds);
    uint16_t port = 0;
    int port_fd = -1, signal_fd = -1;
    code = 1;
    if (!job.children || !fds) {
        fprintf(stderr, "paramo run: out of memory\n");
        goto out;
    }
    for (size_t i = 0; i < job.n; i++)
        job.children[i].out.fd = -1;

    sigset_t handled, mask;
    sigemptyset(&handled);
    sigaddset(&handled, SIGCHLD);
    sigaddset(&handled, SIGINT);
    sigaddset(&handled, SIGTERM);
    if (!ignored(SIGHUP))
        sigaddset(&handled, SIGHUP);
    sigprocmask(SIG_BLOCK, &handled, &mask);
    signal(SIGPIPE, SIG_IGN);
    port_fd = run_reserve_port(&port);
    signal_fd = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
    if (port_fd < 0 || signal_fd < 0 || run_set_environment(port, &o) != 0) {
        fprintf(stderr, "paramo run: cannot prepare the job: %s\n", strerror(errno));
        goto out;
    }
    job.mask = &mask;
    code = job_start(&job);
    if (code != 0)
        job_kill(&job);
    job_wait(&job, signal_fd, fds);
    if (code == 0)
        code = job_sum_up(&job);
    if (job.ended_by != 0)
        code = 128 + job.ended_by;

out:
    if (job.notify >= 0)
        close(job.notify);
    if (signal_fd >= 0)
        close(signal_fd);
    if (port_fd >= 0)
        close(port_fd);
    free(fds);
    free(job.children);
    return code;
}
