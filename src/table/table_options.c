#include "table/table_options.h"

#include <math.h>

#include "table/optimizer/optimizer_def.h"

void table_options_default(paramo_table_options *o)
{
    *o = (paramo_table_options){
        .size = sizeof *o,
        .kind = PARAMO_TABLE_SPARSE,
        .dtype = PARAMO_F32,
        .dim = 1,
        .placement = PARAMO_PLACE_AUTO,
        .optimizer = PARAMO_OPT_ADD,
        .alpha = 0.1F,
        .beta = 1.0F,
        .momentum = 0.9F,
        .beta1 = 0.9F,
        .beta2 = 0.999F,
        .epsilon = 1e-8F,
        .init = PARAMO_INIT_ZERO,
        .replicas = PARAMO_REPLICAS_OF_JOB,
    };
}

size_t table_dtype_size(paramo_dtype dtype)
{
    switch (dtype) {
    case PARAMO_F32:
    case PARAMO_I32:
        return 4;
    case PARAMO_F64:
    case PARAMO_I64:
        return 8;
    case PARAMO_U8:
        return 1;
    }
    return 0;
}

static paramo_err check_number(const char *field, float value, bool fine, const char *rule)
{
    if (isfinite(value) && fine)
        return PARAMO_OK;
    return err_set(PARAMO_E_INVALID, "table option %s is %g: must be %s", field, (double)value, rule);
}

enum limits { ABOVE_0, FROM_0, FROM_0_BELOW_1 };

static bool within(float value, enum limits limits)
{
    switch (limits) {
    case ABOVE_0:
        return value > 0;
    case FROM_0:
        return value >= 0;
    case FROM_0_BELOW_1:
        return value >= 0 && value < 1;
    }
    return false;
}

/* Checks the options that optimizers read, each with its limits. */
static paramo_err check_optimizer_options(const paramo_table_options *o, unsigned read)
{
    static const char *const rules[] = {[ABOVE_0] = "finite and greater than 0",
                                        [FROM_0] = "finite and not negative",
                                        [FROM_0_BELOW_1] = "in [0, 1)"};
    const struct {
        enum optimizer_option option;
        const char *name;
        float value;
        enum limits limits;
    } options[] = {
        {OPTIMIZER_ALPHA, "alpha", o->alpha, ABOVE_0},
        {OPTIMIZER_L1, "l1", o->l1, FROM_0},
        {OPTIMIZER_L2, "l2", o->l2, FROM_0},
        {OPTIMIZER_BETA, "beta", o->beta, ABOVE_0},
        {OPTIMIZER_MOMENTUM, "momentum", o->momentum, FROM_0_BELOW_1},
        {OPTIMIZER_BETA1, "beta1", o->beta1, FROM_0_BELOW_1},
        {OPTIMIZER_BETA2, "beta2", o->beta2, FROM_0_BELOW_1},
        {OPTIMIZER_EPSILON, "epsilon", o->epsilon, ABOVE_0},
    };
    paramo_err err = PARAMO_OK;
    for (size_t i = 0; i < sizeof options / sizeof *options && err == PARAMO_OK; i++) {
        if (read & options[i].option) {
            err = check_number(options[i].name, options[i].value, within(options[i].value, options[i].limits),
                               rules[options[i].limits]);
        }
    }
    return err;
}

static paramo_err check_optimizer(const paramo_table_options *o)
{
    if ((unsigned)o->optimizer >= PARAMO_OPTIMIZER_COUNT) {
        return err_set(PARAMO_E_INVALID, "table option optimizer is %u: no such optimizer",
                       (unsigned)o->optimizer);
    }
    const struct optimizer_def *def = optimizer_def(o->optimizer);
    if (def->input == OPTIMIZER_GRADIENT && o->kind == PARAMO_TABLE_VAR) {
        return err_set(PARAMO_E_INVALID,
                       "table option optimizer: a variable-length table takes assign, add and max only");
    }
    if (!def->kernel[o->dtype].rows)
        return err_set(PARAMO_E_INVALID, "table option dtype: optimizers other than assign and add need F32");
    return check_optimizer_options(o, def->options);
}

static paramo_err check_aggregate(const paramo_table_options *o)
{
    if ((unsigned)o->aggregate > PARAMO_AGGREGATE_MEAN)
        return err_set(PARAMO_E_INVALID, "table option aggregate is %u: no such kind",
                       (unsigned)o->aggregate);
    if (!o->aggregate)
        return PARAMO_OK;
    if (o->kind != PARAMO_TABLE_SPARSE)
        return err_set(PARAMO_E_INVALID, "table option aggregate: only sparse tables aggregate pushes");
    if (o->dtype != PARAMO_F32 && o->dtype != PARAMO_F64)
        return err_set(PARAMO_E_INVALID, "table option aggregate: needs F32 or F64");
    if (o->optimizer == PARAMO_OPT_ASSIGN || o->optimizer == PARAMO_OPT_MAX)
        return err_set(PARAMO_E_INVALID,
                       "table option aggregate: a sum of pushes needs another optimizer than assign "
                       "and max");
    return PARAMO_OK;
}

/* Smallest and largest initial value that converts to the type without overflow. */
static void dtype_limits(paramo_dtype dtype, float *low, float *high)
{
    *low = -0x1p127F;
    *high = 0x1p127F;
    if (dtype == PARAMO_I32) {
        *low = -0x1p30F;
        *high = 0x1p30F;
    } else if (dtype == PARAMO_I64) {
        *low = -0x1p62F;
        *high = 0x1p62F;
    } else if (dtype == PARAMO_U8) {
        *low = 0;
        *high = 256;
    }
}

static paramo_err check_init(const paramo_table_options *o)
{
    paramo_err err;
    if ((unsigned)o->init > PARAMO_INIT_NORMAL) {
        return err_set(PARAMO_E_INVALID, "table option init is %u: no such kind of initial value",
                       (unsigned)o->init);
    }
    if (o->init == PARAMO_INIT_ZERO)
        return PARAMO_OK;
    if (o->kind == PARAMO_TABLE_VAR)
        return err_set(PARAMO_E_INVALID, "table option init: variable-length rows have no initial values");
    float low;
    float high;
    dtype_limits(o->dtype, &low, &high);
    const char *within = "finite and in the range of the table's type";
    if (o->init == PARAMO_INIT_NORMAL) {
        if (o->dtype != PARAMO_F32 && o->dtype != PARAMO_F64)
            return err_set(PARAMO_E_INVALID, "table option init: normal initial values need F32 or F64");
        /* 9 standard deviations is more than the generator ever draws */
        float reach = high / 16;
        if ((err = check_number("init_a", o->init_a, fabsf(o->init_a) <= reach, within)))
            return err;
        return check_number("init_b", o->init_b, o->init_b >= 0 && o->init_b <= reach,
                            "a standard deviation: finite and not negative");
    }
    bool a_fits = o->init_a >= low && (o->init_a < high || o->dtype == PARAMO_F32 || o->dtype == PARAMO_F64);
    if ((err = check_number("init_a", o->init_a, a_fits, within)))
        return err;
    if (o->init == PARAMO_INIT_UNIFORM) {
        return check_number("init_b", o->init_b, o->init_b > o->init_a && o->init_b <= high,
                            "greater than init_a and in the range of the table's type");
    }
    return PARAMO_OK;
}

paramo_err table_options_check(const paramo_table_options *o)
{
    if ((unsigned)o->kind > PARAMO_TABLE_USER)
        return err_set(PARAMO_E_INVALID, "table option kind is %u: no such kind", (unsigned)o->kind);
    if (table_dtype_size(o->dtype) == 0)
        return err_set(PARAMO_E_INVALID, "table option dtype is %u: no such type", (unsigned)o->dtype);
    if ((unsigned)o->placement > PARAMO_PLACE_RANGE) {
        return err_set(PARAMO_E_INVALID, "table option placement is %u: no such placement",
                       (unsigned)o->placement);
    }
    if (o->replicas != PARAMO_REPLICAS_OF_JOB && o->replicas > TABLE_REPLICAS_MAX) {
        return err_set(PARAMO_E_INVALID,
                       "table option replicas is %u: from 0 to %d, or PARAMO_REPLICAS_OF_JOB (%d)",
                       o->replicas, TABLE_REPLICAS_MAX, PARAMO_REPLICAS_OF_JOB);
    }
    if (o->kind == PARAMO_TABLE_USER && o->replicas != PARAMO_REPLICAS_OF_JOB) {
        return err_set(PARAMO_E_INVALID, "table option replicas is %u: a table with a handler has no copies",
                       o->replicas);
    }
    if (o->kind == PARAMO_TABLE_DENSE) {
        if (o->rows == 0) {
            return err_set(PARAMO_E_INVALID,
                           "table option rows is 0: a dense table needs its number of rows");
        }
        if (o->rows > TABLE_DENSE_ROWS_MAX) {
            return err_set(PARAMO_E_TOO_LARGE, "table option rows is %llu: at most %llu",
                           (unsigned long long)o->rows, (unsigned long long)TABLE_DENSE_ROWS_MAX);
        }
        if (o->placement == PARAMO_PLACE_MIXED || o->placement == PARAMO_PLACE_UNIFORM) {
            return err_set(PARAMO_E_INVALID,
                           "table option placement: a dense table is placed dense or by range");
        }
    } else if (o->placement == PARAMO_PLACE_DENSE) {
        return err_set(PARAMO_E_INVALID, "table option placement: dense placement needs a dense table");
    }
    if (o->kind == PARAMO_TABLE_USER)
        return check_aggregate(o);
    if (o->kind != PARAMO_TABLE_VAR) {
        if (o->dim == 0)
            return err_set(PARAMO_E_INVALID, "table option dim is 0: a row needs at least one value");
        if (o->dim > TABLE_DIM_MAX)
            return err_set(PARAMO_E_TOO_LARGE, "table option dim is %u: at most %u", o->dim, TABLE_DIM_MAX);
    }
    paramo_err err = check_optimizer(o);
    if (!err)
        err = check_aggregate(o);
    return err ? err : check_init(o);
}

paramo_placement table_options_placement(const paramo_table_options *o)
{
    if (o->placement != PARAMO_PLACE_AUTO)
        return o->placement;
    return o->kind == PARAMO_TABLE_DENSE ? PARAMO_PLACE_DENSE : PARAMO_PLACE_MIXED;
}

size_t table_aggregate_bytes(uint32_t dim)
{
    return 16 + 16 * (size_t)dim;
}

size_t table_state_values(const paramo_table_options *o)
{
    const struct optimizer_def *def = optimizer_def(o->optimizer);
    return def->planes * (size_t)o->dim + def->counts;
}

size_t table_row_values(const paramo_table_options *o, bool with_state)
{
    return o->dim + (with_state ? table_state_values(o) : 0);
}

size_t table_stored_values(const paramo_table_options *o)
{
    size_t pending = o->aggregate ? table_aggregate_bytes(o->dim) / table_dtype_size(o->dtype) : 0;
    return table_row_values(o, true) + pending;
}

bool table_options_splittable(const paramo_table_options *o)
{
    return (o->kind == PARAMO_TABLE_SPARSE || o->kind == PARAMO_TABLE_DENSE) &&
           !optimizer_def(o->optimizer)->counts && !o->aggregate;
}
