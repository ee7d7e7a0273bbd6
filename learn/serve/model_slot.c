#include "learn/serve/model_slot.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* A model that cannot be opened is tried again after this number of refreshes, because its files may be copied after
 * its manifest. Arbitrary. */
#define RETRY_LOOKS 25

/* Distinguishes manifests. All 0: there is none. */
struct identity {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec modified;
};

struct model_slot {
    const char *dir;
    struct identity tried; /* at the last attempt to load */
    unsigned retry;        /* refreshes until the next attempt, if the last one failed; otherwise 0 */
    pthread_mutex_t lock;  /* of the current model, and of the users of all models */
    struct slot_model *current;
};

static struct identity identity_of(const char *dir)
{
    struct identity id = {0};
    struct stat st;
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/manifest.json", dir);
    if (stat(path, &st) == 0) {
        id.dev = st.st_dev;
        id.ino = st.st_ino;
        id.size = st.st_size;
        id.modified = st.st_mtim;
    }
    return id;
}

static int same(const struct identity *a, const struct identity *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           a->modified.tv_sec == b->modified.tv_sec && a->modified.tv_nsec == b->modified.tv_nsec;
}

static void put_user(struct model_slot *slot, struct slot_model *m)
{
    (void)pthread_mutex_lock(&slot->lock);
    int last = m && --m->users == 0;
    (void)pthread_mutex_unlock(&slot->lock);
    if (last) {
        modelio_close(&m->model);
        free(m);
    }
}

static paramo_err load(struct model_slot *slot)
{
    struct slot_model *m = calloc(1, sizeof *m), *old;
    if (!m)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a new model");
    /* Before the load, so that the next refresh sees a save during it. */
    slot->tried = identity_of(slot->dir);
    paramo_err err = modelio_load(slot->dir, &m->model);
    slot->retry = err != PARAMO_OK ? RETRY_LOOKS : 0;
    if (err != PARAMO_OK) {
        free(m);
        return err;
    }
    m->saved_s = (double)slot->tried.modified.tv_sec + (double)slot->tried.modified.tv_nsec / 1e9;
    m->users = 1;
    (void)pthread_mutex_lock(&slot->lock);
    old = slot->current;
    m->version = old ? old->version + 1 : 1;
    slot->current = m;
    (void)pthread_mutex_unlock(&slot->lock);
    put_user(slot, old);
    return PARAMO_OK;
}

paramo_err model_slot_new(const char *dir, struct model_slot **slot)
{
    struct model_slot *s = calloc(1, sizeof *s);
    if (!s)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the served model");
    s->dir = dir;
    (void)pthread_mutex_init(&s->lock, NULL);
    *slot = s;
    return PARAMO_OK;
}

paramo_err model_slot_open(const char *dir, struct model_slot **slot)
{
    struct model_slot *s = NULL;
    paramo_err err = model_slot_new(dir, &s);
    if (err != PARAMO_OK)
        return err;
    err = load(s);
    if (err == PARAMO_OK)
        *slot = s;
    else
        model_slot_close(s);
    return err;
}

void model_slot_close(struct model_slot *slot)
{
    if (!slot)
        return;
    put_user(slot, slot->current);
    (void)pthread_mutex_destroy(&slot->lock);
    free(slot);
}

struct slot_model *model_slot_take(struct model_slot *slot)
{
    (void)pthread_mutex_lock(&slot->lock);
    struct slot_model *m = slot->current;
    if (m)
        m->users++;
    (void)pthread_mutex_unlock(&slot->lock);
    return m;
}

void model_slot_give(struct model_slot *slot, struct slot_model *model)
{
    put_user(slot, model);
}

enum slot_refresh model_slot_refresh(struct model_slot *slot, int force)
{
    struct identity now = identity_of(slot->dir);
    int again = slot->retry > 0 && --slot->retry == 0;
    int changed = !same(&now, &slot->tried);
    if (!force && !again && !changed)
        return SLOT_UNCHANGED;
    if (load(slot) == PARAMO_OK)
        return SLOT_LOADED;
    return force || changed ? SLOT_FAILED : SLOT_FAILED_AGAIN;
}
