/*
 * paramo run: one job as processes on this machine: a scheduler, S servers, W workers, each running COMMAND
 * with its place in the job in the environment (DMLC_ROLE, DMLC_PS_ROOT_URI, DMLC_PS_ROOT_PORT,
 * DMLC_NUM_SERVER, DMLC_NUM_WORKER, DMLC_RANK, PARAMO_TOKEN). It knows nothing of what COMMAND does.
 *
 * The scheduler's port: we bind a free one and keep it bound, without listening, for the job's life. While we
 * hold it the kernel gives it to nobody who asks for any port, and the scheduler can still bind and listen on
 * it, because both sockets have SO_REUSEADDR. So two jobs started at once never meet.
 *
 * Ending: the nodes learn of a death from Paramo itself. This program only sees to it that nothing is left
 * behind: every child has its own process group, which is killed when the child ends, and dies with us
 * (PR_SET_PDEATHSIG). Tests: test/e2e/run.sh, test/e2e/kill.sh.
 */
#include "cmd/command.h"
#include "cmd/verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_NODES_OF_A_ROLE = 512 }; /* arbitrary: far beyond what one machine runs well */
enum { LINE_BYTES = 4096 };         /* longer lines are passed on in pieces */
enum { TERM_SECONDS = 5 };          /* between SIGTERM and SIGKILL */
enum { IDLE_SECONDS = 2 }; /* for scheduler and servers once every worker has ended and one has failed */

struct child {
    const char *role; /* "scheduler", "server", "worker" */
    int rank;
    pid_t pid;
    int running;
    int told;    /* we have sent it a signal: how it ends is no news */
    int code;    /* exit code, 128 + signal when killed */
    int out;     /* read end of its output, -1: it writes to our own stdout and stderr */
    size_t used; /* bytes in line */
    char line[LINE_BYTES];
};

/* How far the end has come; it only goes down this list. */
enum phase {
    PHASE_RUNNING,  /* no deadline */
    PHASE_ENDING,   /* nodes are expected to end by themselves; at the deadline they get SIGTERM */
    PHASE_STOPPING, /* SIGTERM is out; at the deadline they get SIGKILL */
    PHASE_KILLED
};

struct job {
    struct child *children;
    size_t n;
    size_t running, workers_running;
    int worker_code; /* of the first worker that failed, 0: none did */
    int reported;    /* a failure has been named: what follows from it is not news */
    int interrupts;
    int grace_s;
    int verbose;
    enum phase phase;
    int64_t deadline_ms;
};

static const char usage[] =
    "usage: paramo run -s SERVERS -w WORKERS [options] [--] COMMAND...\n"
    "\n"
    "Runs a job as processes on this machine: a scheduler, servers and workers, each running COMMAND\n"
    "with its role and the scheduler's address in the environment. COMMAND may be 'paramo ...' (this\n"
    "program) or any program that uses the library.\n"
    "\n"
    "  -s, --servers N     number of servers\n"
    "  -w, --workers N     number of workers\n"
    "      --workers-only  COMMAND runs for the workers; the others run 'paramo scheduler' and 'paramo "
    "server'\n"
    "      --grace SECONDS how long the rest may take to end once a server or the scheduler has failed, or\n"
    "                      once all workers have ended, before they are stopped (15)\n"
    "      --van NAME      auto (the default): UCX between processes that can share memory, else tcp; tcp; "
    "ucx\n"
    "  -v, --verbose       print each node's process id and how it ended\n"
    "\n"
    "Worker 0 has standard input and writes to standard output and error directly; what the others print "
    "goes\n"
    "to standard error, each line after a prefix such as '[server 1] '.\n"
    "Ctrl-C is passed on to the workers; a second one kills the job.\n"
    "\n"
    "Exit code: 0 if every worker ended with 0, else the code of the first that did not (128 + signal if it\n"
    "was killed); 1 if the job could not be started, 2 for wrong usage, 126 or 127 if COMMAND cannot be "
    "run.\n"
    "\n"
    "  paramo run -s 2 -w 2 -- paramo train --model lr --data train.ffm --model-out model\n";

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* nobody reads us any more: the job goes on */
        data += n;
        len -= (size_t)n;
    }
}

static const char *child_name(const struct child *c, char *buf, size_t cap)
{
    if (strcmp(c->role, "scheduler") == 0)
        snprintf(buf, cap, "scheduler");
    else
        snprintf(buf, cap, "%s %d", c->role, c->rank);
    return buf;
}

/* ---- output of the children ---- */

static void child_flush(struct child *c, size_t len, int complete)
{
    char name[32], out[LINE_BYTES + 64];
    int head = snprintf(out, sizeof out, "[%s] ", child_name(c, name, sizeof name));
    memcpy(out + head, c->line, len);
    size_t total = (size_t)head + len;
    if (!complete)
        out[total++] = '\n';
    write_all(STDERR_FILENO, out, total);
    memmove(c->line, c->line + len, c->used - len);
    c->used -= len;
}

static void child_read(struct child *c)
{
    for (;;) {
        ssize_t n = read(c->out, c->line + c->used, sizeof c->line - c->used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            if (c->used > 0)
                child_flush(c, c->used, 0);
            close(c->out);
            c->out = -1;
            return;
        }
        c->used += (size_t)n;
        char *end;
        while ((end = memchr(c->line, '\n', c->used)) != NULL)
            child_flush(c, (size_t)(end - c->line) + 1, 1);
        if (c->used == sizeof c->line)
            child_flush(c, c->used, 0);
    }
}

/* ---- start ---- */

/* Binds a free loopback port and returns the socket that holds it, -1 with errno if there is none. */
static int reserve_port(uint16_t *port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int on = 1;
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (struct sockaddr *)&addr, sizeof addr) != 0 ||
        getsockname(fd, (struct sockaddr *)&addr, &len) != 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    *port = ntohs(addr.sin_port);
    return fd;
}

static void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

/* What all children share; only role and rank differ. */
static int set_environment(uint16_t port, int servers, int workers)
{
    setenv("DMLC_PS_ROOT_URI", "127.0.0.1", 1);
    set_number("DMLC_PS_ROOT_PORT", port);
    set_number("DMLC_NUM_SERVER", servers);
    set_number("DMLC_NUM_WORKER", workers);
    /* One value for all nodes would name or place them alike. */
    static const char *const single[] = {"PORT",          "DMLC_PORT",   "DMLC_NODE_HOST",
                                         "PARAMO_LISTEN", "PARAMO_NAME", "DMLC_RANK"};
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        unsetenv(single[i]);
    if (getenv("PARAMO_TOKEN") == NULL) {
        uint64_t random[2];
        if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
            return -1;
        char token[40];
        snprintf(token, sizeof token, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
        setenv("PARAMO_TOKEN", token, 1);
    }
    return 0;
}

/* In the child. Never returns; an error goes to the parent as errno through fail_fd. */
__attribute__((noreturn)) static void child_exec(const struct child *c, pid_t parent, int out, int fail_fd,
                                                 const sigset_t *mask, const char *path, char **command)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before that took hold */
        _exit(1);
    int direct = out < 0;
    if (!direct) {
        dup2(out, STDOUT_FILENO);
        dup2(out, STDERR_FILENO);
    }
    /* A terminal stays ours: reading it from another process group would stop the worker. */
    if (!direct || isatty(STDIN_FILENO)) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (null >= 0)
            dup2(null, STDIN_FILENO);
    }
    setenv("DMLC_ROLE", c->role, 1);
    if (strcmp(c->role, "scheduler") != 0)
        set_number("DMLC_RANK", c->rank);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(path, command);
    int e = errno;
    write_all(fail_fd, (const char *)&e, sizeof e);
    _exit(127);
}

/* Starts one child; 0, or the errno of what failed. */
static int child_start(struct child *c, const sigset_t *mask, const char *path, char **command)
{
    int pipe_out[2] = {-1, -1}, pipe_fail[2];
    int direct = strcmp(c->role, "worker") == 0 && c->rank == 0;
    int e = 0;
    if (!direct && pipe2(pipe_out, O_CLOEXEC) != 0)
        return errno;
    if (pipe2(pipe_fail, O_CLOEXEC) != 0) {
        e = errno;
        goto err_close_out;
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0) {
        e = errno;
        goto err_close_fail;
    }
    if (pid == 0)
        child_exec(c, parent, pipe_out[1], pipe_fail[1], mask, path, command);
    setpgid(pid, pid); /* here too: whoever runs first */
    close(pipe_fail[1]);
    ssize_t n;
    do
        n = read(pipe_fail[0], &e, sizeof e);
    while (n < 0 && errno == EINTR);
    close(pipe_fail[0]);
    if (n > 0) { /* exec failed */
        waitpid(pid, NULL, 0);
        goto err_close_out;
    }
    if (!direct) {
        close(pipe_out[1]);
        fcntl(pipe_out[0], F_SETFL, O_NONBLOCK); /* our end only: the description is not shared */
    }
    c->pid = pid;
    c->running = 1;
    c->out = pipe_out[0];
    return 0;

err_close_fail:
    close(pipe_fail[0]);
    close(pipe_fail[1]);
err_close_out:
    if (!direct) {
        close(pipe_out[0]);
        close(pipe_out[1]);
    }
    return e;
}

/* ---- life ---- */

static void job_signal(struct job *job, const char *role, int sig)
{
    for (size_t i = 0; i < job->n; i++) {
        struct child *c = &job->children[i];
        if (c->running && (role == NULL || strcmp(c->role, role) == 0)) {
            c->told = 1;
            kill(-c->pid, sig);
        }
    }
}

/* The rest has `seconds` from now, or less if less was left. */
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

static void job_deadline(struct job *job)
{
    if (job->phase == PHASE_STOPPING) {
        job_kill(job);
        return;
    }
    for (size_t i = 0; i < job->n; i++) {
        char name[32];
        if (job->children[i].running)
            fprintf(stderr, "paramo run: %s has not ended in time, stopping it\n",
                    child_name(&job->children[i], name, sizeof name));
    }
    job_signal(job, NULL, SIGTERM);
    job_signal(job, NULL, SIGCONT); /* a stopped process would never see it */
    job->phase = PHASE_STOPPING;
    job->deadline_ms = now_ms() + TERM_SECONDS * 1000;
}

static void child_report(struct job *job, const struct child *c, int status)
{
    char name[32];
    child_name(c, name, sizeof name);
    int failed = c->code != 0;
    if (WIFSIGNALED(status) && (!c->told || job->verbose)) {
        fprintf(stderr, "paramo run: %s (pid %d) was killed by signal %d (%s)\n", name, (int)c->pid,
                WTERMSIG(status), strsignal(WTERMSIG(status)));
        job->reported = 1;
    } else if (job->verbose || (failed && !c->told && !job->reported)) {
        fprintf(stderr, "paramo run: %s (pid %d) ended with exit code %d\n", name, (int)c->pid, c->code);
        job->reported |= failed;
    }
}

static void child_ended(struct job *job, struct child *c, int status)
{
    c->running = 0;
    c->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    job->running--;
    child_report(job, c, status);
    if (strcmp(c->role, "worker") == 0) {
        job->workers_running--;
        if (job->worker_code == 0)
            job->worker_code = c->code;
    } else if (c->code != 0) {
        job_expect_end(job, job->grace_s);
    }
    if (job->workers_running == 0)
        job_expect_end(job,
                       job->worker_code != 0 && job->grace_s > IDLE_SECONDS ? IDLE_SECONDS : job->grace_s);
}

static void job_reap(struct job *job)
{
    for (size_t i = 0; i < job->n; i++) {
        struct child *c = &job->children[i];
        siginfo_t info = {0};
        if (!c->running || waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid == 0)
            continue;
        /* While it is a zombie its number is nobody else's: now what it left behind can be killed safely. */
        kill(-c->pid, SIGKILL);
        int status = 0;
        waitpid(c->pid, &status, 0);
        if (c->out >= 0)
            child_read(c); /* its last words come before ours */
        child_ended(job, c, status);
    }
}

static void job_on_signal(struct job *job, int sig)
{
    if (sig == SIGCHLD) {
        job_reap(job);
        return;
    }
    if (job->interrupts++ > 0) {
        job_kill(job);
        return;
    }
    job->reported = 1; /* whatever fails now fails because of it */
    job_signal(job, "worker", sig == SIGINT ? SIGINT : SIGTERM);
    if (job->workers_running == 0)
        job_expect_end(job, 0);
    else if (sig != SIGINT) /* who sends SIGTERM expects an end; Ctrl-C can be given twice */
        job_expect_end(job, job->grace_s);
}

static void job_wait(struct job *job, int signal_fd, struct pollfd *fds)
{
    while (job->running > 0) {
        nfds_t n = 1;
        fds[0] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
        for (size_t i = 0; i < job->n; i++)
            fds[n++] = (struct pollfd){.fd = job->children[i].out, .events = POLLIN}; /* poll skips -1 */
        int timeout = -1;
        if (job->phase == PHASE_ENDING || job->phase == PHASE_STOPPING) {
            int64_t left = job->deadline_ms - now_ms();
            timeout = left > 0 ? (int)left : 0;
        }
        int ready = poll(fds, n, timeout);
        if (ready == 0) {
            job_deadline(job);
            continue;
        }
        if (ready < 0)
            continue; /* EINTR only: every signal we handle is blocked */
        for (size_t i = 0; i < job->n; i++) {
            if (fds[i + 1].revents)
                child_read(&job->children[i]);
        }
        struct signalfd_siginfo info;
        if ((fds[0].revents & POLLIN) && read(signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
            job_on_signal(job, (int)info.ssi_signo);
    }
}

/* ---- the verb ---- */

struct run_options {
    int servers, workers, workers_only, grace_s, verbose;
    char **command;
};

/* 0, or -1 after a message. */
static int parse_number(const char *option, const char *text, int low, int high, int *value)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || v < low || v > high) {
        fprintf(stderr, "paramo run: %s wants a number from %d to %d, not '%s'\n", option, low, high, text);
        return -1;
    }
    *value = (int)v;
    return 0;
}

/* -1: go on; else the exit code. */
static int parse_options(int argc, char **argv, struct run_options *o)
{
    enum { OPT_WORKERS_ONLY = 256, OPT_GRACE, OPT_VAN };
    static const struct option options[] = {
        {"servers", required_argument, NULL, 's'},
        {"workers", required_argument, NULL, 'w'},
        {"workers-only", no_argument, NULL, OPT_WORKERS_ONLY},
        {"grace", required_argument, NULL, OPT_GRACE},
        {"van", required_argument, NULL, OPT_VAN},
        {"verbose", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *o = (struct run_options){.grace_s = 15};
    optind = 0; /* glibc: begin anew */
    opterr = 0;
    int c;
    while ((c = getopt_long(argc, argv, "+:s:w:vh", options, NULL)) != -1) {
        int bad = 0;
        switch (c) {
        case 's':
            bad = parse_number("--servers", optarg, 1, MAX_NODES_OF_A_ROLE, &o->servers);
            break;
        case 'w':
            bad = parse_number("--workers", optarg, 1, MAX_NODES_OF_A_ROLE, &o->workers);
            break;
        case OPT_GRACE:
            bad = parse_number("--grace", optarg, 0, 86400, &o->grace_s);
            break;
        case OPT_VAN:
            if (strcmp(optarg, "auto") != 0 && strcmp(optarg, "tcp") != 0 && strcmp(optarg, "ucx") != 0) {
                fprintf(stderr, "paramo run: --van wants auto, tcp or ucx, not '%s'\n", optarg);
                return 2;
            }
            setenv("PARAMO_VAN", optarg, 1); /* the children's */
            break;
        case OPT_WORKERS_ONLY:
            o->workers_only = 1;
            break;
        case 'v':
            o->verbose = 1;
            break;
        case 'h':
            fputs(usage, stdout);
            return 0;
        default:
            fprintf(stderr, "paramo run: %s '%s' (see paramo run --help)\n",
                    c == ':' ? "no value after option" : "unknown option", argv[optind - 1]);
            return 2;
        }
        if (bad)
            return 2;
    }
    const char *missing = o->servers == 0 ? "-s SERVERS" : o->workers == 0 ? "-w WORKERS" : NULL;
    if (missing == NULL && optind >= argc)
        missing = "COMMAND";
    if (missing != NULL) {
        fprintf(stderr, "paramo run: %s is missing (see paramo run --help)\n", missing);
        return 2;
    }
    o->command = argv + optind;
    return -1;
}

static int job_start(struct job *job, const struct run_options *o, const sigset_t *mask)
{
    for (size_t i = 0; i < job->n; i++) {
        struct child *c = &job->children[i];
        size_t k = i; /* scheduler, servers, workers */
        c->role = k == 0 ? "scheduler" : k <= (size_t)o->servers ? "server" : "worker";
        c->rank = k == 0 ? 0 : (int)(k <= (size_t)o->servers ? k - 1 : k - 1 - (size_t)o->servers);
        char *own[] = {(char *)"paramo", (char *)c->role, NULL};
        int ours = o->workers_only && strcmp(c->role, "worker") != 0;
        char **command = ours ? own : o->command;
        int e = child_start(c, mask, command_path(command[0]), command);
        if (e != 0) {
            fprintf(stderr, "paramo run: cannot run '%s': %s\n", command[0], strerror(e));
            return command_exit_code(e);
        }
        job->running++;
        job->workers_running += strcmp(c->role, "worker") == 0;
        if (o->verbose) {
            char name[32];
            fprintf(stderr, "paramo run: %s is pid %d\n", child_name(c, name, sizeof name), (int)c->pid);
        }
    }
    return 0;
}

int cmd_run(int argc, char **argv)
{
    struct run_options o;
    int code = parse_options(argc, argv, &o);
    if (code >= 0)
        return code;

    struct job job = {.grace_s = o.grace_s, .verbose = o.verbose};
    job.n = 1 + (size_t)o.servers + (size_t)o.workers;
    job.children = calloc(job.n, sizeof *job.children);
    struct pollfd *fds = calloc(job.n + 1, sizeof *fds);
    uint16_t port = 0;
    int port_fd = -1, signal_fd = -1;
    code = 1;
    if (job.children == NULL || fds == NULL) {
        fprintf(stderr, "paramo run: out of memory\n");
        goto out;
    }
    for (size_t i = 0; i < job.n; i++)
        job.children[i].out = -1;

    sigset_t handled, mask;
    sigemptyset(&handled);
    sigaddset(&handled, SIGCHLD);
    sigaddset(&handled, SIGINT);
    sigaddset(&handled, SIGTERM);
    sigaddset(&handled, SIGHUP);
    sigprocmask(SIG_BLOCK, &handled, &mask);
    signal(SIGPIPE, SIG_IGN);
    port_fd = reserve_port(&port);
    signal_fd = signalfd(-1, &handled, SFD_CLOEXEC);
    if (port_fd < 0 || signal_fd < 0 || set_environment(port, o.servers, o.workers) != 0) {
        fprintf(stderr, "paramo run: cannot prepare the job: %s\n", strerror(errno));
        goto out;
    }
    code = job_start(&job, &o, &mask);
    if (code != 0)
        job_kill(&job);
    job_wait(&job, signal_fd, fds);
    for (size_t i = 0; i < job.n; i++) {
        struct child *c = &job.children[i];
        if (c->out >= 0 && c->used > 0) /* a last line without its end */
            child_flush(c, c->used, 0);
    }
    if (code == 0)
        code = job.worker_code;

out:
    if (signal_fd >= 0)
        close(signal_fd);
    if (port_fd >= 0)
        close(port_fd);
    free(fds);
    free(job.children);
    return code;
}
