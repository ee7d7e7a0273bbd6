/* Configuration: the environment's variables, a copy, the checks and the addresses made from them. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "node/config.h"
#include "node/node.h"
#include "van/local.h"

static void addresses(struct source *s)
{
    char text[600], host[ADDR_HOST_MAX], joined[ADDRESS_MAX], again[ADDR_HOST_MAX];
    uint16_t port, port_again;
    draw_text(s, text, sizeof text);
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

/* No name is looked up here. */
static bool is_literal(const char *host)
{
    struct addr addr;
    return !host || strcmp(host, "localhost") == 0 || addr_literal(host, 1, &addr);
}

static void place_check(const paramo_config *config)
{
    char host[VIEW_HOST_MAX];
    uint16_t port;
    struct place place;
    if (config->scheduler && address_split(config->scheduler, host, sizeof host, &port) == PARAMO_OK &&
        !is_literal(host))
        return;
    if (!is_literal(config->listen) || config_place(config, &place))
        return;
    CHECK(strlen(place.listen) < ADDRESS_MAX && strlen(place.advertise) < VIEW_HOST_MAX);
    if (config->token && *config->token)
        return;
    CHECK(!place.listen[0] ||
          (address_split(place.listen, host, sizeof host, &port) == PARAMO_OK && local_loopback(host)));
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
                                        "PS_VERBOSE",
                                        "DMLC_LOCAL",
                                        "DMLC_PS_VAN_TYPE",
                                        "PS_RESEND",
                                        "PS_RESEND_TIMEOUT"};
    enum { NAMES = sizeof names / sizeof names[0] };
    static const char *const roles[] = {"scheduler", "server", "worker"};
    char value[600];
    for (unsigned i = 0; i < NAMES; i++)
        (void)unsetenv(names[i]);
    for (unsigned i = 0; s->left && i < NAMES; i++) {
        unsigned which = draw_below(s, NAMES);
        if (which == 0 && draw_below(s, 4)) {
            (void)setenv(names[0], roles[draw_below(s, 3)], 1);
            continue;
        }
        draw_text(s, value, sizeof value);
        (void)setenv(names[which], value, 1);
    }
    paramo_config config, copy;
    paramo_config_init(&config);
    if (paramo_config_from_env(&config) == PARAMO_OK) {
        CHECK(config.shards >= 1 && config.shards <= 256 && config.drop_percent <= 90);
        CHECK(config.heartbeat_ms && config.heartbeat_timeout_ms && config.connect_timeout_ms);
        CHECK(config_copy(&config, &copy) == PARAMO_OK);
        if (config_check(&copy) == PARAMO_OK) {
            CHECK(!copy.token || strlen(copy.token) < HELLO_TOKEN_MAX);
            place_check(&copy);
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
    if (draw_u8(&s) & 1)
        addresses(&s);
    else
        environment(&s);
    return 0;
}
