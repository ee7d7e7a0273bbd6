/*
 * paramo serve: scores rows over HTTP with a saved model, until SIGTERM or SIGINT. Tests: test/e2e/serve.sh.
 */
#include "cmd/admin_target.h"
#include "cmd/exitcode.h"
#include "cmd/options.h"
#include "cmd/verbs.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

#ifdef PARAMO_HAVE_MICROHTTPD
#include "cmd/serve/http_server.h"
#include "cmd/serve/reloader.h"
#include "learn/io/input.h"
#endif

static const char usage[] =
    "usage: paramo serve --model-in DIR [--listen HOST:PORT] [options]\n"
    "       paramo serve --scheduler HOST:PORT [--listen HOST:PORT] [options]\n"
    "\n"
    "Answers HTTP requests with a model's predictions: POST /predict with rows as text or JSON.\n"
    "GET /healthz, /readyz and /metrics show its state.\n";

static const char more[] =
    "With --scheduler the server scores with the current model of a job that trains; the job does\n"
    "not wait for it. A new model in DIR is loaded within a second, or at SIGHUP. After SIGTERM or\n"
    "SIGINT the server accepts no more connections, answers the requests that have begun, and ends\n"
    "with exit code 0.\n"
    "\n" CODE_HELP "\n"
    "  paramo serve --model-in model --listen 127.0.0.1:8080\n"
    "  curl --data-binary '0 3:1 17:1' http://127.0.0.1:8080/predict\n"
    "  curl --data '{\"rows\": [\"0 3:1 17:1\", \"9:1\"]}' http://127.0.0.1:8080/predict\n";

/* The folder of the model, from --model-in or --model; NULL: neither is given. */
static const char *model_folder(const struct options *o)
{
    const char *folder = option_text(o, OPT_MODEL_IN);
    return folder ? folder : option_text(o, OPT_SERVE_MODEL);
}

#ifdef PARAMO_HAVE_MICROHTTPD

#define TICK_MS   100 /* between two checks of deadlines; arbitrary, as the next one */
#define DRAIN_MS  5   /* the same while the server ends */
#define REFRESH_S 5   /* between two copies of a job's model; the 5 of --refresh in option_table.h */
#define NS_PER_MS 1000000

/* Waits for a signal of the set. Returns 0 after `ms` milliseconds without one. */
static int next_signal(const sigset_t *set, long ms)
{
    struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * NS_PER_MS};
    int sig = sigtimedwait(set, NULL, &wait);
    return sig > 0 ? sig : 0;
}

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / NS_PER_MS;
}

/* Serves until SIGTERM or SIGINT. */
static void run(struct service *service, struct reloader *reloader, struct http_server *server,
                const sigset_t *set)
{
    int64_t rotated = now_ms();
    for (;;) {
        int sig = next_signal(set, TICK_MS);
        if (sig == SIGTERM || sig == SIGINT)
            return;
        int64_t now = now_ms();
        if (sig == SIGHUP)
            reloader_force(reloader);
        if (now - rotated >= STATS_WINDOW_S * 1000) {
            stats_rotate(service_stats(service));
            rotated = now;
        }
        http_expire(server);
    }
}

/* Waits until all connections are closed or have expired, or a second signal comes. */
static void drain(struct http_server *server, const sigset_t *set)
{
    while (http_drain(server) > 0) {
        int sig = next_signal(set, DRAIN_MS);
        if (sig == SIGTERM || sig == SIGINT)
            return;
        http_expire(server);
    }
}

/* Opens the service. *live: the caller frees it after the service is closed; it stays NULL if the model is in a
 * folder. */
static paramo_err open_service(const struct options *o, const char *token, struct live **live,
                               struct service **service)
{
    struct live_options options = {
        .scheduler = option_text(o, OPT_ADMIN_SCHEDULER), .token = token, .refresh_s = REFRESH_S};
    if (!options.scheduler)
        return service_open(model_folder(o), service);
    if (option_given(o, OPT_REFRESH))
        options.refresh_s = (unsigned)option_number(o, OPT_REFRESH);
    paramo_err err = live_new(&options, live);
    if (err == PARAMO_OK && (err = service_open_live(*live, service)) != PARAMO_OK)
        live_free(*live);
    return err;
}

static paramo_err serve(const struct options *o, const char *token)
{
    struct http_options http = {.listen = option_text(o, OPT_SERVE_LISTEN),
                                .threads = (unsigned)option_number(o, OPT_SERVE_THREADS),
                                .max_body = (size_t)option_number(o, OPT_MAX_BODY),
                                .max_unsent = (size_t)option_number(o, OPT_MAX_UNSENT),
                                .max_connections = (size_t)option_number(o, OPT_MAX_CONNECTIONS),
                                .timeout_s = (unsigned)option_number(o, OPT_SERVE_TIMEOUT),
                                .idle_timeout_s = (unsigned)option_number(o, OPT_IDLE_TIMEOUT)};
    static struct reloader reloader; /* static, because its thread may outlive this function */
    struct service *service;
    struct http_server *server;
    sigset_t set;
    if (http.threads == 0)
        http.threads = input_available_cpus();
    /* The signals are blocked before threads start, so that only run() and drain() get them. */
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    struct live *live = NULL;
    paramo_err err = open_service(o, token, &live, &service);
    if (err != PARAMO_OK)
        return err;
    err = http_start(&http, service, &server);
    if (err != PARAMO_OK) {
        service_close(service);
        live_free(live);
        return err;
    }
    int idle = 1; /* no thread uses the service any more */
    err = reloader_start(&reloader, service);
    if (err == PARAMO_OK) {
        (void)fprintf(stderr, "paramo serve: listening on port %u\n", http_port(server));
        run(service, &reloader, server, &set);
        drain(server, &set);
        idle = reloader_stop(&reloader);
    }
    http_stop(server);
    if (idle) {
        service_close(service);
        live_free(live);
    }
    return err;
}

static int check(const struct options *o)
{
    if (!http_address_valid(option_text(o, OPT_SERVE_LISTEN)))
        return options_wrong(o, "--listen '%s' is not HOST:PORT or [IPV6]:PORT",
                             option_text(o, OPT_SERVE_LISTEN));
    return -1;
}

#else

static int check(const struct options *o)
{
    (void)o;
    return -1;
}

static paramo_err serve(const struct options *o, const char *token)
{
    (void)o, (void)token;
    return paramo_error_set(PARAMO_E_UNSUPPORTED,
                            "this program was built without libmicrohttpd; install it and build again");
}

#endif

int cmd_serve(int argc, char **argv)
{
    char secret[TOKEN_BYTES];
    const char *token = NULL;
    struct options o;
    int code = options_parse(&o, VERB_SERVE, argc, argv, usage, more);
    if (code < 0 && option_text(&o, OPT_MODEL_IN) && option_text(&o, OPT_SERVE_MODEL))
        code = options_wrong(&o, "--model-in and --model are one option: give one of them");
    if (code < 0 && !model_folder(&o) && !option_text(&o, OPT_ADMIN_SCHEDULER))
        code = options_wrong(&o, "--model-in DIR or --scheduler HOST:PORT is missing");
    if (code < 0 && model_folder(&o) && option_text(&o, OPT_ADMIN_SCHEDULER))
        code = options_wrong(&o, "--model-in and --scheduler exclude each other");
    if (code < 0 && option_given(&o, OPT_REFRESH) && !option_text(&o, OPT_ADMIN_SCHEDULER))
        code = options_wrong(&o, "--refresh needs --scheduler");
    if (code < 0)
        code = check(&o);
    if (code < 0) {
        int wrong = admin_target_token(&o, secret, &token);
        code = wrong ? wrong : code;
    }
    if (code < 0) {
        paramo_err err = serve(&o, token);
        code = err ? code_fail("serve", err, paramo_last_error()) : CODE_DONE;
    }
    options_free(&o);
    return code;
}
