#ifdef PARAMO_HAVE_UCX
#include "van/ucx/ucx.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "env/blocking_job.h"

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
    else if (atomic_load(&van->kept[kind]) >= UCX_KEPT_MAX)
        *why = "too many UCX connections ended before they were established";
    else if (atomic_load(&van->ways) >= UCX_WAYS_MAX)
        *why = "the limit of connections that use UCX is reached";
    return !*why;
}

paramo_err ucx_context_of(struct ucx_van *van, enum ucx_kind kind, const struct ucx_context **context)
{
    if (!van->context[kind]) {
        struct ucx_context *made = calloc(1, sizeof *made);
        if (!made)
            return err_memory(sizeof *made);
        paramo_err err = ucx_context_create(kind, van->pack, made);
        if (err) {
            free(made);
            return err;
        }
        van->context[kind] = made;
    }
    *context = van->context[kind];
    return PARAMO_OK;
}

paramo_err ucx_van_init(struct ucx_van *van, const struct van_config *config,
                        const ucp_generic_dt_ops_t *pack)
{
    van->config = *config;
    van->host = host_identity();
    van->pack = pack;
    int cause = pthread_mutex_init(&van->lock, NULL);
    if (cause)
        return err_errno(PARAMO_E_SYSTEM, cause, "make the lock of van ucx");
    return PARAMO_OK;
}

void ucx_van_fini(struct ucx_van *van)
{
    blocking_jobs_destroy(van->jobs); /* with the last workers */
    for (unsigned i = 0; i < UCX_KINDS; i++) {
        if (!van->context[i] || atomic_load(&van->kept[i]))
            continue; /* the ways that are kept hold their context */
        ucx_context_destroy(van->context[i]);
        free(van->context[i]);
    }
    pthread_mutex_destroy(&van->lock);
}
#else
typedef int ucx_is_left_out; /* a translation unit may not be empty */
#endif
