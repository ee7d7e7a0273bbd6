/*
 * paramo scheduler, server, worker: one role of a job, for a cluster that is started by hand or by another program.
 * The first two run the node in this process; 'worker' sets the environment of a worker and executes COMMAND.
 *
 * Settings come from the environment (paramo_config_from_env) and from the options, which win.
 * Tests: test/e2e/roles.sh.
 */
#include "cmd/command.h"
#include "cmd/exitcode.h"
#include "cmd/options.h"
#include "cmd/token.h"
#include "cmd/verbs.h"

#include "paramo/paramo.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NODE_EXIT_CODES                                                                                      \
    "Exit code: 0 when the job ended in order, 1 failed (one line on standard error says why), 2 wrong\n"    \
    "usage, 3 a file or folder is missing, malformed or damaged or cannot be written, 4 a node of the\n"     \
    "cluster died, cannot be reached or was refused, or the port cannot be opened, 130 or 143\n"             \
    "stopped by SIGINT or SIGTERM.\n"                                                                        \
    "\n"

struct role {
    enum verb verb;
    paramo_role role;
    const char *usage, *more;
};

static const struct role roles[] = {
    {VERB_SCHEDULER, PARAMO_ROLE_SCHEDULER,
     "usage: paramo scheduler --port PORT --servers S --workers W [options]\n"
     "\n"
     "Runs the scheduler of a job until the job is over.\n",
     NODE_EXIT_CODES "  paramo scheduler --port 9000 --servers 2 --workers 4 --state /var/lib/job\n"
                     "  paramo scheduler --port 9000 --servers 2 --workers 4 \\\n"
                     "      --meta etcd://10.0.0.7:2379/clicks\n"},
    {VERB_SERVER, PARAMO_ROLE_SERVER,
     "usage: paramo server --scheduler HOST:PORT [options]\n"
     "\n"
     "Runs a server of a job until the job is over. A server that joins later takes its share of the keys.\n"
     "After SIGTERM it migrates its partitions to others, for at most a minute, and leaves (paramo drain).\n",
     NODE_EXIT_CODES "  paramo server --scheduler 127.0.0.1:9000\n"},
    {VERB_WORKER, PARAMO_ROLE_WORKER,
     "usage: paramo worker --scheduler HOST:PORT [options] [--] COMMAND...\n"
     "\n"
     "Runs COMMAND ('paramo train ...' or any program that uses the library) as a worker of a job: sets its\n"
     "environment (DMLC_ROLE, DMLC_PS_ROOT_URI, DMLC_PS_ROOT_PORT ...) and executes it.\n",
     "Exit code: COMMAND's; 2 for wrong usage, 3 if the token file cannot be read, 126 or 127 if COMMAND\n"
     "cannot be run.\n"
     "\n"
     "  paramo worker --scheduler 127.0.0.1:9000 -- \\\n"
     "      paramo train --model lr --data train.ffm --model-out model\n"},
};

struct role_settings {
    paramo_config cfg;
    int log_level;
    char token[TOKEN_BYTES];
    char address[300]; /* of the scheduler, from --listen and --port */
};

/* Is this host:port, with an IPv6 address in brackets? */
static int whole_address(const char *address)
{
    const char *colon = strrchr(address, ':');
    size_t host = colon ? (size_t)(colon - address) : 0;
    char *end = NULL;
    errno = 0;
    long port = colon && colon[1] >= '0' && colon[1] <= '9' ? strtol(colon + 1, &end, 10) : 0;
    int brackets = *address == '[';
    int whole = brackets ? host > 2 && colon[-1] == ']' : host > 0 && !memchr(address, ':', host);
    return whole && errno == 0 && port >= 1 && port <= 65535 && *end == '\0';
}

/* Copies the first of several addresses with commas between them. */
static void first_address(const char *list, char *address, size_t capacity)
{
    snprintf(address, capacity, "%.*s", (int)strcspn(list, ","), list);
}

static int has_port_each(const char *list)
{
    int whole = 1;
    for (const char *at = list; whole && at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char address[300];
        first_address(at, address, sizeof address);
        whole = whole_address(address);
    }
    return whole;
}

/* Copies the options of the command line into the configuration. -1: continue; otherwise the exit code. */
static int set_options(const struct options *o, struct role_settings *s)
{
    for (unsigned id = 0; id < OPTION_ALL; id++) {
        const char *heading;
        char letter;
        const paramo_option *option = option_line(o->verb, id, &heading, &letter);
        if (!option || !option_given(o, id) || id == OPT_TOKEN_FILE || id == OPT_VERBOSE)
            continue;
        if (paramo_config_set(&s->cfg, option->name, o->state[id].raw))
            return options_wrong(o, "%s", paramo_last_error());
    }
    const char *scheduler = option_text(o, OPT_SCHEDULER), *meta = option_text(o, OPT_META);
    if (option_given(o, OPT_SCHEDULER) && !has_port_each(scheduler))
        return options_wrong(
            o, "--scheduler '%s' is not HOST:PORT or [IPV6]:PORT with a port from 1 to 65535", scheduler);
    if (option_given(o, OPT_META) && strncmp(meta, "etcd://", 7) != 0) /* the node checks the rest */
        return options_wrong(o, "--meta '%s' is not etcd://HOST:PORT[,HOST:PORT...][/JOB]", meta);
    if (option_given(o, OPT_TOKEN) && option_given(o, OPT_TOKEN_FILE))
        return options_wrong(o, "--token and --token-file both give the secret: give one of them");
    if (option_given(o, OPT_TOKEN_FILE)) {
        int code = token_read(verb_name(o->verb), option_text(o, OPT_TOKEN_FILE), s->token);
        if (code)
            return code;
        s->cfg.token = s->token;
    }
    if (option_flag(o, OPT_VERBOSE))
        s->log_level = 2;
    return -1;
}

static void set_scheduler_address(struct role_settings *s)
{
    const char *host = s->cfg.listen ? s->cfg.listen : "127.0.0.1";
    const char *format = strchr(host, ':') && *host != '[' ? "[%s]:%u" : "%s:%u";
    snprintf(s->address, sizeof s->address, format, host, (unsigned)s->cfg.port);
    s->cfg.scheduler = s->address;
}

/* ---- the node itself ---- */

static paramo_node *running_node;
static volatile sig_atomic_t stopped_by;

static int drains; /* SIGTERM drains the node: it is a server */

static void on_signal(int sig)
{
    stopped_by = sig;
    if (sig == SIGTERM && drains)
        paramo_drain(running_node);
    else
        paramo_interrupt(running_node);
}

static int run_node(const struct role *r, const struct role_settings *s)
{
    paramo_log_level(s->log_level);
    paramo_node *node;
    paramo_err err = paramo_create(&s->cfg, &node);
    if (err != PARAMO_OK)
        return code_fail(verb_name(r->verb), err, paramo_last_error());
    running_node = node;
    drains = r->role == PARAMO_ROLE_SERVER;
    /* SA_RESETHAND: a second signal ends the process at once. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);

    err = paramo_join(node);
    char cause[512] = "";
    if (err != PARAMO_OK)
        snprintf(cause, sizeof cause, "%s", paramo_last_error());
    paramo_err end = paramo_stop(node);
    if (err == PARAMO_OK && end != PARAMO_OK) {
        err = end;
        snprintf(cause, sizeof cause, "%s", paramo_last_error());
    }
    if (stopped_by)
        return 128 + stopped_by;
    if (s->cfg.meta && err == PARAMO_E_CLOSED)
        return CODE_DONE; /* a scheduler that stood by until the job was over */
    return err == PARAMO_OK ? CODE_DONE : code_fail(verb_name(r->verb), err, cause);
}

/* ---- a worker ---- */

static void set_number(const char *name, uint32_t value)
{
    char text[16];
    snprintf(text, sizeof text, "%u", value);
    setenv(name, text, 1);
}

static int become_worker(const struct role *r, const struct role_settings *s, char **command)
{
    const paramo_config *cfg = &s->cfg;
    char first[300], host[256];
    first_address(cfg->scheduler, first, sizeof first);
    const char *colon = strrchr(first, ':');
    size_t host_len = colon ? (size_t)(colon - first) : 0;
    if (host_len >= sizeof host) {
        fprintf(stderr, "paramo %s: --scheduler: the host is longer than %zu bytes\n", verb_name(r->verb),
                sizeof host - 1);
        return CODE_USAGE;
    }
    int bare = *first == '[' && host_len > 2 && colon[-1] == ']'; /* the variable takes no brackets */
    host_len -= bare ? 2 : 0;
    memcpy(host, first + bare, host_len);
    host[host_len] = '\0';
    setenv("DMLC_ROLE", verb_name(r->verb), 1);
    setenv("DMLC_PS_ROOT_URI", host, 1);
    setenv("DMLC_PS_ROOT_PORT", colon + 1, 1);
    if (strchr(cfg->scheduler, ','))
        setenv("PARAMO_SCHEDULER", cfg->scheduler, 1);
    else
        unsetenv("PARAMO_SCHEDULER");
    if (cfg->rank >= 0)
        set_number("DMLC_RANK", (uint32_t)cfg->rank);
    if (cfg->name)
        setenv("PARAMO_NAME", cfg->name, 1);
    if (cfg->token)
        setenv("PARAMO_TOKEN", cfg->token, 1);
    if (cfg->van)
        setenv("PARAMO_VAN", cfg->van, 1);
    if (cfg->plugin)
        setenv("PARAMO_PLUGIN", cfg->plugin, 1);
    set_number("PARAMO_TRUSTED_FABRIC", cfg->trusted_fabric);
    set_number("PARAMO_CONNECT_TIMEOUT_MS", cfg->connect_timeout_ms);
    set_number("PARAMO_SCHEDULER_WAIT_MS", cfg->scheduler_wait_ms);
    if (s->log_level > 1)
        set_number("PS_VERBOSE", (uint32_t)s->log_level);
    execvp(command_path(command[0]), command);
    int e = errno;
    fprintf(stderr, "paramo %s: cannot run '%s': %s\n", verb_name(r->verb), command[0], strerror(e));
    return command_exit_code(e);
}

/* ---- the verbs ---- */

static int missing(const struct options *o, const char *what)
{
    return options_wrong(o, "%s is missing", what);
}

static int run_role(const struct role *r, const struct options *o, struct role_settings *s)
{
    if (r->role == PARAMO_ROLE_SCHEDULER) {
        if (s->cfg.port)
            set_scheduler_address(s);
        const char *what = !s->cfg.scheduler     ? "--port"
                           : !s->cfg.num_servers ? "--servers"
                           : !s->cfg.num_workers ? "--workers"
                                                 : NULL;
        return what ? missing(o, what) : run_node(r, s);
    }
    if (!s->cfg.scheduler)
        return missing(o, "--scheduler");
    if (r->role == PARAMO_ROLE_SERVER)
        return run_node(r, s);
    return o->words ? become_worker(r, s, o->word) : missing(o, "COMMAND");
}

static int cmd_role(const struct role *r, int argc, char **argv)
{
    struct role_settings s = {.log_level = 1};
    struct options o;
    int code = options_parse(&o, r->verb, argc, argv, r->usage, r->more);
    if (code >= 0)
        return code;
    paramo_config_init(&s.cfg);
    if (r->role == PARAMO_ROLE_SCHEDULER)
        s.cfg.num_servers = s.cfg.num_workers = 0; /* both must be given */
    unsetenv("DMLC_ROLE");                         /* the verb is the role */
    paramo_err err = paramo_config_from_env(&s.cfg);
    if (err)
        return code_fail(verb_name(r->verb), err, paramo_last_error());
    s.cfg.roles = r->role;
    if (r->role == PARAMO_ROLE_SCHEDULER)
        s.cfg.port = 0; /* PORT in the environment is a server's */
    else
        s.cfg.state = s.cfg.meta = NULL;
    code = set_options(&o, &s);
    return code < 0 ? run_role(r, &o, &s) : code;
}

int cmd_scheduler(int argc, char **argv)
{
    return cmd_role(&roles[0], argc, argv);
}

int cmd_server(int argc, char **argv)
{
    return cmd_role(&roles[1], argc, argv);
}

int cmd_worker(int argc, char **argv)
{
    return cmd_role(&roles[2], argc, argv);
}
