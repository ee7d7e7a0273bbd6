#include "van/area.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env/env.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, BYTES = AREA_HEAD_BYTES + AREA_BYTES };

static paramo_err area_map(struct area *area, int fd, int protection)
{
    void *at = mmap(NULL, BYTES, protection, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return err_errno(PARAMO_E_SYSTEM, errno, "map %d bytes of shared memory", BYTES);
    area->head = at;
    area->data = area->head + AREA_HEAD_BYTES;
    return PARAMO_OK;
}

paramo_err area_create(struct env *env, struct area *area)
{
    int fd = memfd_create("paramo-van", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return err_errno(PARAMO_E_SYSTEM, errno, "make %d bytes of shared memory", BYTES);
    paramo_err err = PARAMO_OK;
    if (ftruncate(fd, BYTES) || fcntl(fd, F_ADD_SEALS, SEALS))
        err = err_errno(PARAMO_E_SYSTEM, errno, "size and seal shared memory");
    if (!err)
        err = area_map(area, fd, PROT_READ | PROT_WRITE);
    if (err) {
        (void)close(fd);
        return err;
    }
    uint64_t proof = env_random(env);
    memcpy(area->head, &proof, sizeof proof);
    area->fd = fd;
    area->place = (struct area_place){.pid = (uint32_t)getpid(), .fd = (uint32_t)fd};
    return PARAMO_OK;
}

paramo_err area_open(const struct area_place *place, struct area *area)
{
    char path[64];
    struct stat st;
    (void)snprintf(path, sizeof path, "/proc/%u/fd/%u", place->pid, place->fd);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return err_errno(PARAMO_E_SYSTEM, errno, "open the peer's shared memory %s", path);
    paramo_err err = PARAMO_OK;
    /* Only memory files have seals. They keep the file from becoming shorter than the mapping. */
    int seals = fcntl(fd, F_GET_SEALS);
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || seals < 0 || !(seals & F_SEAL_SHRINK) ||
        st.st_size != BYTES || st.st_uid != geteuid())
        err = err_set(PARAMO_E_PROTOCOL, "the peer's shared memory is not valid: %s", path);
    if (!err)
        err = area_map(area, fd, PROT_READ);
    (void)close(fd);
    if (!err)
        *area = (struct area){.head = area->head, .data = area->data, .fd = -1, .place = *place};
    return err;
}

void area_hide(struct area *area)
{
    if (area->head && area->fd >= 0)
        (void)close(area->fd);
    area->fd = -1;
}

void area_close(struct area *area)
{
    if (!area->head)
        return;
    (void)munmap(area->head, BYTES);
    area_hide(area);
    *area = (struct area){0};
}
