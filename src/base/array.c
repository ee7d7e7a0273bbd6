#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, HEAD = (sizeof(struct paramo_array) + ALIGN - 1) / ALIGN * ALIGN };

paramo_err array_new(size_t len, struct paramo_array **array)
{
    if (len > SIZE_MAX - HEAD - ALIGN)
        return err_memory(len);
    struct paramo_array *a = aligned_alloc(ALIGN, HEAD + (len + ALIGN - 1) / ALIGN * ALIGN);
    if (!a)
        return err_memory(len);
    *a = (struct paramo_array){.data = len ? (char *)a + HEAD : NULL, .len = len};
    atomic_init(&a->refs, 1);
    if (len)
        memset(a->data, 0, len);
    *array = a;
    return PARAMO_OK;
}

paramo_err array_wrap(void *data, size_t len, void (*release)(void *arg, void *data), void *arg,
                      struct paramo_array **array)
{
    if (!data && len)
        return err_set(PARAMO_E_INVALID, "data is NULL, but the array has %zu bytes", len);
    struct paramo_array *a = malloc(sizeof *a);
    if (!a)
        return err_memory(sizeof *a);
    *a = (struct paramo_array){.data = data, .len = len, .release = release, .arg = arg};
    atomic_init(&a->refs, 1);
    *array = a;
    return PARAMO_OK;
}

paramo_err array_slice(struct paramo_array *array, size_t offset, size_t len, struct paramo_array **slice)
{
    if (offset > array->len || len > array->len - offset)
        return err_set(PARAMO_E_INVALID, "bytes %zu to %zu are outside the array of %zu bytes", offset,
                       offset + len, array->len);
    paramo_err err = array_wrap(len ? (char *)array->data + offset : NULL, len, NULL, NULL, slice);
    if (!err)
        (*slice)->whole = array_ref(array);
    return err;
}

struct paramo_array *array_ref(struct paramo_array *a)
{
    if (a)
        atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed);
    return a;
}

void array_unref(struct paramo_array *a)
{
    while (a && atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) == 1) {
        struct paramo_array *whole = a->whole;
        if (a->release)
            a->release(a->arg, a->data);
        free(a);
        a = whole;
    }
}
