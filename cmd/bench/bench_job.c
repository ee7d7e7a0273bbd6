#include "cmd/bench/bench_job.h"
#include "cmd/command.h"
#include "cmd/exitcode.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    START_MS = 20000,   /* arbitrary, as the others: far more than processes of this machine need to start */
    END_MS = 10000,     /* then a process is killed */
    SOCKET_SECONDS = 60 /* a raw peer that is silent for longer hangs */
};

extern char **environ;

int bench_failed(paramo_err err, const char *what)
{
    char text[600];
    (void)snprintf(text, sizeof text, "%s: %s", what, paramo_last_error());
    return code_fail("bench", err, text);
}

int bench_system(const char *what)
{
    char text[300];
    (void)snprintf(text, sizeof text, "%s: %s", what, strerror(errno));
    return code_fail("bench", PARAMO_E_SYSTEM, text);
}

const char *job_van(void)
{
    const char *van = getenv("PARAMO_VAN");
    return van && strcmp(van, "ucx") == 0 ? "UCX (shared memory)" : "TCP";
}

int job_environment(const char *van)
{
    for (char **e = environ; *e;) {
        char name[64];
        size_t len = strcspn(*e, "=");
        int ours = strncmp(*e, "DMLC_", 5) == 0 || strncmp(*e, "PARAMO_", 7) == 0 ||
                   strncmp(*e, "PS_", 3) == 0 || (len == 4 && strncmp(*e, "PORT", 4) == 0);
        if (!ours || len >= sizeof name) {
            e++;
            continue;
        }
        memcpy(name, *e, len);
        name[len] = 0;
        (void)unsetenv(name); /* moves the following variables down, so e stays */
    }
    uint64_t random[2];
    char token[40];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return bench_system("no random token");
    (void)snprintf(token, sizeof token, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    if (setenv("PARAMO_TOKEN", token, 1) != 0 || setenv("PARAMO_VAN", van, 1) != 0)
        return bench_system("no token for the job");
    (void)signal(SIGPIPE, SIG_IGN);
    return 0;
}

/* ---- children ---- */

/* Called in the child: it dies with its parent. */
static void bind_to(pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
}

/* Starts 'paramo'. out: the descriptor for its standard output; -1: ours, or, if it is quiet, /dev/null. */
static int program_start(pid_t *pid, char *const argv[], int quiet, int out)
{
    const char *path = command_path("paramo");
    pid_t parent = getpid();
    pid_t child = fork();
    if (child < 0)
        return bench_system("fork");
    if (child == 0) {
        bind_to(parent);
        int null = quiet ? open("/dev/null", O_WRONLY) : -1;
        if (null >= 0) {
            (void)dup2(null, STDOUT_FILENO);
            (void)dup2(null, STDERR_FILENO);
        }
        if (out >= 0)
            (void)dup2(out, STDOUT_FILENO);
        execv(path, argv);
        _exit(127);
    }
    *pid = child;
    return 0;
}

/* Waits for the end of the process; after timeout_ms it is killed. */
static void child_end(pid_t *pid, int timeout_ms)
{
    if (*pid == 0)
        return;
    int fd = (int)syscall(SYS_pidfd_open, *pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (fd < 0 || timeout_ms == 0 || poll(&p, 1, timeout_ms) != 1)
        (void)kill(*pid, SIGKILL);
    if (fd >= 0)
        (void)close(fd);
    while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *pid = 0;
}

/* Keeps a port for the scheduler, which listens on it, as 'paramo run' does (run_child.h). */
static int hold_port(int *fd, uint16_t *port)
{
    int on = 1;
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd < 0 || setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(*fd, (struct sockaddr *)&addr, sizeof addr) != 0 ||
        getsockname(*fd, (struct sockaddr *)&addr, &len) != 0)
        return bench_system("no port for the scheduler");
    *port = ntohs(addr.sin_port);
    return 0;
}

static int join(struct bench_job *job, paramo_config *cfg)
{
    cfg->connect_timeout_ms = START_MS;
    paramo_err err = paramo_start(cfg, &job->node);
    if (err != PARAMO_OK)
        return bench_failed(err, "cannot start the node");
    err = paramo_worker_open(job->node, 0, &job->worker);
    return err == PARAMO_OK ? 0 : bench_failed(err, "cannot open a worker");
}

int job_add_server(struct bench_job *job, unsigned i)
{
    /* each server has a failure domain of its own, so that copies are placed as if servers were on different hosts */
    char self[] = "paramo", server[] = "server", opt_scheduler[] = "--scheduler", opt_domain[] = "--domain",
         opt_name[] = "--name", name[24];
    (void)snprintf(name, sizeof name, "server-%u", i);
    char *const argv[] = {self, server, opt_scheduler, job->address, opt_domain, name, opt_name, name, NULL};
    child_end(&job->server[i], END_MS);
    return program_start(&job->server[i], argv, job->quiet, -1);
}

int job_start(struct bench_job *job, unsigned servers, unsigned replicas)
{
    uint16_t port = 0;
    int code = hold_port(&job->port_fd, &port);
    if (code != 0)
        return code;
    char number[8], many[16], copies[16], one[] = "1";
    (void)snprintf(job->address, sizeof job->address, "127.0.0.1:%u", (unsigned)port);
    (void)snprintf(number, sizeof number, "%u", (unsigned)port);
    (void)snprintf(many, sizeof many, "%u", servers);
    (void)snprintf(copies, sizeof copies, "%u", replicas);
    char self[] = "paramo", scheduler[] = "scheduler", opt_port[] = "--port", opt_servers[] = "--servers",
         opt_workers[] = "--workers", opt_replicas[] = "--replicas";
    char *const scheduler_argv[] = {self,        scheduler, opt_port,     number, opt_servers, many,
                                    opt_workers, one,       opt_replicas, copies, NULL};
    code = program_start(&job->scheduler, scheduler_argv, job->quiet, -1);
    for (unsigned i = 0; i < servers && code == 0; i++)
        code = job_add_server(job, i);
    if (code != 0)
        return code;
    paramo_config cfg;
    paramo_config_init(&cfg);
    cfg.roles = PARAMO_ROLE_WORKER;
    cfg.scheduler = job->address;
    cfg.token = getenv("PARAMO_TOKEN");
    cfg.van = getenv("PARAMO_VAN");
    return join(job, &cfg);
}

int job_start_embedded(struct bench_job *job)
{
    paramo_config cfg;
    paramo_config_init(&cfg);
    cfg.roles = PARAMO_ROLE_ALL;
    cfg.num_servers = cfg.num_workers = 1;
    return join(job, &cfg);
}

int job_command(pid_t *pid, char *const argv[])
{
    return program_start(pid, argv, 1, -1);
}

static int command_poll(pid_t *pid, int flags)
{
    int status;
    pid_t ended = waitpid(*pid, &status, flags);
    if (ended == 0)
        return 0;
    *pid = 0;
    if (ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 1;
    (void)fprintf(stderr, "paramo bench: a command that the benchmark runs failed with exit code %d\n",
                  ended > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return -1;
}

int job_command_ended(pid_t *pid)
{
    return command_poll(pid, WNOHANG);
}

int job_command_run(char *const argv[])
{
    pid_t pid = 0;
    int code = job_command(&pid, argv);
    return code != 0 ? code : command_poll(&pid, 0) < 0 ? CODE_FAILED : 0;
}

int job_command_read(char *const argv[], FILE *to)
{
    pid_t pid = 0;
    int code = program_start(&pid, argv, 1, fileno(to));
    return code != 0 ? code : command_poll(&pid, 0) < 0 ? CODE_FAILED : 0;
}

void job_command_stop(pid_t *pid)
{
    child_end(pid, 0);
}

void job_kill_server(struct bench_job *job, unsigned i)
{
    child_end(&job->server[i], 0);
}

void job_stop(struct bench_job *job)
{
    int was_whole = job->worker != NULL;
    paramo_worker_close(job->worker);
    (void)paramo_stop(job->node); /* the job ends when its last worker leaves; an error does not matter */
    for (size_t i = 0; i < JOB_SERVERS_MAX; i++)
        child_end(&job->server[i], was_whole ? END_MS : 0);
    child_end(&job->scheduler, was_whole ? END_MS : 0);
    if (job->port_fd > 0)
        (void)close(job->port_fd);
    memset(job, 0, sizeof *job);
}

/* ---- raw peers ---- */

static int connected_pair(int ends[2])
{
    int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {.tv_sec = SOCKET_SECONDS};
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, from, own;
    socklen_t len = sizeof addr, from_len = sizeof from, own_len = sizeof own;
    ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ends[1] = -1;
    int ok = listener >= 0 && ends[0] >= 0 && bind(listener, (struct sockaddr *)&addr, sizeof addr) == 0 &&
             listen(listener, 1) == 0 && getsockname(listener, (struct sockaddr *)&addr, &len) == 0 &&
             connect(ends[0], (struct sockaddr *)&addr, sizeof addr) == 0 &&
             getsockname(ends[0], (struct sockaddr *)&own, &own_len) == 0 &&
             (ends[1] = accept4(listener, (struct sockaddr *)&from, &from_len, SOCK_CLOEXEC)) >= 0;
    if (ok && from.sin_port != own.sin_port) { /* another process has connected first */
        errno = ECONNREFUSED;
        ok = 0;
    }
    for (int i = 0; ok && i < 2; i++)
        ok = setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0 &&
             setsockopt(ends[i], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0;
    /* the far end has no time limit for receiving: it ends with the connection */
    ok = ok && setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0;
    int code = ok ? 0 : bench_system("no loopback connection");
    if (listener >= 0)
        (void)close(listener);
    for (int i = 0; !ok && i < 2; i++)
        if (ends[i] >= 0)
            (void)close(ends[i]);
    return code;
}

int peer_start(struct bench_peer *peer, void (*serve)(int fd))
{
    int ends[2];
    int code = connected_pair(ends);
    if (code != 0)
        return code;
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        bind_to(parent);
        (void)close(ends[0]);
        serve(ends[1]);
        _exit(0);
    }
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        return bench_system("fork");
    }
    *peer = (struct bench_peer){.pid = pid, .fd = ends[0]};
    return 0;
}

void peer_stop(struct bench_peer *peer)
{
    if (peer->pid == 0)
        return;
    (void)close(peer->fd);
    child_end(&peer->pid, 0);
}

int busy_start(pid_t *pids, size_t n)
{
    pid_t parent = getpid();
    for (size_t i = 0; i < n; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return bench_system("fork");
        if (pid == 0) {
            bind_to(parent);
            for (volatile uint64_t x = 0;; x++)
                ;
        }
        pids[i] = pid;
    }
    return 0;
}

void busy_stop(pid_t *pids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        child_end(&pids[i], 0);
}

/* ---- /proc ---- */

int process_facts(pid_t pid, struct process_facts *facts)
{
    char path[64], row[256];
    unsigned long rss = 0, threads = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return bench_system(path);
    while (fgets(row, sizeof row, f)) {
        (void)sscanf(row, "VmRSS: %lu", &rss);
        (void)sscanf(row, "Threads: %lu", &threads);
    }
    (void)fclose(f);
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    if (!dir)
        return bench_system(path);
    size_t descriptors = 0;
    while (readdir(dir))
        descriptors++;
    (void)closedir(dir);
    *facts = (struct process_facts){
        .rss = (double)rss * 1024, .threads = (double)threads, .descriptors = (double)descriptors - 2};
    return 0;
}
