#include "filter/halving.h"

#include <math.h>

static float narrowed(const struct half_format *f, float value)
{
    float back = f->widen(f->narrow(value));
    return isfinite(value) && !isfinite(back) ? value : back;
}

bool halving_round(const struct half_format *format, struct filter_rows *r)
{
    if (r->dtype == PARAMO_F32) {
        float *v = r->vals;
        for (size_t i = 0; i < r->n; i++)
            v[i] = narrowed(format, v[i]);
        return true;
    }
    double *v = r->vals;
    for (size_t i = 0; i < r->n; i++) {
        float single = (float)v[i]; /* infinite: too large */
        if (isfinite(v[i]) && !isfinite(format->widen(format->narrow(single))))
            continue;
        v[i] = (double)narrowed(format, single);
    }
    return true;
}

bool halving_encode(const struct half_format *format, struct filter_message *m, struct writer *params)
{
    struct van_seg *seg = &m->seg[WIRE_SEG_VALS];
    if (!filter_rows_rounds(m->dtype) || !seg->len)
        return false;
    size_t n = (size_t)seg->len / m->value_bytes;
    uint16_t *to = filter_memory_take(&m->memory, n * sizeof *to);
    if (!to)
        return false;
    if (m->dtype == PARAMO_F32) {
        const float *v = seg->data;
        for (size_t i = 0; i < n; i++) {
            float back = format->widen(to[i] = format->narrow(v[i]));
            if (memcmp(&back, &v[i], sizeof back) != 0)
                return false;
        }
    } else {
        const double *v = seg->data;
        for (size_t i = 0; i < n; i++) {
            double back = (double)format->widen(to[i] = format->narrow((float)v[i]));
            if (memcmp(&back, &v[i], sizeof back) != 0)
                return false;
        }
    }
    write_u8(params, (uint8_t)m->dtype);
    *seg = (struct van_seg){.data = to, .len = n * sizeof *to};
    return true;
}

paramo_err halving_decode(const struct half_format *format, const char *name, struct reader *params,
                          struct filter_message *m)
{
    struct van_seg *seg = &m->seg[WIRE_SEG_VALS];
    paramo_dtype dtype = (paramo_dtype)read_u8(params);
    size_t n = (size_t)seg->len / 2, value_bytes = dtype == PARAMO_F32 ? 4 : 8;
    if (!reader_done(params) || !filter_rows_rounds(dtype) || !seg->len || seg->len % 2 ||
        n * value_bytes > FILTER_MESSAGE_MAX)
        return err_set(PARAMO_E_PROTOCOL, "%s: %llu bytes of values are not valid", name,
                       (unsigned long long)seg->len);
    void *to = filter_memory_take(&m->memory, n * value_bytes);
    if (!to)
        return err_memory(n * value_bytes);
    const uint8_t *from = seg->data;
    for (size_t i = 0; i < n; i++) {
        float value = format->widen((uint16_t)(from[2 * i] | from[2 * i + 1] << 8));
        if (dtype == PARAMO_F32)
            ((float *)to)[i] = value;
        else
            ((double *)to)[i] = (double)value;
    }
    *seg = (struct van_seg){.data = to, .len = n * value_bytes};
    return PARAMO_OK;
}
