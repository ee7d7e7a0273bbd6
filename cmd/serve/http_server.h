/*
 * The HTTP side of `paramo serve`, over libmicrohttpd: POST /predict, GET /healthz, /readyz and /metrics. Each thread
 * of the library has its own connections and answers their requests itself. It knows nothing of rows and models.
 * Tests: test/e2e/serve.sh.
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

PARAMO_MUST_USE paramo_err http_start(const struct http_options *options, struct service *service,
                                      struct http_server **server);
/* The port that it listens on. */
unsigned http_port(const struct http_server *server);
/* Closes the connections whose time is over. */
void http_expire(struct http_server *server);
/* Accepts no more connections and closes those that are idle; requests that have begun are answered. Call it
 * until it returns 0: then no connection is open. */
size_t http_drain(struct http_server *server);
void http_stop(struct http_server *server);

#endif
