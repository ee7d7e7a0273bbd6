/*
 * The model that a server scores with, and its replacement while requests run. A request takes the model, scores,
 * and gives it back; an old model is closed when the last request has given it back.
 *
 * A save replaces the manifest by a rename (learn/store/modelio.h), so a changed manifest is a new model. A loaded
 * model is in memory: the removal of its files does not matter. If a save removes a file during a load, the load fails,
 * the old model stays, and the next refresh sees the new manifest. It never knows of requests. Tests:
 * test/learn/test_model_slot.c.
 */
#ifndef LEARN_SERVE_MODEL_SLOT_H
#define LEARN_SERVE_MODEL_SLOT_H

#include "learn/store/modelio.h"

struct model_slot;

struct slot_model {
    struct model model;
    double saved_s;   /* when it was saved, in seconds since 1970 */
    uint64_t version; /* 1, 2, 3 ..., in the order of the loads */
    uint64_t users;   /* managed by the slot */
};

/* A slot without a model: model_slot_refresh loads the first one. The caller owns dir, which must stay valid. */
PARAMO_MUST_USE paramo_err model_slot_new(const char *dir, struct model_slot **slot);
/* A slot with the model in dir. */
PARAMO_MUST_USE paramo_err model_slot_open(const char *dir, struct model_slot **slot);
void model_slot_close(struct model_slot *slot); /* no model is taken; NULL is allowed */

struct slot_model *model_slot_take(struct model_slot *slot);             /* NULL: there is none yet */
void model_slot_give(struct model_slot *slot, struct slot_model *model); /* NULL is allowed */

/* SLOT_UNCHANGED: no load was tried. After a failure the old model stays, and paramo_last_error() has the cause;
 * SLOT_FAILED_AGAIN: a repeated attempt failed. */
enum slot_refresh { SLOT_UNCHANGED, SLOT_LOADED, SLOT_FAILED, SLOT_FAILED_AGAIN };
/* Loads the model if the manifest has changed since the last attempt, or always with force. A failed attempt is
 * repeated after some calls, because the model's files may be copied after its manifest. One thread at a time. */
PARAMO_MUST_USE enum slot_refresh model_slot_refresh(struct model_slot *slot, int force);

#endif
