#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/checkpoint/ckpt.h"
#include "cluster/meta/store_etcd.h"
#include "filter/filter_chain.h"
#include "node/config.h"
#include "node/node.h"
#include "node/settings.h"
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
    *config = (paramo_config){.size = sizeof *config, .rank = -1, .notify_fd = -1};
    settings_preset(config);
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

paramo_err config_copy(const paramo_config *from, paramo_config *to)
{
    paramo_config_init(to);
    options_complete(to, sizeof *to, from);
    to->size = sizeof *to;
    paramo_err err = PARAMO_OK;
    const char **field;
    for (unsigned i = 0; (field = settings_text(to, i)); i++) {
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
    for (unsigned i = 0; (field = settings_text(config, i)); i++) {
        free((void *)(uintptr_t)*field);
        *field = NULL;
    }
}

bool config_host_is_any(const char *host)
{
    return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0 || strcmp(host, "*") == 0;
}

paramo_err config_filters(const paramo_config *config, struct filter_chain chains[FILTER_DIRECTIONS])
{
    memset(chains, 0, FILTER_DIRECTIONS * sizeof *chains);
    paramo_err err = config->filter ? filter_chains_parse(config->filter, chains) : PARAMO_OK;
    return err ? err_prefix(err, "--filter or PARAMO_FILTER") : PARAMO_OK;
}

paramo_err config_check(const paramo_config *config)
{
    uint32_t roles = config->roles;
    if (roles != PARAMO_ROLE_SCHEDULER && roles != PARAMO_ROLE_SERVER && roles != PARAMO_ROLE_WORKER &&
        roles != PARAMO_ROLE_ALL && roles != PARAMO_ROLE_READER)
        return err_set(PARAMO_E_INVALID,
                       "roles is %u: not scheduler, server, worker, all or reader (is DMLC_ROLE set?)",
                       roles);
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
            return err_set(PARAMO_E_INVALID, "on_loss is %u: not a paramo_on_loss", config->on_loss);
        if (config->on_loss == PARAMO_ON_LOSS_RESTORE && !config->checkpoint_dir)
            return err_set(PARAMO_E_INVALID, "restoring lost rows (--on-loss) needs a folder with "
                                             "checkpoints (--checkpoint-dir, PARAMO_CHECKPOINT_DIR)");
        if (roles == PARAMO_ROLE_ALL && config->replicas)
            return err_set(
                PARAMO_E_INVALID,
                "replicas is %u: an embedded node has no copies, which would be lost with its process",
                config->replicas);
    }
    if (config->checkpoint_every_s && !config->checkpoint_dir)
        return err_set(PARAMO_E_INVALID,
                       "a checkpoint every %u s (--checkpoint-every) needs a folder (--checkpoint-dir, "
                       "PARAMO_CHECKPOINT_DIR)",
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
#define VAN_LISTED(name) ", " #name
    if (!inproc && strcmp(van, "auto") != 0 && !van_exists(van))
        return err_set(PARAMO_E_INVALID,
                       "there is no van \"%s\"; use auto" VANS(VAN_LISTED) ", or inproc (embedded)", van);
#undef VAN_LISTED
    if (roles == PARAMO_ROLE_ALL ? !inproc && strcmp(van, "auto") != 0 : inproc)
        return err_set(PARAMO_E_INVALID, "the van \"%s\" cannot be used by %s", van,
                       roles == PARAMO_ROLE_ALL ? "an embedded node" : "a node of one role");
    if (config->state && roles != PARAMO_ROLE_SCHEDULER)
        return err_set(
            PARAMO_E_INVALID,
            "only a scheduler that is a process of its own can keep state (--state, PARAMO_STATE)");
    if (config->meta && (roles != PARAMO_ROLE_SCHEDULER || config->state))
        return err_set(PARAMO_E_INVALID,
                       config->state
                           ? "state is kept in a folder (--state, PARAMO_STATE) or in etcd (--meta, "
                             "PARAMO_META), not both"
                           : "only a scheduler that is a process of its own can keep state in etcd (--meta, "
                             "PARAMO_META)");
    paramo_err err = config->meta ? store_etcd_check(config->meta) : PARAMO_OK;
    if (err)
        return err_prefix(err, "--meta or PARAMO_META");
    struct filter_chain chains[FILTER_DIRECTIONS];
    err = config_filters(config, chains);
    if (err)
        return err;
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
        return err_prefix(err, "no address to listen on; set --listen, PARAMO_LISTEN or DMLC_NODE_HOST");
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
    if (config->roles == PARAMO_ROLE_READER)
        return PARAMO_OK; /* it listens nowhere */
    paramo_err err = member_place(config, place);
    if (!err || config->roles == PARAMO_ROLE_SERVER)
        return err;
    /* A worker that cannot listen still works; other nodes cannot send it requests. */
    log_info("this worker cannot receive requests from other nodes: %s", err_text());
    *place = (struct place){0};
    return PARAMO_OK;
}
