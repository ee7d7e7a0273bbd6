/*
 * The settings of a model in training, as a table of its job, so that other processes can read the model while it is
 * learned. The table SHARED_MODEL_TABLE has one row, the manifest's text (manifest.h) without the list of files; the
 * weights are in the model's own tables. A job may take snapshots of all of them (paramo/snapshot.h), under the name
 * SHARED_MODEL_SNAPSHOT. It never knows its readers. Tests: test/learn/test_shared_model.c, test/e2e/serve_live.sh.
 */
#ifndef LEARN_STORE_SHARED_MODEL_H
#define LEARN_STORE_SHARED_MODEL_H

#include "learn/model/model.h"
#include "paramo/paramo.h"

#define SHARED_MODEL_TABLE    "manifest"
#define SHARED_MODEL_SNAPSHOT "model"

/* Creates the table if it does not exist, and replaces its row. */
PARAMO_MUST_USE paramo_err shared_model_put(paramo_worker *worker, const struct model_info *info);
/* Takes a snapshot of the settings that were put last and of the model's tables, while no worker changes them. scaled:
 * there is a table of scales. */
PARAMO_MUST_USE paramo_err shared_model_snapshot(paramo_worker *worker, const struct model_info *info,
                                                 int scaled);
/* Saves the model into dir, as modelio_save does, without the optimizers' state: the last snapshot, if the job has
 * taken one. Otherwise it saves the rows as it reads them, while workers may change the model. NO_TABLE or NOT_FOUND:
 * the job has no model, or has not begun to train it. FORMAT, CORRUPT: the settings are of another program or of a
 * newer version. */
PARAMO_MUST_USE paramo_err shared_model_save(paramo_worker *reader, const char *dir);

#endif
