#include "filter/message.h"

#include <zstd.h>

void *filter_memory_take(struct filter_memory *memory, size_t bytes)
{
    if (memory->count == FILTER_BLOCKS)
        return NULL;
    void *data = bufpool_get(memory->pool, bytes);
    if (data) {
        memory->block[memory->count].data = data;
        memory->block[memory->count++].bytes = bytes;
    }
    return data;
}

void filter_memory_give(struct filter_memory *memory)
{
    while (memory->count) {
        memory->count--;
        bufpool_put(memory->pool, memory->block[memory->count].data, memory->block[memory->count].bytes);
    }
}

void filter_tools_fini(struct filter_tools *tools)
{
    (void)ZSTD_freeCCtx(tools->zstd_out);
    (void)ZSTD_freeDCtx(tools->zstd_in);
    *tools = (struct filter_tools){0};
}

struct keylist *filter_message_list(struct filter_message *m)
{
    if (!m->looked && m->lists && m->keys && m->count)
        m->list = keylists_find(m->lists, m->table, m->keys, m->count);
    m->looked = true;
    return m->list;
}
