/*
 * The HTTP server of `paramo serve`, on libmicrohttpd: POST /predict, GET /healthz, /readyz and /metrics. Each thread
 * of the library has its own connections and answers their requests itself. It never knows rows and models. Tests:
 * test/e2e/serve.sh.
 */
#ifndef CMD_SERVE_HTTP_SERVER_H
#define CMD_SERVE_HTTP_SERVER_H

#include "learn/serve/service.h"

struct http_options {
    const char *listen; /* HOST:PORT or [IPV6]:PORT */
    unsigned threads;
    size_t max_body, max_connections, max_unsent;
    unsigned timeout_s, idle_timeout_s;
};

struct http_server;

/* 1 if listen has the form HOST:PORT or [IPV6]:PORT. */
int http_address_valid(const char *listen);

/* service must outlive the server. SYSTEM: too few file descriptors; ADDRESS, ADDRESS_IN_USE:
 * it cannot listen there. */
PARAMO_MUST_USE paramo_err http_start(const struct http_options *options, struct service *service,
                                      struct http_server **server);
/* The port on which it listens. */
unsigned http_port(const struct http_server *server);
/* Closes the connections whose time is over. */
void http_expire(struct http_server *server);
/* Accepts no more connections and closes those that are idle; requests that have begun are answered. Returns how many
 * connections are open. Call it until that is 0. */
size_t http_drain(struct http_server *server);
void http_stop(struct http_server *server);

#endif
