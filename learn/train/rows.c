#include "learn/train/rows.h"

#include "learn/data/holdout.h"
#include "learn/io/input.h"
#include "learn/train/centre.h"
#include "learn/train/first_rows.h"

/* Files of at most this many bytes are read before the job begins: they may have too few rows to hold some out.
 * Arbitrary: one part of plain text, a few milliseconds. */
#define SMALL_BYTES READER_PART_BYTES

/* Can these held-out rows measure a model? Binary labels must be of both kinds; of others, two rows are enough. */
static int enough(const struct objective *o, const size_t seen[2])
{
    return o->ops->labels == LABEL_BINARY ? seen[0] > 0 && seen[1] > 0 : seen[0] + seen[1] > 1;
}

/* Counts held-out rows until there are enough, or the stream ends (0). An error counts as enough: the reader returns it
 * again. */
static int count_stream(struct reader *reader, uint32_t stream, const struct objective *o, size_t seen[2])
{
    for (uint64_t index = 0; !enough(o, seen); index++) {
        const struct block *block;
        int ended = 0;
        if (reader_held_out(reader, stream, index, &block, &ended) != PARAMO_OK)
            return 1;
        if (ended)
            return 0;
        for (size_t r = 0; r < block->rows; r++)
            seen[block->label[r] > 0.5f]++;
        reader_release(reader, block);
    }
    return 1;
}

static int can_measure(struct reader *reader, const struct objective *o)
{
    const uint64_t size = reader_size(reader);
    size_t seen[2] = {0, 0};
    int can = size == 0 || size > SMALL_BYTES;
    for (uint32_t s = 0; !can && s < reader_streams(reader); s++)
        can = count_stream(reader, s, o, seen);
    return can;
}

static uint64_t epochs_of(const struct job *job)
{
    if (job->o->epochs > 0)
        return job->o->epochs;
    return job->hold_out > 0 || job->o->valid_n > 0 ? TRAIN_EPOCHS : 1;
}

static paramo_err open_data(struct job *job, const struct reader_options *common)
{
    struct reader_options options = *common;
    job->epochs = epochs_of(job);
    options.cache = job->epochs > 1 && !job->o->darlin.on; /* which keeps its parts by column */
    options.hold_out = job->hold_out;
    return reader_open(&options, job->o->data, job->o->data_n, &job->reader);
}

/* Takes the readers of o->rows, which are open. */
static paramo_err take_shared(struct job *job)
{
    const struct train_rows *rows = job->o->rows;
    job->reader = rows->reader;
    job->valid = rows->valid;
    job->hold_out = rows->hold_out;
    job->epochs = epochs_of(job);
    paramo_err err = first_rows_fields(job);
    if (err == PARAMO_OK)
        err = first_rows_balance(job);
    if (err == PARAMO_OK)
        err = first_rows_length(job);
    if (err == PARAMO_OK)
        err = first_rows_centre(job);
    return err == PARAMO_OK && job->valid ? metrics_new(&job->info.objective, &job->metrics) : err;
}

void rows_options(const struct train_options *o, const struct model_info *info,
                  struct reader_options *options)
{
    *options = o->reader;
    options->hash_bits = info->hash_bits;
    options->fields = info->ops->fields != MODEL_NO_FIELDS;
    options->interactions = &info->interactions;
    options->label = objective_label_rule(&info->objective);
}

paramo_err rows_open(struct job *job)
{
    const struct train_options *o = job->o;
    struct reader_options options;
    if (o->rows)
        return take_shared(job);
    rows_options(o, &job->info, &options);
    job->hold_out = o->valid_n > 0 ? 0 : o->hold_out;
    paramo_err err = open_data(job, &options);
    if (err == PARAMO_OK && job->hold_out > 0 && o->reader.folds == 0 &&
        !can_measure(job->reader, &job->info.objective)) {
        reader_close(job->reader);
        job->reader = NULL;
        job->hold_out = 0;
        err = open_data(job, &options);
    }
    if (err == PARAMO_OK)
        err = first_rows_fields(job);
    if (err == PARAMO_OK)
        err = first_rows_balance(job);
    if (err == PARAMO_OK)
        err = first_rows_length(job);
    if (err == PARAMO_OK)
        err = first_rows_centre(job);
    if (err == PARAMO_OK && o->valid_n > 0) {
        options.cache = job->epochs > 1;
        /* a quarter of the bytes of the data's reader; 0 would be half of the memory, a second time */
        options.cache_bytes =
            options.cache_bytes > 0 ? options.cache_bytes / 4 : input_available_memory() / 8;
        err = reader_open(&options, o->valid, o->valid_n, &job->valid);
        if (err == PARAMO_OK)
            err = metrics_new(&job->info.objective, &job->metrics);
    }
    return err;
}

paramo_err train_rows_open(const struct train_options *options, struct train_rows *rows)
{
    struct train_options o = *options;
    struct job job = {.o = &o, .info = o.model};
    o.rows = NULL;
    o.epochs = o.epochs > 1 ? o.epochs : 2; /* more than one, so that parsed rows are kept */
    paramo_err err = rows_open(&job);
    metrics_free(job.metrics);
    centre_free(job.centre);
    *rows = (struct train_rows){.reader = job.reader,
                                .valid = job.valid,
                                .hold_out = job.hold_out,
                                .row_features = job.info.row_features};
    if (err != PARAMO_OK)
        train_rows_close(rows);
    return err;
}

void train_rows_close(struct train_rows *rows)
{
    reader_close(rows->reader);
    reader_close(rows->valid);
    *rows = (struct train_rows){0};
}

void rows_tell(struct job *job)
{
    job->result->by_epoch = rate_schedule_varies(&job->o->schedule) && reader_parts(job->reader) == 0;
    if (job->result->by_epoch)
        progress_line(&job->progress,
                      "the learning rate changes between epochs only: compressed files and pipes "
                      "do not tell how long they are");
    if (job->o->hold_out > 0 && job->o->valid_n == 0 && job->hold_out == 0)
        progress_line(&job->progress, "nothing is held out: %u %% of these rows would %s", job->o->hold_out,
                      job->info.objective.ops->labels == LABEL_BINARY ? "not have both classes"
                                                                      : "be too few");
}
