#include "post/store.h"

void store_cell_begin(struct writer *w, uint64_t id, size_t *mark)
{
    write_u64(w, id);
    *mark = w->len;
    write_u32(w, 0);
}

void store_cell_end(struct writer *w, size_t mark)
{
    if (w->failed)
        return;
    struct writer len = writer_over(w->data + mark, sizeof(uint32_t));
    write_u32(&len, (uint32_t)(w->len - mark - sizeof(uint32_t)));
}

bool store_cell_next(struct reader *cells, uint64_t *id, struct reader *cell)
{
    if (cells->failed || !cells->left)
        return false;
    *id = read_u64(cells);
    uint32_t len = read_u32(cells);
    const uint8_t *data = read_span(cells, len);
    if (cells->failed)
        return false;
    *cell = reader_over(data, len);
    return true;
}

paramo_err store_save(struct store *store, struct writer *cells, bool whole, store_saved_fn *done, void *arg)
{
    paramo_err err = PARAMO_OK;
    if (cells->failed)
        err = err_memory(cells->len);
    else if (cells->len > STORE_BYTES_MAX)
        err = err_set(PARAMO_E_TOO_LARGE, "%zu bytes of state", cells->len);
    if (!err)
        return store->ops->save(store, cells, whole, done, arg);
    writer_fini(cells);
    return err;
}
