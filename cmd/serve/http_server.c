#include "cmd/serve/http_server.h"
#include "cmd/serve/connections.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define FEW_BYTES   (64u << 10) /* memory for a body that a connection keeps between requests; arbitrary */
#define OTHER_FILES 64          /* descriptors for everything but connections; arbitrary */
#define BACKLOG     1024        /* arbitrary */
#define NS_PER_S    1000000000u

struct http_server {
    struct http_options options;
    struct service *service;
    struct stats *stats;
    struct connections connections;
    struct MHD_Daemon *daemon;
    unsigned port;
    atomic_int draining;
    int listening; /* the listening socket, after http_drain; -1 before */
};

/* ---- requests ---- */

struct route {
    const char *path, *method, *allow;
    void (*answer)(struct http_server *server, struct MHD_Connection *mhd, struct connection *c,
                   struct answer *answer);
};

static void plain(struct answer *answer, int status, const char *text)
{
    *answer = (struct answer){.status = status, .type = "text/plain", .text = strdup(text)};
    answer->len = answer->text ? strlen(text) : 0;
}

/* Counts an answer until its client has it (on_done). An answer beyond the limit becomes a 503: answers that clients
 * do not read would fill the memory. */
static void unsent_add(struct http_server *server, struct connection *c, struct answer *answer)
{
    size_t limit = server->options.max_unsent;
    if (atomic_fetch_add(&server->stats->unsent, answer->len) + answer->len <= limit) {
        c->unsent = answer->len;
        return;
    }
    atomic_fetch_sub(&server->stats->unsent, answer->len);
    free(answer->text);
    answer_error(answer, 503, 0, "",
                 "too many bytes of answers wait for clients to read them (--max-unsent)");
}

static void answer_predict(struct http_server *server, struct MHD_Connection *mhd, struct connection *c,
                           struct answer *answer)
{
    const char *format = MHD_lookup_connection_value(mhd, MHD_GET_ARGUMENT_KIND, "format");
    service_score(server->service, format, c->body, c->len, answer);
    unsent_add(server, c, answer);
    stats_duration(server->stats, clock_ns() - c->began);
}

static void answer_health(struct http_server *server, struct MHD_Connection *mhd, struct connection *c,
                          struct answer *answer)
{
    (void)server, (void)mhd, (void)c;
    plain(answer, 200, "ok\n");
}

static void answer_ready(struct http_server *server, struct MHD_Connection *mhd, struct connection *c,
                         struct answer *answer)
{
    (void)mhd, (void)c;
    if (server->draining)
        answer_error(answer, 503, 0, "", "the server is shutting down");
    else if (!service_has_model(server->service))
        answer_error(answer, 503, 0, "", "there is no model yet");
    else
        plain(answer, 200, "ready\n");
}

static void answer_metrics(struct http_server *server, struct MHD_Connection *mhd, struct connection *c,
                           struct answer *answer)
{
    (void)mhd, (void)c;
    service_metrics(server->service, !server->draining, answer);
}

static const struct route routes[] = {
    {"/predict", MHD_HTTP_METHOD_POST, "POST", answer_predict},
    {"/healthz", MHD_HTTP_METHOD_GET, "GET, HEAD", answer_health},
    {"/readyz", MHD_HTTP_METHOD_GET, "GET, HEAD", answer_ready},
    {"/metrics", MHD_HTTP_METHOD_GET, "GET, HEAD", answer_metrics},
};

static const struct route *find_route(const char *url)
{
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (strcmp(url, routes[i].path) == 0)
            return &routes[i];
    return NULL;
}

static int takes(const struct route *route, const char *method)
{
    int get = strcmp(route->method, MHD_HTTP_METHOD_GET) == 0;
    return strcmp(method, route->method) == 0 || (get && strcmp(method, MHD_HTTP_METHOD_HEAD) == 0);
}

static enum MHD_Result send_answer(struct http_server *server, struct MHD_Connection *mhd,
                                   const struct connection *c, const char *allow, struct answer *answer)
{
    if (!answer->text)
        return MHD_NO; /* out of memory: the connection is closed */
    size_t len = answer->len;
    struct MHD_Response *response = MHD_create_response_from_buffer(len, answer->text, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(answer->text);
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
    if (allow)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, allow);
    if (server->draining || c->refused)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    enum MHD_Result queued = MHD_queue_response(mhd, (unsigned)answer->status, response);
    MHD_destroy_response(response);
    if (queued == MHD_YES) {
        stats_answer(server->stats, answer->status);
        server->stats->bytes_out += len;
    }
    return queued;
}

/* Answers a request that has been received completely. */
static enum MHD_Result answer_request(struct http_server *server, struct MHD_Connection *mhd,
                                      struct connection *c, const char *url, const char *method)
{
    const struct route *route = find_route(url);
    const char *allow = NULL;
    struct answer answer;
    server->stats->bytes_in += c->len;
    if (c->refused)
        answer_error(&answer, 503, 0, "", "too many connections (--max-connections)");
    else if (!route)
        answer_error(&answer, 404, 0, "",
                     "no such path: use POST /predict, GET /healthz, /readyz or /metrics");
    else if (!takes(route, method)) {
        allow = route->allow;
        answer_error(&answer, 405, 0, "", "this path does not take this method: see the header Allow");
    } else if (c->too_large)
        answer_error(&answer, 413, 0, "", "the body is larger than --max-body");
    else
        route->answer(server, mhd, c, &answer);
    return send_answer(server, mhd, c, allow, &answer);
}

static int body_fit(struct connection *c, size_t want)
{
    if (want <= c->cap)
        return 1;
    char *body = realloc(c->body, want);
    if (!body)
        return 0;
    c->body = body;
    c->cap = want;
    return 1;
}

/* Adds n bytes to the body; a body beyond the limit is dropped. Returns 0 if there is no memory. */
static int body_add(struct connection *c, const char *bytes, size_t n, size_t limit)
{
    if (c->too_large || n > limit - c->len) {
        c->too_large = 1;
        c->len = 0;
        return 1;
    }
    size_t want = c->len + n;
    if (want > c->cap && !body_fit(c, want + want / 2))
        return 0;
    memcpy(c->body + c->len, bytes, n);
    c->len += n;
    return 1;
}

/* The header has been received. An answer before the end of the body closes the connection, and a client that still
 * sends may never read the answer. So a body that is too large is read to its end, unless the client waits for leave to
 * send it (100-continue). */
static enum MHD_Result on_header(struct http_server *server, struct MHD_Connection *mhd, struct connection *c,
                                 const char *url, const char *method)
{
    const char *length = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const char *expect = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_EXPECT);
    unsigned long long bytes = length ? strtoull(length, NULL, 10) : 0;
    c->began = clock_ns();
    c->len = 0;
    c->too_large = bytes > server->options.max_body;
    if (c->too_large && expect && strcasecmp(expect, "100-continue") == 0)
        return answer_request(server, mhd, c, url, method);
    return c->too_large || body_fit(c, (size_t)bytes) ? MHD_YES : MHD_NO;
}

static struct connection *connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *mhd, const char *url, const char *method,
                                  const char *version, const char *data, size_t *data_len, void **context)
{
    struct http_server *server = arg;
    struct connection *c = *context;
    (void)version;
    if (!c)
        return MHD_NO; /* there was no memory when the connection was accepted */
    if (c->began == 0)
        return on_header(server, mhd, c, url, method);
    if (*data_len == 0)
        return answer_request(server, mhd, c, url, method);
    size_t n = *data_len;
    *data_len = 0;
    return body_add(c, data, n, server->options.max_body) ? MHD_YES : MHD_NO;
}

/* ---- connections ---- */

static void *on_request_line(void *arg, const char *uri, struct MHD_Connection *mhd)
{
    struct connection *c = connection_of(mhd);
    (void)arg, (void)uri;
    if (c)
        connection_set_busy(c, 1);
    return c;
}

static void on_done(void *arg, struct MHD_Connection *mhd, void **context,
                    enum MHD_RequestTerminationCode code)
{
    struct http_server *server = arg;
    struct connection *c = *context;
    (void)mhd, (void)code;
    if (!c)
        return;
    if (c->cap > FEW_BYTES) {
        free(c->body);
        c->body = NULL;
        c->cap = 0;
    }
    c->began = 0;
    c->len = 0;
    server->stats->unsent -= c->unsent;
    c->unsent = 0;
    connection_set_busy(c, 0);
}

static void on_connection(void *arg, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = arg;
    struct stats *stats = server->stats;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct connection *c =
            connection_add(&server->connections, info->connect_fd, server->options.max_connections);
        *context = c;
        stats->connections++;
        stats->connections_open++;
        stats->connections_refused += c && c->refused;
    } else {
        if (*context)
            connection_remove(&server->connections, *context);
        *context = NULL;
        stats->connections_open--;
    }
}

/* ---- the server ---- */

/* Splits HOST:PORT. Returns 0 if it is not of that form. */
static int split(const char *listen, char host[256], const char **port)
{
    const char *colon = strrchr(listen, ':');
    size_t len = colon ? (size_t)(colon - listen) : 0;
    char *end;
    if (len == 0 || len > 255 || colon[1] < '0' || colon[1] > '9' || strtoul(colon + 1, &end, 10) > 65535 ||
        *end != '\0')
        return 0;
    int brackets = listen[0] == '[';
    if (brackets ? len < 3 || colon[-1] != ']' : memchr(listen, ':', len) != NULL)
        return 0;
    memcpy(host, listen + brackets, len - 2 * (size_t)brackets);
    host[len - 2 * (size_t)brackets] = '\0';
    *port = colon + 1;
    return 1;
}

int http_address_valid(const char *listen)
{
    char host[256];
    const char *port;
    return split(listen, host, &port);
}

/* How many connections are accepted: the few above max_connections (arbitrary) get a 503. Others wait in the queue of
 * the system. */
static size_t most_connections(const struct http_options *o)
{
    return o->max_connections + o->max_connections / 8 + 8 + o->threads;
}

static paramo_err raise_files(const struct http_options *o)
{
    struct rlimit files;
    rlim_t need = most_connections(o) + OTHER_FILES;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= need)
        return PARAMO_OK;
    files.rlim_cur = need < files.rlim_max ? need : files.rlim_max;
    if (files.rlim_cur < need || setrlimit(RLIMIT_NOFILE, &files) != 0)
        return paramo_error_set(
            PARAMO_E_SYSTEM,
            "--max-connections %zu needs %llu file descriptors, and %llu are allowed (ulimit -n)",
            o->max_connections, (unsigned long long)need, (unsigned long long)files.rlim_max);
    return PARAMO_OK;
}

static paramo_err start_daemon(struct http_server *s, const struct sockaddr *address)
{
    const struct http_options *o = &s->options;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC;
    if (address->sa_family == AF_INET6)
        flags |= MHD_USE_IPv6;
    struct MHD_OptionItem items[] = {
        {MHD_OPTION_SOCK_ADDR, 0, (void *)(uintptr_t)address},
        {MHD_OPTION_LISTEN_BACKLOG_SIZE, BACKLOG, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, (intptr_t)most_connections(o), NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, (intptr_t)o->idle_timeout_s, NULL},
        {o->threads > 1 ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END, (intptr_t)o->threads, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    s->daemon =
        MHD_start_daemon(flags, 0, NULL, NULL, on_request, s, MHD_OPTION_URI_LOG_CALLBACK, on_request_line, s,
                         MHD_OPTION_NOTIFY_COMPLETED, on_done, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
                         s, MHD_OPTION_ARRAY, items, MHD_OPTION_END);
    if (!s->daemon)
        return paramo_error_set(errno == EADDRINUSE ? PARAMO_E_ADDRESS_IN_USE : PARAMO_E_ADDRESS,
                                "cannot listen on %s: %s", o->listen, strerror(errno));
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    s->port = info ? info->port : 0;
    return PARAMO_OK;
}

paramo_err http_start(const struct http_options *options, struct service *service,
                      struct http_server **server)
{
    char host[256];
    const char *port;
    struct addrinfo *found, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    if (!split(options->listen, host, &port))
        return paramo_error_set(PARAMO_E_INVALID, "%s is not HOST:PORT", options->listen);
    int code = getaddrinfo(host, port, &hints, &found);
    if (code != 0)
        return paramo_error_set(PARAMO_E_ADDRESS, "%s: %s", options->listen, gai_strerror(code));
    paramo_err err = raise_files(options);
    struct http_server *s = calloc(1, sizeof *s);
    if (err == PARAMO_OK && !s)
        err = paramo_error_set(PARAMO_E_MEMORY, "out of memory for the HTTP server");
    if (err == PARAMO_OK) {
        s->options = *options;
        s->service = service;
        s->stats = service_stats(service);
        s->listening = -1;
        (void)pthread_mutex_init(&s->connections.lock, NULL);
        err = PARAMO_E_ADDRESS;
        for (const struct addrinfo *a = found; a && err != PARAMO_OK; a = a->ai_next)
            err = start_daemon(s, a->ai_addr);
    }
    freeaddrinfo(found);
    if (err != PARAMO_OK) {
        free(s);
        return err;
    }
    *server = s;
    return PARAMO_OK;
}

unsigned http_port(const struct http_server *server)
{
    return server->port;
}

void http_expire(struct http_server *s)
{
    s->stats->timeouts += connections_expire(&s->connections, (uint64_t)s->options.timeout_s * NS_PER_S,
                                             (uint64_t)s->options.idle_timeout_s * NS_PER_S);
}

size_t http_drain(struct http_server *s)
{
    if (!s->draining) {
        s->draining = 1;
        s->listening = MHD_quiesce_daemon(s->daemon);
        if (s->listening >= 0) /* http_stop closes it, because a thread of the library may still use it */
            (void)shutdown(s->listening, SHUT_RDWR);
    }
    return connections_drain(&s->connections);
}

void http_stop(struct http_server *s)
{
    MHD_stop_daemon(s->daemon);
    if (s->listening >= 0)
        (void)close(s->listening);
    (void)pthread_mutex_destroy(&s->connections.lock);
    free(s);
}
