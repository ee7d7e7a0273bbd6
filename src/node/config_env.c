/* A node's configuration from environment variables: ps-lite's, some of which set several fields, and those of the
 * table (settings.h). */
#include <string.h>
#include <strings.h>

#include "base/cpu.h"
#include "base/log.h"
#include "env/log_file.h"
#include "env/process.h"
#include "node/config.h"
#include "node/node.h"
#include "node/settings.h"
#include "van/local.h"

/* Reads a number of the table that has no field. *number stays as it is if the variable is not set. */
static paramo_err variable_number(const char *name, uint64_t *number)
{
    paramo_option_value value;
    bool given;
    paramo_err err = settings_variable(name, &value, &given);
    if (!err && given)
        *number = value.number;
    return err;
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
    else {
        paramo_option_value value;
        bool given;
        return settings_variable("DMLC_ROLE", &value, &given);
    }
    return PARAMO_OK;
}

/* ps-lite's names of transports: ZeroMQ over TCP, InfiniBand verbs, and UCX with a protocol of its own. Paramo has
 * none of them: tcp and ucx are its own vans, and the other names mean auto. */
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
    return err_set(PARAMO_E_INVALID,
                   "DMLC_PS_VAN_TYPE=%s in the environment: not zmq, tcp, ucx, ibverbs, fabric or multivan",
                   type);
}

/* Where this node listens and is reached, from DMLC_NODE_HOST, DMLC_INTERFACE and DMLC_LOCAL. */
static paramo_err variable_host(paramo_config *config)
{
    char host[ADDR_HOST_MAX];
    const char *interface = process_variable("DMLC_INTERFACE");
    uint64_t local = 0;
    paramo_err err = variable_number("DMLC_LOCAL", &local);
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
        err = settings_keep(node, &config->listen);
    if (node && !err)
        config->advertise = config->listen;
    return err;
}

static paramo_err variable_port(paramo_config *config)
{
    uint64_t port = 0;
    paramo_err err = variable_number("PORT", &port);
    if (!err)
        err = variable_number("DMLC_PORT", &port);
    if (!err && port && config->roles != PARAMO_ROLE_SCHEDULER) /* the scheduler's is DMLC_PS_ROOT_PORT */
        config->port = (uint16_t)port;
    return err;
}

static paramo_err variable_root(paramo_config *config)
{
    uint64_t port = 0;
    paramo_err err = variable_number("DMLC_PS_ROOT_PORT", &port);
    if (err)
        return err;
    const char *uri = process_variable("DMLC_PS_ROOT_URI");
    if (!uri && !port)
        return PARAMO_OK;
    if (!uri || !port)
        return err_set(PARAMO_E_INVALID,
                       "DMLC_PS_ROOT_URI and DMLC_PS_ROOT_PORT: one is set without the other");
    char root[ADDRESS_MAX];
    address_join(uri, (uint16_t)port, root);
    return settings_keep(root, &config->scheduler);
}

static paramo_err variables_of_log(void)
{
    paramo_option_value path, format = {0};
    bool given, ignored;
    paramo_err err = settings_variable("PARAMO_LOG_FORMAT", &format, &ignored);
    if (!err)
        err = settings_variable("PARAMO_LOG_FILE", &path, &given);
    if (err || !given)
        return err;
    err = log_file_open(path.text, (enum log_format)format.number);
    return err ? err_prefix(err, "PARAMO_LOG_FILE") : PARAMO_OK;
}

/* Settings of the whole process. */
static paramo_err variables_of_process(void)
{
    uint64_t verbose = 0, ignored = 0;
    paramo_err err = variable_number("PS_VERBOSE", &verbose);
    if (!err) /* checked, but without effect: Paramo always sends lost messages again */
        err = variable_number("PS_RESEND", &ignored);
    const char *cpu = process_variable("PARAMO_CPU");
    if (!err && cpu && (err = cpu_limit(cpu)) != PARAMO_OK)
        err = err_prefix(err, "PARAMO_CPU");
    if (!err && verbose)
        log_set_level(verbose > 1 ? 3 : 2);
    return err ? err : variables_of_log();
}

paramo_err paramo_config_from_env(paramo_config *config)
{
    paramo_err err = variable_role(config);
    if (!err)
        err = variable_van(config);
    if (!err)
        err = variable_host(config);
    if (!err)
        err = variable_port(config);
    if (!err)
        err = variable_root(config);
    if (!err)
        err = settings_environment(config);
    if (!err)
        err = variables_of_process();
    if (err)
        return err;
    /* ps-lite's 0 means "off"; here a node always sends heartbeats, so 0 means the default. */
    if (config->heartbeat_ms == 0)
        config->heartbeat_ms = 1000;
    if (config->heartbeat_timeout_ms == 0)
        config->heartbeat_timeout_ms = 10000;
    return PARAMO_OK;
}
