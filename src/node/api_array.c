/* paramo/array.h over base/array.h. */
#include <string.h>

#include "base/array.h"
#include "node/node.h"

paramo_err paramo_array_new(size_t len, paramo_array **array)
{
    return array ? array_new(len, array) : err_set(PARAMO_E_INVALID, "array is NULL");
}

paramo_err paramo_array_copy(const void *data, size_t len, paramo_array **array)
{
    if (!array || (!data && len))
        return err_set(PARAMO_E_INVALID, "array or data is NULL");
    paramo_err err = array_new(len, array);
    if (!err && len)
        memcpy((*array)->data, data, len);
    return err;
}

paramo_err paramo_array_wrap(void *data, size_t len, void (*release)(void *arg, void *data), void *arg,
                             paramo_array **array)
{
    return array ? array_wrap(data, len, release, arg, array) : err_set(PARAMO_E_INVALID, "array is NULL");
}

paramo_err paramo_array_slice(paramo_array *array, size_t offset, size_t len, paramo_array **slice)
{
    if (!array || !slice)
        return err_set(PARAMO_E_INVALID, "array or slice is NULL");
    return array_slice(array, offset, len, slice);
}

paramo_array *paramo_array_ref(paramo_array *array)
{
    return array_ref(array);
}

void paramo_array_unref(paramo_array *array)
{
    array_unref(array);
}

void *paramo_array_data(const paramo_array *array)
{
    return array ? array->data : NULL;
}

size_t paramo_array_len(const paramo_array *array)
{
    return array ? array->len : 0;
}

uint32_t paramo_array_refs(const paramo_array *array)
{
    return array ? atomic_load(&array->refs) : 0;
}
