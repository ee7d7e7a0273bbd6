#ifdef PARAMO_HAVE_UCX
#include "van/ucx/ucx.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "van/tcp/tcp.h"
#include "van/tcp/tcp_listen.h"
#include "van/tcp/tcp_recv.h"
#include "van/tcp/tcp_send.h"
#include "van/ucx/ucx_way.h"

/* Identifies the boot, the user, and the namespaces of shared memory and process ids. 0: unknown. */
static uint64_t host_identity(void)
{
    static const char *const spaces[] = {"pid", "ipc", "mnt", "user"};
    struct {
        char boot[40];
        uint64_t uid;
        uint64_t space[4][2];
    } self;
    memset(&self, 0, sizeof self);
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, self.boot, sizeof self.boot - 1);
    (void)close(fd);
    if (got < 36)
        return 0;
    self.uid = geteuid();
    for (unsigned i = 0; i < 4; i++) {
        char path[32];
        struct stat st;
        (void)snprintf(path, sizeof path, "/proc/self/ns/%s", spaces[i]);
        if (stat(path, &st))
            return 0;
        self.space[i][0] = st.st_dev;
        self.space[i][1] = st.st_ino;
    }
    return hash_bytes(&self, sizeof self);
}

bool ucx_allows(struct ucx_van *van, enum ucx_kind kind, const char **why)
{
    *why = NULL;
    if (kind == UCX_SHM && (van->config.no_shm || !van->host))
        *why = "shared memory is turned off";
    else if (kind == UCX_FABRIC && !van->config.trusted_fabric)
        *why = "it is on another host or of another user, and no fabric was named trusted";
    else if (atomic_load(&van->failed[kind]))
        *why = "UCX failed before";
    else if (atomic_load(&van->kept) >= UCX_KEPT_MAX)
        *why = "too many connections by UCX ended before they were made";
    else if (atomic_load(&van->ways) >= UCX_WAYS_MAX)
        *why = "the limit of connections that use UCX is reached";
    return !*why;
}

paramo_err ucx_context_of(struct ucx_van *van, enum ucx_kind kind, const struct ucx_context **context)
{
    paramo_err err = PARAMO_OK;
    pthread_mutex_lock(&van->lock);
    if (!van->context[kind].handle)
        err = ucx_context_create(kind, &van->context[kind]);
    pthread_mutex_unlock(&van->lock);
    *context = &van->context[kind];
    return err;
}

void ucx_keep(struct ucx_way *way)
{
    static _Atomic(struct ucx_way *) kept; /* never freed, so that a leak checker finds them */
    struct ucx_way *first = atomic_load(&kept);
    assert(way->ep && !way->wired);
    atomic_fetch_add(&way->van->kept, 1);
    way->van = NULL;
    way->lane = NULL;
    do {
        way->next = first;
    } while (!atomic_compare_exchange_weak(&kept, &first, way));
    log_debug("van: UCX keeps a connection that ended before it was made");
}

static paramo_err ucx_connect(struct van *van, struct lane *lane, const char *address,
                              const struct van_user *user_ops, void *user, struct van_conn **out)
{
    paramo_err err = tcp_connect(van, lane, address, user_ops, user, out);
    if (!err && (err = ucx_way_prepare(tcp_of(*out))))
        tcp_close(*out, false);
    return err;
}

static void ucx_conn_stays(struct van_conn *conn)
{
    ucx_way_ops.conn_stays(tcp_of(conn));
}

static void ucx_destroy(struct van *base)
{
    struct ucx_van *van = (struct ucx_van *)base;
    for (unsigned i = 0; i < UCX_KINDS && !atomic_load(&van->kept); i++)
        ucx_context_destroy(&van->context[i]);
    pthread_mutex_destroy(&van->lock);
    van_fini(base);
    free(van);
}

static const struct van_ops ucx_ops = {
    .name = "ucx",
    .connect = ucx_connect,
    .listen = tcp_listen,
    .listener_close = tcp_listener_close,
    .send = tcp_send,
    .send_lent = tcp_send_lent,
    .withdraw = tcp_withdraw,
    .displace = tcp_displace,
    .close = tcp_close,
    .flush = tcp_flush,
    .conn_stays = ucx_conn_stays,
    .move = tcp_move,
    .abandon = tcp_abandon,
    .destroy = ucx_destroy,
};

paramo_err van_ucx_create(struct env *env, const struct van_config *config, struct van **out)
{
    const struct ucx_api *api;
    paramo_err err = ucx_load(&api);
    if (err)
        return err;
    struct ucx_van *van = calloc(1, sizeof *van);
    if (!van)
        return err_memory(sizeof *van);
    van->config = *config;
    van->host = host_identity();
    van->tcp.ways = &ucx_way_ops;
    if (pthread_mutex_init(&van->lock, NULL)) {
        free(van);
        return err_set(PARAMO_E_SYSTEM, "pthread_mutex_init failed");
    }
    err = van_init(&van->tcp.base, &ucx_ops, env);
    if (err) {
        pthread_mutex_destroy(&van->lock);
        free(van);
        return err;
    }
    *out = &van->tcp.base;
    return PARAMO_OK;
}
#else
#include "van/van.h"

paramo_err van_ucx_create(struct env *env, const struct van_config *config, struct van **van)
{
    (void)env;
    (void)config;
    (void)van;
    return err_set(PARAMO_E_UNSUPPORTED,
                   "this build has no UCX (libucx-dev was not there, or PARAMO_UCX=OFF)");
}
#endif
