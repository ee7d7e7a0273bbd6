#include "support_cluster.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit.h"

static const char *const token = "a token for tests";

static void *node_start(void *arg)
{
    struct cluster_node *n = arg;
    n->started = paramo_create(&n->config, &n->node);
    if (!n->started && n->prepare)
        n->prepare(n->node);
    if (!n->started)
        n->started = paramo_join(n->node);
    if (n->started)
        (void)fprintf(stderr, "start: %s\n", paramo_last_error());
    return NULL;
}

static void *node_stop(void *arg)
{
    struct cluster_node *n = arg;
    n->stopped = paramo_stop(n->node);
    if (n->stopped)
        (void)fprintf(stderr, "stop: %s\n", paramo_last_error());
    return NULL;
}

static void node_begin(struct cluster_node *n, uint32_t role, const struct cluster *c)
{
    paramo_config_init(&n->config);
    n->config.roles = role;
    n->config.scheduler = c->address;
    n->config.token = token;
    n->config.num_servers = c->servers_count;
    n->config.num_workers = c->workers_count;
    if (c->configure)
        c->configure(&n->config);
    assert_int_equal(pthread_create(&n->thread, NULL, node_start, n), 0);
}

/* A port that was free a moment ago: the scheduler binds it next. Below the ports that the kernel gives out, so that
 * no other process gets it in between; processes begin at different ones. */
static unsigned free_port(void)
{
    enum { FIRST = 10000, COUNT = 22000 };
    static unsigned next;
    for (;;) {
        unsigned port = FIRST + ((unsigned)getpid() * 16 + next++) % COUNT;
        struct sockaddr_in to = {.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
        assert_true(fd >= 0 && next < COUNT);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
        int taken = bind(fd, (struct sockaddr *)&to, sizeof to);
        assert_int_equal(close(fd), 0);
        if (!taken)
            return port;
    }
}

static void cluster_begin(struct cluster *c, unsigned servers, unsigned workers,
                          void (*prepare)(paramo_node *node))
{
    c->servers_count = servers;
    c->workers_count = workers;
    (void)snprintf(c->address, sizeof c->address, "127.0.0.1:%u", free_port());
    /* Workers and servers first, so that they wait for a scheduler that is not there yet. */
    for (unsigned i = 0; i < workers; i++)
        node_begin(&c->workers[i], PARAMO_ROLE_WORKER, c);
    for (unsigned i = 0; i < servers; i++) {
        c->servers[i].prepare = prepare;
        node_begin(&c->servers[i], PARAMO_ROLE_SERVER, c);
    }
    node_begin(&c->scheduler, PARAMO_ROLE_SCHEDULER, c);
    assert_int_equal(pthread_join(c->scheduler.thread, NULL), 0);
    assert_int_equal(c->scheduler.started, PARAMO_OK);
    for (unsigned i = 0; i < servers; i++) {
        assert_int_equal(pthread_join(c->servers[i].thread, NULL), 0);
        assert_int_equal(c->servers[i].started, PARAMO_OK);
    }
    for (unsigned i = 0; i < workers; i++) {
        assert_int_equal(pthread_join(c->workers[i].thread, NULL), 0);
        assert_int_equal(c->workers[i].started, PARAMO_OK);
    }
}

void cluster_start(struct cluster *c, unsigned servers, unsigned workers, void (*prepare)(paramo_node *node))
{
    memset(c, 0, sizeof *c);
    cluster_begin(c, servers, workers, prepare);
}

void cluster_start_with(struct cluster *c, unsigned servers, unsigned workers,
                        void (*configure)(paramo_config *config))
{
    memset(c, 0, sizeof *c);
    c->configure = configure;
    cluster_begin(c, servers, workers, NULL);
}

void cluster_add_server(struct cluster *c)
{
    assert_true(c->servers_count < CLUSTER_MAX);
    struct cluster_node *server = &c->servers[c->servers_count++];
    node_begin(server, PARAMO_ROLE_SERVER, c);
    assert_int_equal(pthread_join(server->thread, NULL), 0);
    assert_int_equal(server->started, PARAMO_OK);
}

void cluster_stop(struct cluster *c)
{
    assert_int_equal(pthread_create(&c->scheduler.thread, NULL, node_stop, &c->scheduler), 0);
    for (unsigned i = 0; i < c->servers_count; i++)
        assert_int_equal(pthread_create(&c->servers[i].thread, NULL, node_stop, &c->servers[i]), 0);
    for (unsigned i = 0; i < c->workers_count; i++) {
        (void)node_stop(&c->workers[i]);
        assert_int_equal(c->workers[i].stopped, PARAMO_OK);
    }
    for (unsigned i = 0; i < c->servers_count; i++) {
        assert_int_equal(pthread_join(c->servers[i].thread, NULL), 0);
        assert_int_equal(c->servers[i].stopped, PARAMO_OK);
    }
    assert_int_equal(pthread_join(c->scheduler.thread, NULL), 0);
    assert_int_equal(c->scheduler.stopped, PARAMO_OK);
}

paramo_node *embedded_start(unsigned servers)
{
    paramo_config config;
    paramo_config_init(&config);
    config.roles = PARAMO_ROLE_ALL;
    config.num_servers = servers;
    paramo_node *node = NULL;
    paramo_err err = paramo_start(&config, &node);
    if (err)
        (void)fprintf(stderr, "start: %s\n", paramo_last_error());
    assert_int_equal(err, PARAMO_OK);
    return node;
}
