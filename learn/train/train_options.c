#include "learn/train/train_options.h"
#include "learn/model/optimizers.h"

#include <string.h>

paramo_err train_take_weights(const char *dir, struct model_info *info)
{
    struct model model;
    paramo_err err = modelio_open(dir, &model);
    if (err != PARAMO_OK)
        return err;
    if (model.scale.file)
        err = paramo_error_set(
            PARAMO_E_UNSUPPORTED,
            "%s: its features were scaled, and --solver darlin does not scale: train that model with "
            "--scale none",
            dir);
    if (err == PARAMO_OK) {
        *info = model.info;
        columns_retain(info->columns);
    }
    modelio_close(&model);
    return err;
}

paramo_err train_take_settings(const char *dir, struct model_info *info)
{
    struct model model;
    paramo_err err = modelio_open(dir, &model);
    if (err != PARAMO_OK)
        return err;
    for (size_t i = 0; err == PARAMO_OK && i < model.n; i++) {
        const struct optimizer_choice *o = optimizers_find(model.info.optimizer[i].name);
        if (strcmp(model.info.optimizer[i].name, DARLIN_OPTIMIZER) == 0)
            err = paramo_error_set(PARAMO_E_UNSUPPORTED,
                                   "%s: was trained with --solver darlin, and continues only with that", dir);
        else if (!o)
            err = paramo_error_set(PARAMO_E_UNSUPPORTED,
                                   "%s: was trained with optimizer '%s', which this version does not have",
                                   dir, model.info.optimizer[i].name);
        else if (model.table[i].state == 0 && model.table[i].n > 0 && !o->stateless)
            err = paramo_error_set(PARAMO_E_UNSUPPORTED,
                                   "%s: the model was saved without its optimizers' state; training cannot "
                                   "continue from it: save "
                                   "it without --no-state",
                                   dir);
    }
    if (err == PARAMO_OK) {
        *info = model.info;
        columns_retain(info->columns);
    }
    modelio_close(&model);
    return err;
}

static uint64_t batch_of(uint64_t in_flight, uint32_t workers, uint32_t ahead)
{
    uint64_t rows = in_flight / ((uint64_t)workers * ((uint64_t)ahead + 1));
    return rows < TRAIN_BATCH_MIN ? TRAIN_BATCH_MIN : rows;
}

uint64_t train_batch(uint32_t workers, uint32_t ahead)
{
    return batch_of(TRAIN_IN_FLIGHT, workers, ahead);
}

uint64_t train_first_batch(uint32_t workers, uint32_t ahead)
{
    return batch_of(TRAIN_FIRST_IN_FLIGHT, workers, ahead);
}

uint64_t train_batch_fitting(const struct model_info *info, uint64_t rows, uint64_t least)
{
    double values = 0; /* of a row */
    for (size_t t = 0; t < info->ops->tables; t++)
        if (model_fixed_rows(info, t) == 0)
            values += info->row_features * model_row_values(info, t);
    if ((double)rows * values <= TRAIN_BATCH_VALUES)
        return rows;
    const uint64_t fitting = (uint64_t)(TRAIN_BATCH_VALUES / values);
    return fitting > least ? fitting : least;
}

uint64_t train_passes(uint32_t round)
{
    uint64_t before = 0, passes = 1;
    for (uint32_t r = 0; r < round && before < TRAIN_EPOCHS_MAX; r++) {
        before += passes;
        passes = before > 2 ? before / 2 : 1;
    }
    return passes;
}
