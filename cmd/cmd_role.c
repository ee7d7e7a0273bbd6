/*
 * paramo scheduler, server, worker: one role of a job, for a cluster set up by hand or by another program.
 * The first two are the node itself; 'worker' sets the environment of a worker and becomes COMMAND.
 *
 * Settings come from the environment (paramo_config_from_env), then from the options, which win.
 * Tests: test/e2e/roles.sh.
 */
#include "cmd/command.h"
#include "cmd/exitcode.h"
#include "cmd/token.h"
#include "cmd/verbs.h"

#include "paramo/paramo.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum role_option {
    OPT_SCHEDULER = 1,
    OPT_LISTEN,
    OPT_PORT,
    OPT_ADVERTISE,
    OPT_SERVERS,
    OPT_WORKERS,
    OPT_REPLICAS,
    OPT_SHARDS,
    OPT_WEIGHT,
    OPT_DOMAIN,
    OPT_RANK,
    OPT_NAME,
    OPT_TOKEN,
    OPT_TOKEN_FILE,
    OPT_WAIT,
    OPT_SCHEDULER_WAIT,
    OPT_STATE,
    OPT_META,
    OPT_VAN,
    OPT_FABRIC,
    OPT_CHECKPOINT_DIR,
    OPT_CHECKPOINT_ALLOW,
    OPT_CHECKPOINT_EVERY,
    OPT_CHECKPOINT_FULL_EVERY,
    OPT_CHECKPOINT_KEEP,
    OPT_RESTORE,
    OPT_ON_LOSS,
    OPT_VERBOSE,
    OPT_HELP
};

#define COMMON_OPTIONS                                                                                       \
    {"token", required_argument, NULL, OPT_TOKEN}, {"token-file", required_argument, NULL, OPT_TOKEN_FILE},  \
        {"wait", required_argument, NULL, OPT_WAIT}, {"van", required_argument, NULL, OPT_VAN},              \
        {"trusted-fabric", no_argument, NULL, OPT_FABRIC}, {"verbose", no_argument, NULL, OPT_VERBOSE},      \
        {"help", no_argument, NULL, OPT_HELP},                                                               \
    {                                                                                                        \
        NULL, 0, NULL, 0                                                                                     \
    }

#define COMMON_USAGE                                                                                         \
    "      --token TOKEN       the job's secret, the same on every node; others can see it in the process "  \
    "list:\n"                                                                                                \
    "                          better in PARAMO_TOKEN or a file. Without one only loopback is served\n"      \
    "      --token-file FILE   the secret is the first line of FILE\n"                                       \
    "      --wait SECONDS      how long to wait for the scheduler and for the job to be complete (60)\n"     \
    "      --van auto|tcp|ucx  auto (the default): UCX between processes of one host and user, and over a\n" \
    "                          trusted fabric; tcp otherwise\n"                                              \
    "      --trusted-fabric    tables may go to other hosts by UCX, which neither checks nor hides them\n"   \
    "      --verbose           print the progress of the cluster\n"

#define SCHEDULER_WAIT_USAGE                                                                                 \
    "      --scheduler-wait SECONDS\n"                                                                       \
    "                          how long a scheduler that has died is looked for (1); longer, if something\n" \
    "                          restarts it. One that is only silent has 10 s and more\n"

#define NODE_EXIT_CODES                                                                                      \
    "\n"                                                                                                     \
    "Exit code: 0 when the job ended in order, 4 when a node died, could not be reached or bound, or was\n"  \
    "refused, 1 for what else went wrong (one line on standard error says why),\n"                           \
    "2 for wrong usage, 130 or 143 when stopped by SIGINT or SIGTERM.\n"

struct role {
    const char *verb;
    paramo_role role;
    const char *env_name;
    const char *usage;
    const struct option *options;
};

static const struct option scheduler_options[] = {
    {"port", required_argument, NULL, OPT_PORT},
    {"servers", required_argument, NULL, OPT_SERVERS},
    {"workers", required_argument, NULL, OPT_WORKERS},
    {"replicas", required_argument, NULL, OPT_REPLICAS},
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"state", required_argument, NULL, OPT_STATE},
    {"meta", required_argument, NULL, OPT_META},
    {"checkpoint-dir", required_argument, NULL, OPT_CHECKPOINT_DIR},
    {"checkpoint-allow", required_argument, NULL, OPT_CHECKPOINT_ALLOW},
    {"checkpoint-every", required_argument, NULL, OPT_CHECKPOINT_EVERY},
    {"checkpoint-full-every", required_argument, NULL, OPT_CHECKPOINT_FULL_EVERY},
    {"checkpoint-keep", required_argument, NULL, OPT_CHECKPOINT_KEEP},
    {"restore", required_argument, NULL, OPT_RESTORE},
    {"on-loss", required_argument, NULL, OPT_ON_LOSS},
    COMMON_OPTIONS,
};
static const struct option server_options[] = {
    {"scheduler", required_argument, NULL, OPT_SCHEDULER},
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"port", required_argument, NULL, OPT_PORT},
    {"advertise", required_argument, NULL, OPT_ADVERTISE},
    {"shards", required_argument, NULL, OPT_SHARDS},
    {"weight", required_argument, NULL, OPT_WEIGHT},
    {"domain", required_argument, NULL, OPT_DOMAIN},
    {"rank", required_argument, NULL, OPT_RANK},
    {"name", required_argument, NULL, OPT_NAME},
    {"scheduler-wait", required_argument, NULL, OPT_SCHEDULER_WAIT},
    COMMON_OPTIONS,
};
static const struct option worker_options[] = {
    {"scheduler", required_argument, NULL, OPT_SCHEDULER},
    {"rank", required_argument, NULL, OPT_RANK},
    {"name", required_argument, NULL, OPT_NAME},
    {"scheduler-wait", required_argument, NULL, OPT_SCHEDULER_WAIT},
    COMMON_OPTIONS,
};

static const struct role roles[] = {
    {"scheduler", PARAMO_ROLE_SCHEDULER, "scheduler",
     "usage: paramo scheduler --port PORT --servers S --workers W [options]\n"
     "\n"
     "Runs the scheduler of a job until the job is over.\n"
     "\n"
     "      --port PORT         port to listen on\n"
     "      --servers S         number of servers of the job\n"
     "      --workers W         number of workers that the job starts with; more may join later\n"
     "      --replicas K        copies of every key beside its owner's, 0 to 3 (0)\n"
     "      --listen HOST       address to listen on (127.0.0.1)\n"
     "      --state DIR         keep the job's state in DIR: a scheduler that was killed can be started "
     "again\n"
     "                          with the same command. Without it the job ends with its scheduler\n"
     "      --meta etcd://HOST:PORT[,HOST:PORT...][/JOB]\n"
     "                          keep the state in etcd, under the name JOB (job). Of several schedulers "
     "with\n"
     "                          the same --meta one leads and the others stand by\n"
     "      --checkpoint-dir DIR, --checkpoint-every SECONDS\n"
     "                          take checkpoints into a folder that the scheduler and all servers see\n"
     "      --checkpoint-allow DIR[:DIR...]\n"
     "                          other folders that 'paramo checkpoint' may use. Without this option and\n"
     "                          --checkpoint-dir: any folder that contains nothing but checkpoints\n"
     "      --checkpoint-full-every N  every N-th checkpoint is full, the others are incremental (10)\n"
     "      --checkpoint-keep N     keep the last N checkpoints and their bases; 0: all (3)\n"
     "      --restore DIR       begin with the last whole checkpoint of DIR\n"
     "      --on-loss end|restore   when the last server with some rows dies: end the job (the default), or\n"
     "                          restore them from the last checkpoint in --checkpoint-dir\n" COMMON_USAGE
         NODE_EXIT_CODES "\n"
     "  paramo scheduler --port 9000 --servers 2 --workers 4 --state /var/lib/paramo/job\n"
     "  paramo scheduler --port 9000 --servers 2 --workers 4 --meta etcd://10.0.0.7:2379/clicks\n",
     scheduler_options},
    {"server", PARAMO_ROLE_SERVER, "server",
     "usage: paramo server --scheduler HOST:PORT [options]\n"
     "\n"
     "Runs a server of a job until the job is over. A server that joins later takes its share of the keys.\n"
     "After SIGTERM it migrates its partitions to others, for at most a minute, and leaves (paramo drain).\n"
     "\n"
     "      --scheduler ADDRESS the scheduler's host:port or [v6]:port, or a list with commas of the\n"
     "                          schedulers that share a --meta\n"
     "      --listen HOST       address to listen on (127.0.0.1)\n"
     "      --port PORT         port to listen on (any free one)\n"
     "      --advertise HOST    address by which others reach this server\n"
     "      --shards N          shards (threads) of this server (1)\n"
     "      --weight N          share of the keys for each of its shards, relative to others (1)\n"
     "      --domain NAME       failure domain, such as a rack (its host)\n"
     "      --rank N            wanted rank\n"
     "      --name NAME         node name: a restarted node of this name gets its rank "
     "back\n" SCHEDULER_WAIT_USAGE COMMON_USAGE NODE_EXIT_CODES "\n"
     "  paramo server --scheduler 127.0.0.1:9000\n",
     server_options},
    {"worker", PARAMO_ROLE_WORKER, "worker",
     "usage: paramo worker --scheduler HOST:PORT [options] [--] COMMAND...\n"
     "\n"
     "Runs COMMAND ('paramo train ...' or any program that uses the library) as a worker of a job: sets its\n"
     "environment (DMLC_ROLE, DMLC_PS_ROOT_URI, DMLC_PS_ROOT_PORT ...) and becomes it.\n"
     "\n"
     "      --scheduler ADDRESS the scheduler's host:port or [v6]:port, or a list with commas of the\n"
     "                          schedulers that share a --meta\n"
     "      --rank N            wanted rank\n"
     "      --name NAME         node name: a restarted node of this name gets its rank "
     "back\n" SCHEDULER_WAIT_USAGE COMMON_USAGE "\n"
     "Exit code: COMMAND's; 2 for wrong usage, 126 or 127 if COMMAND cannot be run.\n"
     "\n"
     "  paramo worker --scheduler 127.0.0.1:9000 -- paramo train --model lr --data train.ffm --model-out "
     "model\n",
     worker_options},
};

struct role_settings {
    paramo_config cfg;
    int log_level;
    char token[TOKEN_BYTES];
    char address[300]; /* the scheduler's own, from --listen and --port */
};

/* 0, or the exit code after a message. */
static int parse_number(const struct role *r, const char *option, const char *text, long low, long high,
                        long *value)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || v < low || v > high) {
        fprintf(stderr, "paramo %s: --%s wants a number from %ld to %ld, not '%s'\n", r->verb, option, low,
                high, text);
        return CODE_USAGE;
    }
    *value = v;
    return 0;
}

/* host:port, and an IPv6 address in brackets. */
static int whole_address(const char *address)
{
    const char *colon = strrchr(address, ':');
    size_t host = colon != NULL ? (size_t)(colon - address) : 0;
    char *end = NULL;
    errno = 0;
    long port = colon != NULL && colon[1] >= '0' && colon[1] <= '9' ? strtol(colon + 1, &end, 10) : 0;
    int brackets = *address == '[';
    int whole = brackets ? host > 2 && colon[-1] == ']' : host > 0 && memchr(address, ':', host) == NULL;
    return whole && errno == 0 && port >= 1 && port <= 65535 && *end == '\0';
}

/* The first of addresses with commas between. */
static void first_address(const char *list, char *address, size_t capacity)
{
    snprintf(address, capacity, "%.*s", (int)strcspn(list, ","), list);
}

/* 0, or the exit code after a message. */
static int check_scheduler(const struct role *r, const char *list)
{
    int whole = 1;
    for (const char *at = list; whole && at != NULL; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char address[300];
        first_address(at, address, sizeof address);
        whole = whole_address(address);
    }
    if (!whole) {
        fprintf(
            stderr,
            "paramo %s: --scheduler wants HOST:PORT or [IPV6]:PORT with a port from 1 to 65535, not '%s'\n",
            r->verb, list);
        return CODE_USAGE;
    }
    return 0;
}

static int set_option(const struct role *r, const struct option *option, struct role_settings *s)
{
    paramo_config *cfg = &s->cfg;
    long v = 0;
    int code = 0;
    switch ((enum role_option)option->val) {
    case OPT_SCHEDULER:
        cfg->scheduler = optarg;
        code = check_scheduler(r, optarg);
        break;
    case OPT_LISTEN:
        cfg->listen = optarg;
        break;
    case OPT_PORT:
        code = parse_number(r, option->name, optarg, 1, 65535, &v);
        cfg->port = (uint16_t)v;
        break;
    case OPT_ADVERTISE:
        cfg->advertise = optarg;
        break;
    case OPT_SERVERS:
        code = parse_number(r, option->name, optarg, 1, 1024, &v);
        cfg->num_servers = (uint32_t)v;
        break;
    case OPT_WORKERS:
        code = parse_number(r, option->name, optarg, 1, 4096, &v);
        cfg->num_workers = (uint32_t)v;
        break;
    case OPT_REPLICAS:
        code = parse_number(r, option->name, optarg, 0, 3, &v);
        cfg->replicas = (uint32_t)v;
        break;
    case OPT_SHARDS:
        code = parse_number(r, option->name, optarg, 1, 256, &v);
        cfg->shards = (uint32_t)v;
        break;
    case OPT_WEIGHT:
        code = parse_number(r, option->name, optarg, 1, 1000000, &v);
        cfg->weight = (uint32_t)v;
        break;
    case OPT_DOMAIN:
        cfg->domain = optarg;
        break;
    case OPT_RANK:
        code = parse_number(r, option->name, optarg, 0, 65534, &v);
        cfg->rank = (int32_t)v;
        break;
    case OPT_NAME:
        cfg->name = optarg;
        break;
    case OPT_TOKEN:
        cfg->token = optarg;
        break;
    case OPT_TOKEN_FILE:
        code = token_read(r->verb, optarg, s->token);
        cfg->token = s->token;
        break;
    case OPT_WAIT:
        code = parse_number(r, option->name, optarg, 1, 86400, &v);
        cfg->connect_timeout_ms = (uint32_t)v * 1000;
        break;
    case OPT_SCHEDULER_WAIT:
        code = parse_number(r, option->name, optarg, 0, 86400, &v);
        cfg->scheduler_wait_ms = (uint32_t)v * 1000;
        break;
    case OPT_STATE:
        cfg->state = optarg;
        break;
    case OPT_META:
        cfg->meta = optarg;
        if (strncmp(optarg, "etcd://", 7) != 0) { /* the rest is the job's to check */
            fprintf(stderr, "paramo %s: --meta wants etcd://HOST:PORT[,HOST:PORT...][/JOB], not '%s'\n",
                    r->verb, optarg);
            code = CODE_USAGE;
        }
        break;
    case OPT_VAN:
        cfg->van = optarg;
        break;
    case OPT_FABRIC:
        cfg->trusted_fabric = 1;
        break;
    case OPT_CHECKPOINT_ALLOW:
        cfg->checkpoint_allow = optarg;
        break;
    case OPT_CHECKPOINT_DIR:
        cfg->checkpoint_dir = optarg;
        break;
    case OPT_CHECKPOINT_EVERY:
        code = parse_number(r, option->name, optarg, 1, 604800, &v);
        cfg->checkpoint_every_s = (uint32_t)v;
        break;
    case OPT_CHECKPOINT_FULL_EVERY:
        code = parse_number(r, option->name, optarg, 1, 1024, &v);
        cfg->checkpoint_full_every = (uint32_t)v;
        break;
    case OPT_CHECKPOINT_KEEP:
        code = parse_number(r, option->name, optarg, 0, INT32_MAX, &v);
        cfg->checkpoint_keep = (uint32_t)v;
        break;
    case OPT_RESTORE:
        cfg->restore_dir = optarg;
        break;
    case OPT_ON_LOSS:
        cfg->on_loss = strcmp(optarg, "restore") == 0 ? PARAMO_ON_LOSS_RESTORE : PARAMO_ON_LOSS_END;
        if (cfg->on_loss == PARAMO_ON_LOSS_END && strcmp(optarg, "end") != 0) {
            fprintf(stderr, "paramo %s: --on-loss wants end or restore, not '%s'\n", r->verb, optarg);
            return CODE_USAGE;
        }
        break;
    case OPT_VERBOSE:
        s->log_level = 2;
        break;
    case OPT_HELP:
        break;
    }
    return code;
}

/* -1: go on; else the exit code. */
static int parse_options(const struct role *r, int argc, char **argv, struct role_settings *s)
{
    optind = 0; /* glibc: start over */
    opterr = 0;
    int c, index = 0;
    while ((c = getopt_long(argc, argv, "+:", r->options, &index)) != -1) {
        if (c == ':' || c == '?') {
            fprintf(stderr, "paramo %s: %s '%s' (see paramo %s --help)\n", r->verb,
                    c == ':' ? "no value after option" : "unknown option", argv[optind - 1], r->verb);
            return CODE_USAGE;
        }
        if (c == OPT_HELP) {
            fputs(r->usage, stdout);
            return 0;
        }
        int code = set_option(r, &r->options[index], s);
        if (code != 0)
            return code;
    }
    return -1;
}

static void set_scheduler_address(struct role_settings *s)
{
    const char *host = s->cfg.listen != NULL ? s->cfg.listen : "127.0.0.1";
    const char *format = strchr(host, ':') != NULL && *host != '[' ? "[%s]:%u" : "%s:%u";
    snprintf(s->address, sizeof s->address, format, host, (unsigned)s->cfg.port);
    s->cfg.scheduler = s->address;
}

static int missing(const struct role *r, const char *what)
{
    fprintf(stderr, "paramo %s: %s is missing (see paramo %s --help)\n", r->verb, what, r->verb);
    return CODE_USAGE;
}

/* ---- the node itself ---- */

static paramo_node *running_node;
static volatile sig_atomic_t stopped_by;

static int drains; /* a server, by SIGTERM */

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
        return code_fail(r->verb, err, paramo_last_error());
    running_node = node;
    drains = r->role == PARAMO_ROLE_SERVER;
    /* Once: a second signal ends the process at once. */
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
    if (s->cfg.meta != NULL && err == PARAMO_E_CLOSED)
        return CODE_DONE; /* it stood by, and the job is over */
    return err == PARAMO_OK ? CODE_DONE : code_fail(r->verb, err, cause);
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
    size_t host_len = colon != NULL ? (size_t)(colon - first) : 0;
    if (host_len >= sizeof host) {
        fprintf(stderr, "paramo %s: --scheduler: the host is longer than %zu bytes\n", r->verb,
                sizeof host - 1);
        return CODE_USAGE;
    }
    int bare = *first == '[' && host_len > 2 && colon[-1] == ']'; /* the variable has no brackets */
    host_len -= bare ? 2 : 0;
    memcpy(host, first + bare, host_len);
    host[host_len] = '\0';
    setenv("DMLC_ROLE", r->env_name, 1);
    setenv("DMLC_PS_ROOT_URI", host, 1);
    setenv("DMLC_PS_ROOT_PORT", colon + 1, 1);
    if (strchr(cfg->scheduler, ',') != NULL)
        setenv("PARAMO_SCHEDULER", cfg->scheduler, 1);
    else
        unsetenv("PARAMO_SCHEDULER");
    if (cfg->rank >= 0)
        set_number("DMLC_RANK", (uint32_t)cfg->rank);
    if (cfg->name != NULL)
        setenv("PARAMO_NAME", cfg->name, 1);
    if (cfg->token != NULL)
        setenv("PARAMO_TOKEN", cfg->token, 1);
    if (cfg->van != NULL)
        setenv("PARAMO_VAN", cfg->van, 1);
    set_number("PARAMO_TRUSTED_FABRIC", cfg->trusted_fabric);
    set_number("PARAMO_CONNECT_TIMEOUT_MS", cfg->connect_timeout_ms);
    set_number("PARAMO_SCHEDULER_WAIT_MS", cfg->scheduler_wait_ms);
    if (s->log_level > 1)
        set_number("PS_VERBOSE", (uint32_t)s->log_level);
    execvp(command_path(command[0]), command);
    int e = errno;
    fprintf(stderr, "paramo %s: cannot run '%s': %s\n", r->verb, command[0], strerror(e));
    return command_exit_code(e);
}

/* ---- the verbs ---- */

static int cmd_role(const struct role *r, int argc, char **argv)
{
    struct role_settings s = {.log_level = 1};
    paramo_config_init(&s.cfg);
    if (r->role == PARAMO_ROLE_SCHEDULER)
        s.cfg.num_servers = s.cfg.num_workers = 0; /* must be said */
    unsetenv("DMLC_ROLE");                         /* the verb says it */
    paramo_err err = paramo_config_from_env(&s.cfg);
    if (err != PARAMO_OK)
        return code_fail(r->verb, err, paramo_last_error());
    s.cfg.roles = r->role;
    if (r->role == PARAMO_ROLE_SCHEDULER)
        s.cfg.port = 0; /* PORT in the environment is a server's */
    else
        s.cfg.state = s.cfg.meta = NULL;
    int code = parse_options(r, argc, argv, &s);
    if (code >= 0)
        return code;
    if (r->role == PARAMO_ROLE_WORKER) {
        if (s.cfg.scheduler == NULL)
            return missing(r, "--scheduler");
        return optind >= argc ? missing(r, "COMMAND") : become_worker(r, &s, argv + optind);
    }
    if (optind < argc) {
        fprintf(stderr, "paramo %s: there is no argument '%s' (see paramo %s --help)\n", r->verb,
                argv[optind], r->verb);
        return CODE_USAGE;
    }
    if (r->role == PARAMO_ROLE_SERVER)
        return s.cfg.scheduler == NULL ? missing(r, "--scheduler") : run_node(r, &s);

    if (s.cfg.port != 0)
        set_scheduler_address(&s);
    if (s.cfg.scheduler == NULL)
        return missing(r, "--port");
    if (s.cfg.num_servers == 0)
        return missing(r, "--servers");
    if (s.cfg.num_workers == 0)
        return missing(r, "--workers");
    return run_node(r, &s);
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
