#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cpu.h"
#include "base/log.h"
#include "env/process.h"
#include "node/node.h"

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
        .max_message_bytes = UINT64_C(1) << 30,
    };
}

/* ---- the environment
 * ----------------------------------------------------------------------------------------------- */

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

static void variable_text(const char *name, const char **field)
{
    const char *text = process_variable(name);
    if (text)
        *field = text;
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

paramo_err paramo_config_from_env(paramo_config *config)
{
    static _Thread_local char root[ADDRESS_MAX];
    enum { MINUTE_MS = 60000, WEEK_S = 7 * 24 * 3600 };
    uint32_t port = 0, root_port = 0, rank = UINT32_MAX, verbose = 0;
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
        err = variable_u32("PS_DROP_MSG", 0, 90, 1, &config->drop_percent);
    if (!err)
        err = variable_u32("PS_VERBOSE", 0, 2, 1, &verbose);
    if (!err)
        err = variable_u32("PARAMO_CONNECT_TIMEOUT_MS", 1, WEEK_S * 1000u, 1, &config->connect_timeout_ms);
    if (!err)
        err = variable_u32("PARAMO_REQUEST_TIMEOUT_MS", 1, WEEK_S * 1000u, 1, &config->request_timeout_ms);
    if (!err)
        err = variable_u32("PARAMO_SHARDS", 1, 256, 1, &config->shards);
    if (!err)
        err = variable_u32("PARAMO_TRUSTED_FABRIC", 0, 1, 1, &config->trusted_fabric);
    const char *cpu = process_variable("PARAMO_CPU");
    if (!err && cpu && (err = cpu_limit(cpu)) != PARAMO_OK)
        err = err_prefix(err, "PARAMO_CPU");
    if (err)
        return err;
    if (rank != UINT32_MAX)
        config->rank = (int32_t)rank;
    if (port)
        config->port = (uint16_t)port;
    /* ps-lite's 0 means "off"; a node is never without heartbeats here, so 0 means the default. */
    if (config->heartbeat_ms == 0)
        config->heartbeat_ms = 1000;
    if (config->heartbeat_timeout_ms == 0)
        config->heartbeat_timeout_ms = 10000;
    if (verbose)
        log_set_level((int)verbose + 1);
    const char *uri = process_variable("DMLC_PS_ROOT_URI");
    if (uri && root_port) {
        address_join(uri, (uint16_t)root_port, root);
        config->scheduler = root;
    } else if (uri || root_port) {
        return err_set(PARAMO_E_INVALID,
                       "DMLC_PS_ROOT_URI and DMLC_PS_ROOT_PORT: one is set without the other");
    }
    if (config->roles != PARAMO_ROLE_SCHEDULER) {
        variable_text("DMLC_NODE_HOST", &config->listen);
        variable_text("DMLC_NODE_HOST", &config->advertise);
    }
    variable_text("PARAMO_LISTEN", &config->listen);
    variable_text("PARAMO_TOKEN", &config->token);
    variable_text("PARAMO_NAME", &config->name);
    variable_text("PARAMO_VAN", &config->van);
    return PARAMO_OK;
}

/* ---- copies and checks
 * ------------------------------------------------------------------------------------------------ */

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
    const char **const fields[] = {&config->scheduler, &config->token, &config->listen,
                                   &config->advertise, &config->name,  &config->van};
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
            *field = NULL; /* still the caller's */
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

static bool host_is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

static bool host_is_any(const char *host)
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
    if (roles & PARAMO_ROLE_SCHEDULER) {
        if (config->num_servers > 1024 || config->num_workers > 4096 || !config->num_servers ||
            !config->num_workers)
            return err_set(PARAMO_E_INVALID, "%u servers and %u workers: not from 1 to 1024 and 1 to 4096",
                           config->num_servers, config->num_workers);
    }
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
    if (roles == PARAMO_ROLE_ALL)
        return PARAMO_OK;
    if (roles != PARAMO_ROLE_SCHEDULER && !config->scheduler)
        return err_set(
            PARAMO_E_INVALID,
            "the scheduler's address is not set (DMLC_PS_ROOT_URI and DMLC_PS_ROOT_PORT, or --scheduler)");
    return PARAMO_OK;
}

static paramo_err listen_check(const paramo_config *config, const char *host)
{
    if (!host_is_loopback(host) && !(config->token && *config->token))
        return err_set(PARAMO_E_INVALID,
                       "listening on %s, beyond this machine, needs a job token (PARAMO_TOKEN)", host);
    return PARAMO_OK;
}

paramo_err config_scheduler_listen(const paramo_config *config, char address[ADDRESS_MAX])
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
        address_join(listen, port, address);
    return err;
}

paramo_err config_server_listen(const paramo_config *config, char address[ADDRESS_MAX],
                                char advertise[VIEW_HOST_MAX])
{
    const char *listen = config->listen ? config->listen : "127.0.0.1";
    char host[VIEW_HOST_MAX];
    uint16_t port;
    paramo_err err = address_split(config->scheduler, host, sizeof host, &port);
    if (!err && !config->listen && !host_is_loopback(host))
        err = err_set(PARAMO_E_INVALID,
                      "the scheduler is at %s: say where this server listens (--listen, PARAMO_LISTEN or "
                      "DMLC_NODE_HOST)",
                      config->scheduler);
    if (!err)
        err = listen_check(config, listen);
    if (err)
        return err;
    address_join(listen, config->port, address);
    const char *known = config->advertise ? config->advertise : host_is_any(listen) ? "" : listen;
    if (strlen(known) >= VIEW_HOST_MAX)
        return err_set(PARAMO_E_INVALID, "the host to advertise is longer than %d bytes", VIEW_HOST_MAX - 1);
    memcpy(advertise, known, strlen(known) + 1);
    return PARAMO_OK;
}
