#include "cluster/checkpoint/ckpt_manifest.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "wire/table_spec.h"

static const char magic[8] = "PARAMOCM";

enum { MANIFEST_FORMAT = 2 /* 1: tables without replicas of their own */ };

void ckpt_manifest_fini(struct ckpt_manifest *m)
{
    free(m->tables);
    free(m->files);
    free(m->extra);
    m->tables = NULL;
    m->files = NULL;
    m->extra = NULL;
}

void ckpt_manifest_encode(const struct ckpt_manifest *m, struct writer *w)
{
    assert(m->number && m->id && m->base < m->number);
    assert((m->tables || !m->tables_count) && (m->files || !m->files_count));
    write_bytes(w, magic, sizeof magic);
    write_u32(w, MANIFEST_FORMAT);
    write_u64(w, m->number);
    write_u64(w, m->id);
    write_u64(w, m->base);
    write_u64(w, m->base_id);
    write_u64(w, m->job);
    write_u64(w, m->view);
    write_u64(w, m->made_at);
    write_u32(w, m->tables_count);
    for (uint32_t i = 0; i < m->tables_count; i++) {
        assert(m->tables[i].id && (!i || m->tables[i].id > m->tables[i - 1].id));
        write_u32(w, m->tables[i].id);
        write_string(w, m->tables[i].name);
        table_spec_encode(&m->tables[i].options, w);
    }
    write_u32(w, m->files_count);
    for (uint32_t i = 0; i < m->files_count; i++) {
        write_string(w, m->files[i].name);
        write_u64(w, m->files[i].bytes);
        write_u64(w, m->files[i].blocks);
        write_u64(w, m->files[i].sum);
    }
    write_u64(w, m->extra_bytes);
    if (m->extra_bytes)
        write_bytes(w, m->extra, m->extra_bytes);
    if (!w->failed)
        write_u64(w, hash_bytes(w->data, w->len));
}

static paramo_err damaged(const char *what)
{
    return err_set(PARAMO_E_CORRUPT, "the manifest is damaged: %s", what);
}

static paramo_err tables_decode(struct reader *r, uint32_t format, struct ckpt_manifest *m)
{
    m->tables_count = read_u32(r);
    if (r->failed || m->tables_count > VIEW_TABLES_MAX)
        return damaged("its tables");
    m->tables = calloc(m->tables_count + 1, sizeof *m->tables);
    if (!m->tables)
        return err_memory(m->tables_count * sizeof *m->tables);
    for (uint32_t i = 0; i < m->tables_count; i++) {
        struct view_table *table = &m->tables[i];
        table->id = read_u32(r);
        read_string(r, table->name, sizeof table->name);
        if ((format == 1 ? table_spec_decode_1 : table_spec_decode)(r, &table->options) || r->failed ||
            !table->id || (i && table->id <= table[-1].id))
            return damaged("a table");
    }
    return PARAMO_OK;
}

static paramo_err files_decode(struct reader *r, struct ckpt_manifest *m)
{
    m->files_count = read_u32(r);
    if (r->failed || m->files_count > CKPT_FILES_MAX)
        return damaged("its files");
    m->files = calloc(m->files_count + 1, sizeof *m->files);
    if (!m->files)
        return err_memory(m->files_count * sizeof *m->files);
    for (uint32_t i = 0; i < m->files_count; i++) {
        struct ckpt_file *file = &m->files[i];
        read_string(r, file->name, sizeof file->name);
        file->bytes = read_u64(r);
        file->blocks = read_u64(r);
        file->sum = read_u64(r);
        if (r->failed || !file->name[0] || strchr(file->name, '/') || file->name[0] == '.')
            return damaged("a file's name is not valid");
    }
    return PARAMO_OK;
}

paramo_err ckpt_manifest_decode(const void *data, size_t len, struct ckpt_manifest *out)
{
    struct ckpt_manifest m = {0};
    struct reader r = reader_over(data, len);
    const uint8_t *begin = read_span(&r, sizeof magic);
    if (!begin || memcmp(begin, magic, sizeof magic) != 0)
        return err_set(PARAMO_E_FORMAT, "not the manifest of a checkpoint");
    uint32_t format = read_u32(&r);
    if (!r.failed && (!format || format > MANIFEST_FORMAT))
        return err_set(PARAMO_E_FORMAT,
                       "the manifest has format %" PRIu32 "; this program reads formats 1 to %d", format,
                       MANIFEST_FORMAT);
    struct reader sum = len >= 8 ? reader_over((const uint8_t *)data + len - 8, 8) : reader_over(NULL, 0);
    if (len < 8 || read_u64(&sum) != hash_bytes(data, len - 8))
        return damaged("its checksum is wrong");
    m.number = read_u64(&r);
    m.id = read_u64(&r);
    m.base = read_u64(&r);
    m.base_id = read_u64(&r);
    m.job = read_u64(&r);
    m.view = read_u64(&r);
    m.made_at = read_u64(&r);
    paramo_err err =
        r.failed || !m.number || !m.id || m.base >= m.number ? damaged("its numbers") : PARAMO_OK;
    if (!err)
        err = tables_decode(&r, format, &m);
    if (!err)
        err = files_decode(&r, &m);
    if (!err) {
        uint64_t bytes = read_u64(&r);
        m.extra_bytes = (size_t)bytes;
        if (r.failed || bytes > CKPT_EXTRA_MAX || r.left != bytes + 8)
            err = damaged("its length");
        else if (!(m.extra = malloc(m.extra_bytes + 1)))
            err = err_memory(m.extra_bytes);
        else
            read_bytes(&r, m.extra, m.extra_bytes);
    }
    if (err) {
        ckpt_manifest_fini(&m);
        return err;
    }
    *out = m;
    return PARAMO_OK;
}
