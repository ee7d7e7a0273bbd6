#include "cmd/run_child.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

const char *child_label(const struct child *c, char *buf, size_t cap)
{
    if (strcmp(c->role, "scheduler") == 0)
        snprintf(buf, cap, "the scheduler (node 1)");
    else
        snprintf(buf, cap, "%s (node %d)", c->out.name,
                 (strcmp(c->role, "server") == 0 ? 8 : 9) + 2 * c->rank);
    return buf;
}

int run_reserve_port(uint16_t *port)
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

int run_set_environment(uint16_t port, const struct run_options *o)
{
    setenv("DMLC_PS_ROOT_URI", "127.0.0.1", 1);
    set_number("DMLC_PS_ROOT_PORT", port);
    set_number("DMLC_NUM_SERVER", o->servers);
    set_number("DMLC_NUM_WORKER", o->workers);
    set_number("PARAMO_REPLICAS", o->replicas);
    if (o->scheduler_wait_s >= 0)
        set_number("PARAMO_SCHEDULER_WAIT_MS", o->scheduler_wait_s * 1000);
    if (o->state)
        setenv("PARAMO_STATE", o->state, 1);
    /* Variables that must differ between nodes, and the address of another job's scheduler. */
    static const char *const single[] = {"PORT",        "DMLC_PORT", "DMLC_NODE_HOST", "PARAMO_LISTEN",
                                         "PARAMO_NAME", "DMLC_RANK", "DMLC_INTERFACE", "PARAMO_SCHEDULER"};
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        unsetenv(single[i]);
    if (o->state)
        unsetenv("PARAMO_META");
    if (!getenv("PARAMO_TOKEN")) {
        uint64_t random[2];
        if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
            return -1;
        char token[40];
        snprintf(token, sizeof token, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
        setenv("PARAMO_TOKEN", token, 1);
    }
    return 0;
}

/* Gives the child a log file of its own. */
static void set_log(const struct run_options *o, const struct child *c)
{
    char path[4096];
    int one = strcmp(c->role, "scheduler") == 0;
    if (!o->log_dir)
        return;
    snprintf(path, sizeof path, one ? "%s/%s.log" : "%s/%s-%d.log", o->log_dir, c->role, c->rank);
    setenv("PARAMO_LOG_FILE", path, 1);
    setenv("PARAMO_LOG_FORMAT", o->log_format, 1);
}

/* Runs in the child and never returns. If exec fails, it writes errno to fail_fd for the parent. */
__attribute__((noreturn)) static void child_exec(const struct run_options *o, const struct child *c,
                                                 pid_t parent, int out, int notify, int fail_fd,
                                                 const sigset_t *mask, const char *path, char **command)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* the parent died before prctl */
        _exit(1);
    int direct = out < 0;
    if (!direct) {
        dup2(out, STDOUT_FILENO);
        dup2(out, STDERR_FILENO);
    }
    /* Not the terminal: a read from another process group than the terminal's would stop the worker. */
    if (!direct || isatty(STDIN_FILENO)) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (null >= 0)
            dup2(null, STDIN_FILENO);
    }
    setenv("DMLC_ROLE", c->role, 1);
    set_log(o, c);
    unsetenv("PARAMO_NOTIFY_FD"); /* it would be that of a runner above this one */
    if (strcmp(c->role, "scheduler") != 0)
        set_number("DMLC_RANK", c->rank);
    else if (fcntl(notify, F_SETFD, 0) == 0)
        set_number("PARAMO_NOTIFY_FD", notify);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(path, command);
    int e = errno;
    run_write(fail_fd, (const char *)&e, sizeof e);
    _exit(127);
}

int child_start(const struct run_options *o, struct child *c, int notify, const sigset_t *mask,
                const char *path, char **command)
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
        child_exec(o, c, parent, pipe_out[1], notify, pipe_fail[1], mask, path, command);
    setpgid(pid, pid); /* as in the child, because either may run first */
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
        fcntl(pipe_out[0], F_SETFL, O_NONBLOCK); /* not the child's end, which is another description */
    }
    c->pid = pid;
    c->running = 1;
    c->out.fd = pipe_out[0];
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
