#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cpu.h"
#include "base/log.h"
#include "cluster/checkpoint/ckpt.h"
#include "cluster/meta/store_etcd.h"
#include "env/process.h"
#include "node/config.h"
#include "node/node.h"
#include "van/local.h"

void options_complete(void *whole, size_t whole_size, const void *given)
{
    if (!given)
        return;
    size_t size;
    memcpy(&size, given, sizeof size);
    if (size > whole_size)
        size = whole_size;
    if (size > sizeof size)
        memcpy((char *)whole + sizeof size, (const char *)given + sizeof size, size - sizeof size);
}

void options_copy_out(void *given, const void *whole, size_t whole_size)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    if (size > whole_size)
        size = whole_size;
    if (size > sizeof size)
        memcpy((char *)given + sizeof size, (const char *)whole + sizeof size, size - sizeof size);
}

void paramo_config_init(paramo_config *config)
{
    *config = (paramo_config){
        .size = sizeof *config,
        .rank = -1,
        .num_servers = 1,
        .num_workers = 1,
        .shards = 1,
        .van = "auto",
        .connect_timeout_ms = 60000,
        .request_timeout_ms = 60000,
        .heartbeat_ms = 1000,
        .heartbeat_timeout_ms = 10000,
        .scheduler_wait_ms = 1000,
        .notify_fd = -1,
        .max_message_bytes = UINT64_C(1) << 30,
        .handler_wait_ms = 10000,
        .weight = 1,
        .checkpoint_full_every = 10,
        .checkpoint_keep = 3,
    };
}

/* ---- the environment ---------------------------------------------------------------------------------- */

static paramo_err variable_number(const char *name, uint64_t least, uint64_t most, uint64_t scale,
                                  uint64_t *value, bool *set)
{
    *set = false;
    const char *text = process_variable(name);
    if (!text)
        return PARAMO_OK;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno || *end || text[0] == '-' || number < least || number > most)
        return err_set(PARAMO_E_INVALID, "%s=%s: not a number from %llu to %llu", name, text,
                       (unsigned long long)least, (unsigned long long)most);
    *value = number * scale;
    *set = true;
    return PARAMO_OK;
}

static paramo_err variable_u32(const char *name, uint32_t least, uint32_t most, uint32_t scale,
                               uint32_t *field)
{
    uint64_t value = 0;
    bool set;
    paramo_err err = variable_number(name, least, most, scale, &value, &set);
    if (!err && set)
        *field = (uint32_t)value;
    return err;
}

/* The caller may change its configuration, and the environment may change, so both are copied. */
static paramo_err keep(const char *text, const char **field)
{
    const char *kept = process_keep(text);
    if (!kept)
        return err_memory(strlen(text) + 1);
    *field = kept;
    return PARAMO_OK;
}

static paramo_err variable_text(const char *name, const char **field)
{
    const char *text = process_variable(name);
    return text ? keep(text, field) : PARAMO_OK;
}

static paramo_err variable_role(paramo_config *config)
{
    const char *role = process_variable("DMLC_ROLE");
    if (!role)
        return PARAMO_OK;
    if (strcasecmp(role, "scheduler") == 0)
        config->roles = PARAMO_ROLE_SCHEDULER;
    else if (strcasecmp(role, "server") == 0)
        config->roles = PARAMO_ROLE_SERVER;
    else if (strcasecmp(role, "worker") == 0)
        config->roles = PARAMO_ROLE_WORKER;
    else
        return err_set(PARAMO_E_INVALID, "DMLC_ROLE=%s: not scheduler, server or worker", role);
    return PARAMO_OK;
}

/* ps-lite's names of transports. Its own were ZeroMQ over TCP, InfiniBand verbs and a UCX of its own
 * protocol. */
static paramo_err variable_van(paramo_config *config)
{
    const char *type = process_variable("DMLC_PS_VAN_TYPE");
    if (!type)
        return PARAMO_OK;
    static const char *const names[][2] = {
        {"zmq", "auto"},    {"p3", "auto"},       {"0", "auto"},    {"ibverbs", "auto"}, {"1", "auto"},
        {"fabric", "auto"}, {"multivan", "auto"}, {"auto", "auto"}, {"tcp", "tcp"},      {"ucx", "ucx"}};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcasecmp(type, names[i][0]) == 0) {
            config->van = names[i][1];
            return PARAMO_OK;
        }
    }
    return err_set(PARAMO_E_INVALID, "DMLC_PS_VAN_TYPE=%s: not zmq, tcp, ucx, ibverbs, fabric or multivan",
                   type);
}

/* Where this node listens and is reached, from DMLC_NODE_HOST, DMLC_INTERFACE and DMLC_LOCAL. */
static paramo_err variable_host(paramo_config *config)
{
    char host[ADDR_HOST_MAX];
    const char *interface = process_variable("DMLC_INTERFACE");
    uint32_t local = 0;
    paramo_err err = variable_u32("DMLC_LOCAL", 0, 1, 1, &local);
    if (err || config->roles == PARAMO_ROLE_SCHEDULER)
        return err; /* its address is DMLC_PS_ROOT_URI */
    const char *node = process_variable("DMLC_NODE_HOST");
    if (local) {
        node = "127.0.0.1";
    } else if (!node && interface) {
        err = local_interface(interface, host);
        if (err)
            return err_prefix(err, "DMLC_INTERFACE=%s", interface);
        node = host;
    }
    if (node)
        err = keep(node, &config->listen);
    if (node && !err)
        config->advertise = config->listen;
    return err;
}

static paramo_err variable_texts(paramo_config *config)
{
    /* of PARAMO_SCHEDULER's several addresses DMLC_PS_ROOT_URI is the first */
    bool scheduler = config->roles == PARAMO_ROLE_SCHEDULER;
    /* servers and workers may have the scheduler's environment */
    bool keeps_state = !(config->roles & (PARAMO_ROLE_SERVER | PARAMO_ROLE_WORKER));
    const struct {
        const char *name;
        const char **field;
        bool skipped;
    } texts[] = {
        {"PARAMO_SCHEDULER", &config->scheduler, scheduler},
        {"PARAMO_LISTEN", &config->listen, false},
        {"PARAMO_TOKEN", &config->token, false},
        {"PARAMO_NAME", &config->name, false},
        {"PARAMO_DOMAIN", &config->domain, false},
        {"PARAMO_VAN", &config->van, false},
        {"PARAMO_CHECKPOINT_DIR", &config->checkpoint_dir, false},
        {"PARAMO_CHECKPOINT_ALLOW", &config->checkpoint_allow, false},
        {"PARAMO_RESTORE", &config->restore_dir, false},
        {"PARAMO_STATE", &config->state, !keeps_state},
        {"PARAMO_META", &config->meta, !keeps_state},
    };
    paramo_err err = PARAMO_OK;
    for (unsigned i = 0; i < sizeof texts / sizeof *texts && !err; i++)
        if (!texts[i].skipped)
            err = variable_text(texts[i].name, texts[i].field);
    return err;
}

paramo_err paramo_config_from_env(paramo_config *config)
{
    enum { WEEK_S = 7 * 24 * 3600 };
    uint32_t port = 0, root_port = 0, rank = UINT32_MAX, notify = UINT32_MAX, verbose = 0, ignored = 0;
    paramo_err err = variable_role(config);
    if (!err)
        err = variable_u32("DMLC_PS_ROOT_PORT", 1, 65535, 1, &root_port);
    if (!err)
        err = variable_u32("DMLC_NUM_SERVER", 0, VIEW_NODES_MAX, 1, &config->num_servers);
    if (!err)
        err = variable_u32("DMLC_NUM_WORKER", 0, VIEW_NODES_MAX, 1, &config->num_workers);
    if (!err)
        err = variable_u32("DMLC_RANK", 0, VIEW_NODES_MAX, 1, &rank);
    if (!err)
        err = variable_u32("PORT", 0, 65535, 1, &port);
    if (!err)
        err = variable_u32("DMLC_PORT", 0, 65535, 1, &port);
    if (!err)
        err = variable_u32("PS_HEARTBEAT_INTERVAL", 0, WEEK_S, 1000, &config->heartbeat_ms);
    if (!err)
        err = variable_u32("PS_HEARTBEAT_TIMEOUT", 0, WEEK_S, 1000, &config->heartbeat_timeout_ms);
    if (!err)
        err = variable_u32("PARAMO_RECOVERY_MS", 0, WEEK_S * 1000, 1, &config->recovery_ms);
    if (!err)
        err = variable_u32("PS_DROP_MSG", 0, 90, 1, &config->drop_percent);
    if (!err)
        err = variable_u32("PS_VERBOSE", 0, 1000, 1, &verbose);
    if (!err) /* what is lost is always sent again here */
        err = variable_u32("PS_RESEND", 0, 1, 1, &ignored);
    if (!err)
        err = variable_u32("PS_RESEND_TIMEOUT", 0, WEEK_S * 1000u, 1, &config->retry_ms);
    if (!err)
        err = variable_van(config);
    if (!err)
        err = variable_host(config);
    if (!err)
        err = variable_u32("PARAMO_CONNECT_TIMEOUT_MS", 1, WEEK_S * 1000u, 1, &config->connect_timeout_ms);
    if (!err)
        err = variable_u32("PARAMO_REQUEST_TIMEOUT_MS", 1, WEEK_S * 1000u, 1, &config->request_timeout_ms);
    if (!err)
        err = variable_u32("PARAMO_SCHEDULER_WAIT_MS", 0, WEEK_S * 1000u, 1, &config->scheduler_wait_ms);
    if (!err)
        err = variable_u32("PARAMO_NOTIFY_FD", 0, INT32_MAX, 1, &notify);
    if (!err)
        err = variable_u32("PARAMO_SHARDS", 1, 256, 1, &config->shards);
    if (!err)
        err = variable_u32("PARAMO_REPLICAS", 0, RING_REPLICAS_MAX, 1, &config->replicas);
    if (!err)
        err = variable_u32("PARAMO_WEIGHT", 1, RING_WEIGHT_MAX, 1, &config->weight);
    if (!err)
        err = variable_u32("PARAMO_TRUSTED_FABRIC", 0, 1, 1, &config->trusted_fabric);
    if (!err)
        err = variable_u32("PARAMO_CHECKPOINT_EVERY", 1, WEEK_S, 1, &config->checkpoint_every_s);
    if (!err)
        err = variable_u32("PARAMO_CHECKPOINT_FULL_EVERY", 1, CKPT_CHAIN_MAX, 1,
                           &config->checkpoint_full_every);
    if (!err)
        err = variable_u32("PARAMO_CHECKPOINT_KEEP", 0, INT32_MAX, 1, &config->checkpoint_keep);
    const char *cpu = process_variable("PARAMO_CPU");
    if (!err && cpu && (err = cpu_limit(cpu)) != PARAMO_OK)
        err = err_prefix(err, "PARAMO_CPU");
    if (err)
        return err;
    if (rank != UINT32_MAX)
        config->rank = (int32_t)rank;
    if (notify != UINT32_MAX)
        config->notify_fd = (int32_t)notify;
    if (port && config->roles != PARAMO_ROLE_SCHEDULER) /* the scheduler's is DMLC_PS_ROOT_PORT */
        config->port = (uint16_t)port;
    /* ps-lite's 0 means "off"; here a node always sends heartbeats, so 0 means the default. */
    if (config->heartbeat_ms == 0)
        config->heartbeat_ms = 1000;
    if (config->heartbeat_timeout_ms == 0)
        config->heartbeat_timeout_ms = 10000;
    if (verbose)
        log_set_level(verbose > 1 ? 3 : 2);
    const char *uri = process_variable("DMLC_PS_ROOT_URI");
    if (uri && root_port) {
        char root[ADDRESS_MAX];
        address_join(uri, (uint16_t)root_port, root);
        err = keep(root, &config->scheduler);
    } else if (uri || root_port) {
        return err_set(PARAMO_E_INVALID,
                       "DMLC_PS_ROOT_URI and DMLC_PS_ROOT_PORT: one is set without the other");
    }
    if (!err)
        err = variable_texts(config);
    if (err)
        return err;
    const char *on_loss = process_variable("PARAMO_ON_LOSS");
    if (on_loss && strcmp(on_loss, "end") != 0 && strcmp(on_loss, "restore") != 0)
        return err_set(PARAMO_E_INVALID, "PARAMO_ON_LOSS is '%s': neither end nor restore", on_loss);
    if (on_loss)
        config->on_loss = strcmp(on_loss, "end") == 0 ? PARAMO_ON_LOSS_END : PARAMO_ON_LOSS_RESTORE;
    return PARAMO_OK;
}

/* ---- copies and checks -------------------------------------------------------------------------------- */

static paramo_err copy_text(const char **field)
{
    if (!*field)
        return PARAMO_OK;
    char *copy = strdup(*field);
    if (!copy) {
        *field = NULL;
        return err_memory(64);
    }
    *field = copy;
    return PARAMO_OK;
}

static const char **config_text(paramo_config *config, unsigned i)
{
    const char **const fields[] = {&config->scheduler,   &config->token,          &config->listen,
                                   &config->advertise,   &config->name,           &config->van,
                                   &config->domain,      &config->state,          &config->meta,
                                   &config->restore_dir, &config->checkpoint_dir, &config->checkpoint_allow};
    return i < sizeof fields / sizeof *fields ? fields[i] : NULL;
}

paramo_err config_copy(const paramo_config *from, paramo_config *to)
{
    paramo_config_init(to);
    options_complete(to, sizeof *to, from);
    to->size = sizeof *to;
    paramo_err err = PARAMO_OK;
    const char **field;
    for (unsigned i = 0; (field = config_text(to, i)); i++) {
        if (err)
            *field = NULL; /* still owned by the caller */
        else
            err = copy_text(field);
    }
    if (err)
        config_free(to);
    return err;
}

void config_free(paramo_config *config)
{
    const char **field;
    for (unsigned i = 0; (field = config_text(config, i)); i++) {
        free((void *)(uintptr_t)*field);
        *field = NULL;
    }
}

bool config_host_is_any(const char *host)
{
    return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0 || strcmp(host, "*") == 0;
}

paramo_err config_check(const paramo_config *config)
{
    uint32_t roles = config->roles;
    if (roles != PARAMO_ROLE_SCHEDULER && roles != PARAMO_ROLE_SERVER && roles != PARAMO_ROLE_WORKER &&
        roles != PARAMO_ROLE_ALL)
        return err_set(PARAMO_E_INVALID,
                       "roles is %u: not scheduler, server, worker or all (is DMLC_ROLE set?)", roles);
    if (roles & (PARAMO_ROLE_SCHEDULER | PARAMO_ROLE_SERVER)) {
        if (config->shards < 1 || config->shards > 256)
            return err_set(PARAMO_E_INVALID, "shards is %u: not from 1 to 256", config->shards);
    }
    if (roles & PARAMO_ROLE_SERVER) {
        if (config->weight < 1 || config->weight > RING_WEIGHT_MAX)
            return err_set(PARAMO_E_INVALID, "weight is %u: not from 1 to %d", config->weight,
                           RING_WEIGHT_MAX);
        if (config->domain && strlen(config->domain) >= VIEW_HOST_MAX)
            return err_set(PARAMO_E_INVALID, "the failure domain is longer than %d bytes", VIEW_HOST_MAX - 1);
    }
    if (roles & PARAMO_ROLE_SCHEDULER) {
        if (config->num_servers > 1024 || config->num_workers > 4096 || !config->num_servers ||
            !config->num_workers)
            return err_set(PARAMO_E_INVALID, "%u servers and %u workers: not from 1 to 1024 and 1 to 4096",
                           config->num_servers, config->num_workers);
        if (config->replicas > RING_REPLICAS_MAX)
            return err_set(PARAMO_E_INVALID, "replicas is %u: not from 0 to %d", config->replicas,
                           RING_REPLICAS_MAX);
        if (config->checkpoint_full_every < 1 || config->checkpoint_full_every > CKPT_CHAIN_MAX)
            return err_set(PARAMO_E_INVALID, "checkpoint_full_every is %u: not from 1 to %d",
                           config->checkpoint_full_every, CKPT_CHAIN_MAX);
        if (config->on_loss > PARAMO_ON_LOSS_RESTORE)
            return err_set(PARAMO_E_INVALID, "on_loss is %u: there is no such paramo_on_loss",
                           config->on_loss);
        if (config->on_loss == PARAMO_ON_LOSS_RESTORE && !config->checkpoint_dir)
            return err_set(PARAMO_E_INVALID,
                           "lost rows are to be restored (--on-loss), and no folder with checkpoints is "
                           "set (--checkpoint-dir, PARAMO_CHECKPOINT_DIR)");
        if (roles == PARAMO_ROLE_ALL && config->replicas)
            return err_set(PARAMO_E_INVALID, "replicas is %u: copies in one process would be lost with it",
                           config->replicas);
    }
    if (config->checkpoint_every_s && !config->checkpoint_dir)
        return err_set(PARAMO_E_INVALID,
                       "checkpoints are to be taken every %u s (--checkpoint-every), and no folder "
                       "for them is set (--checkpoint-dir, PARAMO_CHECKPOINT_DIR)",
                       config->checkpoint_every_s);
    if (config->token && strlen(config->token) >= HELLO_TOKEN_MAX)
        return err_set(PARAMO_E_INVALID, "the token is longer than %d bytes", HELLO_TOKEN_MAX - 1);
    if (config->name && strlen(config->name) >= VIEW_NAME_MAX)
        return err_set(PARAMO_E_INVALID, "the node's name is longer than %d bytes", VIEW_NAME_MAX - 1);
    if (config->max_message_bytes < (1 << 20) || config->max_message_bytes > UINT64_C(1) << 40)
        return err_set(PARAMO_E_INVALID, "max_message_bytes is %llu: not from 1 MiB to 1 TiB",
                       (unsigned long long)config->max_message_bytes);
    const char *van = config->van ? config->van : "auto";
    bool inproc = strcmp(van, "inproc") == 0;
    if (!inproc && strcmp(van, "auto") && strcmp(van, "tcp") && strcmp(van, "ucx"))
        return err_set(PARAMO_E_INVALID, "there is no van \"%s\": auto, tcp, ucx, or inproc (embedded)", van);
    if (roles == PARAMO_ROLE_ALL ? !inproc && strcmp(van, "auto") != 0 : inproc)
        return err_set(PARAMO_E_INVALID, "the van \"%s\" does not go with %s", van,
                       roles == PARAMO_ROLE_ALL ? "an embedded node" : "a node of one role");
    if (config->state && roles != PARAMO_ROLE_SCHEDULER)
        return err_set(PARAMO_E_INVALID, "state is kept by a scheduler with a process of its own only");
    if (config->meta && (roles != PARAMO_ROLE_SCHEDULER || config->state))
        return err_set(PARAMO_E_INVALID,
                       config->state
                           ? "state is kept in a folder (--state, PARAMO_STATE) or in etcd (--meta, "
                             "PARAMO_META), not both"
                           : "state is kept in etcd by a scheduler with a process of its own only");
    paramo_err err = config->meta ? store_etcd_check(config->meta) : PARAMO_OK;
    if (err)
        return err_prefix(err, "--meta or PARAMO_META");
    if (roles == PARAMO_ROLE_ALL)
        return err;
    if (roles != PARAMO_ROLE_SCHEDULER && !config->scheduler)
        return err_set(
            PARAMO_E_INVALID,
            "the scheduler's address is not set (DMLC_PS_ROOT_URI and DMLC_PS_ROOT_PORT, or --scheduler)");
    return PARAMO_OK;
}

static bool has_token(const paramo_config *config)
{
    return config->token && *config->token;
}

static paramo_err listen_check(const paramo_config *config, const char *host)
{
    if (!has_token(config) && !local_loopback(host))
        return err_set(
            PARAMO_E_INVALID,
            "listening on %s, beyond this machine, needs a job token (PARAMO_TOKEN, the same for all "
            "nodes)",
            host);
    return PARAMO_OK;
}

static paramo_err scheduler_place(const paramo_config *config, struct place *place)
{
    char host[VIEW_HOST_MAX] = "127.0.0.1";
    uint16_t port = config->port;
    if (config->scheduler) {
        uint16_t named;
        paramo_err err = address_split(config->scheduler, host, sizeof host, &named);
        if (err)
            return err;
        if (!port)
            port = named;
    }
    const char *listen = config->listen ? config->listen : host;
    paramo_err err = listen_check(config, listen);
    if (!err)
        address_join(listen, port, place->listen);
    return err;
}

/* Where a server or worker listens by default: at the address from which it reaches the scheduler. */
static paramo_err default_host(const paramo_config *config, char host[ADDR_HOST_MAX])
{
    char scheduler[VIEW_HOST_MAX], first[ADDRESS_MAX] = "";
    uint16_t port;
    const char *list = config->scheduler;
    (void)address_next(&list, first);
    paramo_err err = address_split(first, scheduler, sizeof scheduler, &port);
    if (err)
        return err;
    if (local_loopback(scheduler)) {
        memcpy(host, "127.0.0.1", sizeof "127.0.0.1");
        return PARAMO_OK;
    }
    err = local_towards(scheduler, host);
    if (err)
        return err_prefix(err, "where to listen (--listen, PARAMO_LISTEN or DMLC_NODE_HOST says it)");
    return PARAMO_OK;
}

static paramo_err member_place(const paramo_config *config, struct place *place)
{
    char host[ADDR_HOST_MAX];
    const char *listen = config->listen;
    paramo_err err = PARAMO_OK;
    if (!listen) {
        err = default_host(config, host);
        listen = host;
    }
    if (!err)
        err = listen_check(config, listen);
    if (err)
        return err;
    address_join(listen, config->port, place->listen);
    const char *known = config->advertise ? config->advertise : config_host_is_any(listen) ? "" : listen;
    if (strlen(known) >= VIEW_HOST_MAX)
        return err_set(PARAMO_E_INVALID, "the host to advertise is longer than %d bytes", VIEW_HOST_MAX - 1);
    memcpy(place->advertise, known, strlen(known) + 1);
    return PARAMO_OK;
}

paramo_err config_place(const paramo_config *config, struct place *place)
{
    *place = (struct place){0};
    if (config->roles == PARAMO_ROLE_ALL)
        return PARAMO_OK;
    if (config->roles == PARAMO_ROLE_SCHEDULER)
        return scheduler_place(config, place);
    paramo_err err = member_place(config, place);
    if (!err || config->roles == PARAMO_ROLE_SERVER)
        return err;
    /* A worker that cannot listen still works; other nodes cannot send it requests. */
    log_info("this worker cannot receive requests from other nodes: %s", err_text());
    *place = (struct place){0};
    return PARAMO_OK;
}
