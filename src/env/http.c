#include "env/http.h"

#ifndef PARAMO_HAVE_CURL

paramo_err http_create(struct http **http)
{
    (void)http;
    return err_set(PARAMO_E_UNSUPPORTED, "this build has no libcurl; build it with libcurl's headers");
}

#else

#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

/* The library depends on dozens of others, so it is loaded only when it is needed. */
struct curl_api {
    CURLcode (*global_init)(long flags);
    CURL *(*easy_init)(void);
    CURLcode (*setopt)(CURL *curl, CURLoption option, ...);
    CURLcode (*perform)(CURL *curl);
    CURLcode (*getinfo)(CURL *curl, CURLINFO info, ...);
    const char *(*text)(CURLcode code);
    void (*cleanup)(CURL *curl);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *line);
    void (*slist_free)(struct curl_slist *list);
};

struct curl_http {
    struct http http;
    const struct curl_api *api;
    CURL *curl; /* keeps its connections open */
    struct curl_slist *headers;
    struct writer *answer; /* of the current request */
    size_t answer_max;
    bool too_large;
    char text[CURL_ERROR_SIZE];
};

static bool find(void *library, const char *name, void *slot)
{
    void *symbol = dlsym(library, name);
    memcpy(slot, &symbol, sizeof symbol);
    return symbol != NULL;
}

static paramo_err load(struct curl_api *api)
{
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return err_set(PARAMO_E_UNSUPPORTED, "libcurl cannot be loaded (%s); install libcurl4", dlerror());
    bool all = find(library, "curl_global_init", &api->global_init) &&
               find(library, "curl_easy_init", &api->easy_init) &&
               find(library, "curl_easy_setopt", &api->setopt) &&
               find(library, "curl_easy_perform", &api->perform) &&
               find(library, "curl_easy_getinfo", &api->getinfo) &&
               find(library, "curl_easy_strerror", &api->text) &&
               find(library, "curl_easy_cleanup", &api->cleanup) &&
               find(library, "curl_slist_append", &api->slist_append) &&
               find(library, "curl_slist_free_all", &api->slist_free);
    if (!all)
        return err_set(PARAMO_E_UNSUPPORTED, "this libcurl lacks a function (%s); install a newer one",
                       dlerror());
    if (api->global_init(CURL_GLOBAL_ALL))
        return err_set(PARAMO_E_UNSUPPORTED, "libcurl cannot be initialized");
    return PARAMO_OK; /* never unloaded */
}

static paramo_err curl_load(const struct curl_api **out)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct curl_api api;
    static bool loaded;
    (void)pthread_mutex_lock(&lock);
    paramo_err err = loaded ? PARAMO_OK : load(&api);
    loaded = !err;
    (void)pthread_mutex_unlock(&lock);
    *out = &api;
    return err;
}

static size_t on_data(char *data, size_t one, size_t count, void *arg)
{
    struct curl_http *h = arg;
    size_t len = one * count;
    h->too_large = len > h->answer_max - h->answer->len;
    if (h->too_large)
        return 0;
    if (len)
        write_bytes(h->answer, data, len);
    return h->answer->failed ? 0 : len;
}

static paramo_err failure(const struct curl_http *h, const struct http_request *http_request, CURLcode code)
{
    const char *text = h->text[0] ? h->text : h->api->text(code);
    if (h->answer->failed)
        return err_memory(h->answer_max);
    if (h->too_large)
        return err_set(PARAMO_E_TOO_LARGE, "%s: the answer has more than %zu bytes", http_request->url,
                       h->answer_max);
    paramo_err err = code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ? PARAMO_E_CONNECT
                     : code == CURLE_OPERATION_TIMEDOUT                                  ? PARAMO_E_TIMEOUT
                                                        : PARAMO_E_DISCONNECTED;
    return err_set(err, "%s: %s", http_request->url, text);
}

static paramo_err curl_post(struct http *http, const struct http_request *http_request, unsigned *status,
                            struct writer *answer)
{
    struct curl_http *h = (struct curl_http *)http;
    const struct curl_api *api = h->api;
    long code = 0;
    h->answer = answer;
    h->answer_max = http_request->answer_max;
    h->too_large = false;
    h->text[0] = '\0';
    bool set = !api->setopt(h->curl, CURLOPT_URL, http_request->url) &&
               !api->setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)http_request->body->len) &&
               !api->setopt(h->curl, CURLOPT_POSTFIELDS,
                            http_request->body->len ? (char *)http_request->body->data : "") &&
               !api->setopt(h->curl, CURLOPT_TIMEOUT_MS, (long)http_request->timeout_ms) &&
               !api->setopt(h->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)http_request->timeout_ms);
    if (!set)
        return err_set(PARAMO_E_INVALID, "%s: libcurl does not accept the request", http_request->url);
    CURLcode done = api->perform(h->curl);
    if (!done)
        done = api->getinfo(h->curl, CURLINFO_RESPONSE_CODE, &code);
    if (done)
        return failure(h, http_request, done);
    *status = code > 0 && code < 1000 ? (unsigned)code : 0;
    return PARAMO_OK;
}

static void curl_destroy(struct http *http)
{
    struct curl_http *h = (struct curl_http *)http;
    if (h->curl)
        h->api->cleanup(h->curl);
    h->api->slist_free(h->headers);
    free(h);
}

paramo_err http_create(struct http **out)
{
    static const struct http_ops ops = {.post = curl_post, .destroy = curl_destroy};
    const struct curl_api *api;
    paramo_err err = curl_load(&api);
    if (err)
        return err;
    struct curl_http *h = calloc(1, sizeof *h);
    if (!h)
        return err_memory(sizeof *h);
    *h = (struct curl_http){.http.ops = &ops, .api = api, .curl = api->easy_init()};
    h->headers = api->slist_append(NULL, "Content-Type: application/json");
    struct curl_slist *more =
        h->headers ? api->slist_append(h->headers, "Expect:") : NULL; /* saves a round trip */
    bool set = h->curl && more && !api->setopt(h->curl, CURLOPT_HTTPHEADER, h->headers) &&
               !api->setopt(h->curl, CURLOPT_WRITEFUNCTION, on_data) &&
               !api->setopt(h->curl, CURLOPT_WRITEDATA, h) &&
               !api->setopt(h->curl, CURLOPT_ERRORBUFFER, h->text) &&
               !api->setopt(h->curl, CURLOPT_NOSIGNAL, 1L) && !api->setopt(h->curl, CURLOPT_NOPROXY, "*");
    if (!set) {
        curl_destroy(&h->http);
        return err_memory(sizeof *h);
    }
    *out = &h->http;
    return PARAMO_OK;
}
#endif
