#include "cluster/meta/store.h"

#include <assert.h>

void store_record_begin(struct writer *w, uint64_t id, size_t *mark)
{
    write_u64(w, id);
    *mark = w->len;
    write_u32(w, 0);
}

void store_record_end(struct writer *w, size_t mark)
{
    if (w->failed)
        return;
    assert(mark >= sizeof(uint64_t) && mark + sizeof(uint32_t) <= w->len);
    struct writer len = writer_over(w->data + mark, sizeof(uint32_t));
    write_u32(&len, (uint32_t)(w->len - mark - sizeof(uint32_t)));
}

bool store_record_next(struct reader *records, uint64_t *id, struct reader *record)
{
    if (records->failed || !records->left)
        return false;
    *id = read_u64(records);
    uint32_t len = read_u32(records);
    const uint8_t *data = read_span(records, len);
    if (records->failed)
        return false;
    *record = reader_over(data, len);
    return true;
}

paramo_err store_save(struct store *store, struct writer *records, bool whole, store_saved_fn *done,
                      void *arg)
{
    paramo_err err = PARAMO_OK;
    assert(done && !records->fixed);
    if (records->failed)
        err = err_memory(records->len);
    else if (records->len > STORE_BYTES_MAX)
        err = err_set(PARAMO_E_TOO_LARGE, "the state is too large to be saved: %zu bytes", records->len);
    if (!err)
        return store->ops->save(store, records, whole, done, arg);
    writer_fini(records);
    return err;
}
