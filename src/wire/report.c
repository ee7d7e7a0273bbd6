#include "wire/report.h"

/* Writes the classes that are not empty, in order. */
void spread_encode(const struct spread *m, struct writer *w)
{
    uint16_t classes = 0;
    for (unsigned i = 0; i < SPREAD_CLASSES; i++)
        classes = (uint16_t)(classes + (m->in[i] != 0));
    write_u64(w, m->max);
    write_u16(w, classes);
    for (unsigned i = 0; i < SPREAD_CLASSES; i++)
        if (m->in[i]) {
            write_u8(w, (uint8_t)i);
            write_u64(w, m->in[i]);
        }
}

void spread_decode(struct reader *r, struct spread *m)
{
    *m = (struct spread){.max = read_u64(r)};
    unsigned classes = read_u16(r), next = 0;
    for (unsigned i = 0; i < classes && !r->failed; i++) {
        unsigned at = read_u8(r);
        uint64_t n = read_u64(r);
        if (r->failed || at < next || n == 0) {
            r->failed = true;
            return;
        }
        m->in[at] = n;
        m->count += n;
        next = at + 1;
    }
    r->failed |= classes ? spread_class(m->max) + 1 != next : m->max != 0;
}

void shard_report_encode(const struct shard_report *m, struct writer *w)
{
    write_u64(w, m->rows);
    write_u64(w, m->table_bytes);
    write_u64(w, m->senders);
    write_u64(w, m->applied_window_notes);
    write_u64(w, m->applied_window_bytes);
    write_u64(w, m->requests);
    write_u64(w, m->repeats);
    spread_encode(&m->pauses, w);
}

void shard_report_decode(struct reader *r, struct shard_report *m)
{
    m->rows = read_u64(r);
    m->table_bytes = read_u64(r);
    m->senders = read_u64(r);
    m->applied_window_notes = read_u64(r);
    m->applied_window_bytes = read_u64(r);
    m->requests = read_u64(r);
    m->repeats = read_u64(r);
    spread_decode(r, &m->pauses);
}
