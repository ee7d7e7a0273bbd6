#ifdef PARAMO_HAVE_UCX
#include "van/ucx/ucx_lib.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/debug/log_def.h>

#include "base/log.h"

/* UCX writes to our log, at a lower level: a peer that leaves while a way is set up is an error for UCX,
 * and the connection reports what an error means. */
static ucs_log_func_rc_t log_handler(const char *file, unsigned line, const char *function,
                                     ucs_log_level_t level, const ucs_log_component_config_t *config,
                                     const char *format, va_list args)
{
    char text[256];
    (void)file;
    (void)line;
    (void)function;
    (void)config;
    if (level <= UCS_LOG_LEVEL_WARN) {
        (void)vsnprintf(text, sizeof text, format, args);
        log_line(level < UCS_LOG_LEVEL_WARN ? LOG_INFO : LOG_DEBUG, "ucx: %s", text);
    }
    return UCS_LOG_FUNC_RC_STOP;
}

/* Switches off what UCX does to a process when it is loaded: handlers for SIGSEGV and similar signals,
 * and patches of mmap and munmap, which only a cache of registered memory would need. UCX reads these
 * options from the environment only. A user's own values win; ours are removed after the library is
 * loaded. */
static void *open_quietly(const char *name)
{
    static const char *const quiet[][2] = {{"UCX_HANDLE_ERRORS", "none"}, {"UCX_MEM_EVENTS", "no"}};
    enum { QUIET = sizeof quiet / sizeof quiet[0] };
    bool ours[QUIET];
    for (unsigned i = 0; i < QUIET; i++) {
        ours[i] = !getenv(quiet[i][0]);
        (void)setenv(quiet[i][0], quiet[i][1], 0);
    }
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    for (unsigned i = 0; i < QUIET; i++)
        if (ours[i])
            (void)unsetenv(quiet[i][0]);
    return library;
}

static bool find(void *library, const char *name, void *slot)
{
    void *symbol = dlsym(library, name);
    memcpy(slot, &symbol, sizeof symbol);
    return symbol != NULL;
}

static paramo_err load(struct ucx_api *api)
{
    void *library = open_quietly("libucp.so.0");
    if (!library)
        return err_set(PARAMO_E_UNSUPPORTED, "UCX cannot be loaded: %s", dlerror());
    __typeof__(&ucs_log_push_handler) push_handler;
    bool all = find(library, "ucp_config_read", &api->config_read) &&
               find(library, "ucp_config_modify", &api->config_modify) &&
               find(library, "ucp_config_release", &api->config_release) &&
               find(library, "ucp_init_version", &api->init_version) &&
               find(library, "ucp_cleanup", &api->cleanup) &&
               find(library, "ucp_worker_create", &api->worker_create) &&
               find(library, "ucp_worker_destroy", &api->worker_destroy) &&
               find(library, "ucp_worker_get_address", &api->worker_get_address) &&
               find(library, "ucp_worker_release_address", &api->worker_release_address) &&
               find(library, "ucp_worker_get_efd", &api->worker_get_efd) &&
               find(library, "ucp_worker_arm", &api->worker_arm) &&
               find(library, "ucp_worker_progress", &api->worker_progress) &&
               find(library, "ucp_worker_set_am_recv_handler", &api->worker_set_am_recv_handler) &&
               find(library, "ucp_dt_create_generic", &api->dt_create_generic) &&
               find(library, "ucp_dt_destroy", &api->dt_destroy) &&
               find(library, "ucp_ep_create", &api->ep_create) &&
               find(library, "ucp_ep_flush_nbx", &api->ep_flush) &&
               find(library, "ucp_am_send_nbx", &api->am_send) &&
               find(library, "ucp_request_free", &api->request_free) &&
               find(library, "ucs_status_string", &api->status_string);
    if (!all)
        return err_set(PARAMO_E_UNSUPPORTED, "this UCX lacks a function: %s", dlerror());
    if (find(library, "ucs_log_push_handler", &push_handler))
        push_handler(log_handler);
    return PARAMO_OK; /* never unloaded: UCX has its own threads and hooks */
}

paramo_err ucx_load(const struct ucx_api **out)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct ucx_api api;
    static bool loaded;
    pthread_mutex_lock(&lock);
    paramo_err err = loaded ? PARAMO_OK : load(&api);
    loaded = !err;
    pthread_mutex_unlock(&lock);
    *out = &api;
    return err;
}

/* Buffers for messages outside of the area (ucx_switch.c): 64 in each direction, 1 MiB, and the one that is read.
 * UCX makes and clears them with the worker: its usual 512 take 15 ms of a lane's time instead of 2. */
static const char *const shm_settings[][2] = {{"TLS", "posix"},       {"MM_SEG_SIZE", "16K"},
                                              {"MM_FIFO_SIZE", "64"}, {"MM_RX_BUFS_GROW", "65"},
                                              {"RNDV_THRESH", "inf"}, {"RCACHE_ENABLE", "n"}};
static const char *const fabric_settings[][2] = {
    {"TLS", "rc,dc,ud,tcp"}, {"RNDV_THRESH", "inf"}, {"RCACHE_ENABLE", "n"}};

/* True if this machine has a device that UCX's rc, dc and ud use. */
static bool rdma_here(void)
{
    struct dirent *entry = NULL;
    DIR *devices = opendir("/sys/class/infiniband");
    while (devices && (entry = readdir(devices)) && entry->d_name[0] == '.')
        ;
    if (devices)
        (void)closedir(devices);
    return entry != NULL;
}

/* The folder of UCX's files. UCX reads it from the environment only, when a context is made (1.13). */
#define FILES_IN "UCX_POSIX_DIR"

static paramo_err context_make(const struct ucx_api *api, enum ucx_kind kind,
                               const ucp_generic_dt_ops_t *pack, struct ucx_context *context)
{
    const char *const(*settings)[2] = kind == UCX_SHM ? shm_settings : fabric_settings;
    size_t count = kind == UCX_SHM ? sizeof shm_settings / sizeof *shm_settings
                                   : sizeof fabric_settings / sizeof *fabric_settings;
    ucp_config_t *config;
    ucp_context_h handle;
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED,
                           .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
                           .mt_workers_shared = 1};
    ucs_status_t status = api->config_read(NULL, NULL, &config);
    if (status)
        return err_set(PARAMO_E_UNSUPPORTED, "UCX settings: %s", api->status_string(status));
    for (size_t i = 0; i < count && !status; i++)
        status = api->config_modify(config, settings[i][0], settings[i][1]);
    if (!status) { /* its threads get no signals of the process */
        sigset_t all, before;
        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);
        if (context->dir.path[0])
            (void)setenv(FILES_IN, context->dir.path, 1);
        status = api->init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &handle);
        if (context->dir.path[0])
            (void)unsetenv(FILES_IN);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    api->config_release(config);
    if (status)
        return err_set(PARAMO_E_UNSUPPORTED, "UCX: %s", api->status_string(status));
    ucp_datatype_t datatype;
    status = api->dt_create_generic(pack, NULL, &datatype);
    if (status) {
        api->cleanup(handle);
        return err_set(PARAMO_E_UNSUPPORTED, "UCX: %s", api->status_string(status));
    }
    context->api = api;
    context->handle = handle;
    context->datatype = datatype;
    context->rdma = kind == UCX_FABRIC && rdma_here();
    /* 256: more than the transports' and UCX's own headers */
    context->message_bytes = kind == UCX_SHM ? (16 << 10) - 256 : (8 << 10) - 256;
    return PARAMO_OK;
}

/* One at a time: FILES_IN is a variable of the process, and two nodes of a process may begin at the same time. */
paramo_err ucx_context_create(enum ucx_kind kind, const ucp_generic_dt_ops_t *pack,
                              struct ucx_context *context)
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    const struct ucx_api *api;
    paramo_err err = ucx_load(&api);
    if (err)
        return err;
    (void)pthread_mutex_lock(&one);
    if (kind == UCX_SHM && !getenv(FILES_IN)) /* a user's own value wins */
        err = shmdir_make(SHMDIR_BASE, &context->dir);
    if (!err)
        err = context_make(api, kind, pack, context);
    (void)pthread_mutex_unlock(&one);
    if (err)
        shmdir_remove(&context->dir);
    return err;
}

void ucx_context_destroy(struct ucx_context *context)
{
    if (!context->handle)
        return;
    context->api->dt_destroy(context->datatype);
    context->api->cleanup(context->handle);
    context->handle = NULL;
    shmdir_remove(&context->dir);
}
#else
typedef int ucx_lib_is_left_out; /* a translation unit may not be empty */
#endif
