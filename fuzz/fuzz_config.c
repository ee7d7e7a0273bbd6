/* Configuration: the environment's variables, a copy, the checks and the addresses made from them. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "node/node.h"
#include "van/addr.h"

static void addresses(struct source *s)
{
    char text[600], host[ADDR_HOST_MAX], joined[ADDRESS_MAX], again[ADDR_HOST_MAX];
    uint16_t port, port_again;
    take_text(s, text, sizeof text);
    if (address_split(text, host, sizeof host, &port) == PARAMO_OK) {
        CHECK(host[0] && strlen(host) < sizeof host);
        address_join(host, port, joined);
        if (!strpbrk(host, "[]")) {
            CHECK(address_split(joined, again, sizeof again, &port_again) == PARAMO_OK);
            CHECK(strcmp(host, again) == 0 && port == port_again);
        }
    }
    if (addr_split(text, host, &port) == PARAMO_OK) {
        struct addr addr;
        CHECK(strlen(host) < sizeof host);
        if (addr_literal(host, port, &addr)) {
            char shown[ADDR_TEXT_MAX];
            addr_format(&addr, shown);
            CHECK(addr_split(shown, host, &port_again) == PARAMO_OK && port == port_again);
        }
    }
}

static void environment(struct source *s)
{
    static const char *const names[] = {"DMLC_ROLE",
                                        "DMLC_PS_ROOT_PORT",
                                        "DMLC_PS_ROOT_URI",
                                        "DMLC_NUM_SERVER",
                                        "DMLC_NUM_WORKER",
                                        "DMLC_RANK",
                                        "PORT",
                                        "DMLC_PORT",
                                        "DMLC_NODE_HOST",
                                        "PS_HEARTBEAT_INTERVAL",
                                        "PS_HEARTBEAT_TIMEOUT",
                                        "PS_DROP_MSG",
                                        "PARAMO_SHARDS",
                                        "PARAMO_LISTEN",
                                        "PARAMO_CONNECT_TIMEOUT_MS",
                                        "PARAMO_TOKEN",
                                        "PARAMO_VAN",
                                        "PARAMO_NAME",
                                        "PARAMO_REQUEST_TIMEOUT_MS",
                                        "PS_VERBOSE"};
    enum { NAMES = sizeof names / sizeof names[0] };
    static const char *const roles[] = {"scheduler", "server", "worker"};
    char value[600];
    for (unsigned i = 0; i < NAMES; i++)
        (void)unsetenv(names[i]);
    for (unsigned i = 0; s->left && i < NAMES; i++) {
        unsigned which = take_below(s, NAMES);
        if (which == 0 && take_below(s, 4)) {
            (void)setenv(names[0], roles[take_below(s, 3)], 1);
            continue;
        }
        take_text(s, value, sizeof value);
        (void)setenv(names[which], value, 1);
    }
    paramo_config config, copy;
    char address[ADDRESS_MAX], advertise[VIEW_HOST_MAX];
    paramo_config_init(&config);
    if (paramo_config_from_env(&config) == PARAMO_OK) {
        CHECK(config.shards >= 1 && config.shards <= 256 && config.drop_percent <= 90);
        CHECK(config.heartbeat_ms && config.heartbeat_timeout_ms && config.connect_timeout_ms);
        CHECK(config_copy(&config, &copy) == PARAMO_OK);
        if (config_check(&copy) == PARAMO_OK) {
            CHECK(!copy.token || strlen(copy.token) < HELLO_TOKEN_MAX);
            if (copy.roles == PARAMO_ROLE_SCHEDULER && config_scheduler_listen(&copy, address) == PARAMO_OK)
                CHECK(strlen(address) < ADDRESS_MAX);
            if (copy.roles == PARAMO_ROLE_SERVER &&
                config_server_listen(&copy, address, advertise) == PARAMO_OK)
                CHECK(strlen(address) < ADDRESS_MAX && strlen(advertise) < VIEW_HOST_MAX);
        }
        config_free(&copy);
    }
    for (unsigned i = 0; i < NAMES; i++)
        (void)unsetenv(names[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    harness_quiet();
    if (take_u8(&s) & 1)
        addresses(&s);
    else
        environment(&s);
    return 0;
}
