/* A safetensors file: what opens can be read to its last byte and holds what it says. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "paramo/tensors.h"

static void look(const paramo_tensors *file, const char *name, const char *type, size_t rank, size_t width)
{
    size_t len;
    const uint8_t *whole = paramo_tensors_bytes(file, &len);
    paramo_tensor t;
    if (paramo_tensors_get(file, name, type, rank, &t))
        return;
    CHECK(paramo_tensors_has(file, name));
    uint64_t values = 1;
    for (size_t i = 0; i < t.rank; i++)
        CHECK(!__builtin_mul_overflow(values, t.shape[i], &values));
    CHECK(t.rank == rank && values * width == t.bytes);
    CHECK(!t.bytes || ((const uint8_t *)t.data >= whole && (const uint8_t *)t.data + t.bytes <= whole + len));
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < t.bytes; i++)
        sum = (uint8_t)(sum + ((const uint8_t *)t.data)[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct harness_file file;
    paramo_tensors *t;
    uint8_t *bytes = harness_alloc(size + 8);
    struct source s = {data, size};
    harness_quiet();
    size_t len = 0;
    if (draw_u8(&s) & 1) { /* the header's length is put before it: a text up to the first zero byte */
        const uint8_t *zero = s.left ? memchr(s.at, 0, s.left) : NULL;
        uint64_t header = zero ? (size_t)(zero - s.at) : s.left;
        for (; len < 8; len++)
            bytes[len] = (uint8_t)(header >> 8 * len);
    }
    memcpy(bytes + len, s.at, s.left);
    harness_file_open(&file, bytes, len + s.left);
    if (paramo_tensors_open(file.path, &t) == PARAMO_OK) {
        static const char *const names[] = {"keys", "values", "state", "a", ""};
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            look(t, names[i], "U64", 1, 8);
            look(t, names[i], "F32", 2, 4);
            look(t, names[i], "F32", 0, 4);
            look(t, names[i], "U8", 1, 1);
            look(t, names[i], "I64", 3, 8);
        }
        paramo_tensors_close(t);
    } else {
        CHECK(paramo_last_error()[0]);
    }
    harness_file_close(&file);
    free(bytes);
    return 0;
}
