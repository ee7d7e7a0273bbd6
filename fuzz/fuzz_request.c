/* The body of a scoring request: any bytes, in each format. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "learn/data/columns.h"
#include "learn/serve/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {NULL, "libsvm", "libffm", "criteo", "fields", "csv"};
    struct source s = {data, size};
    uint8_t how = draw_u8(&s);
    struct columns *columns = NULL;
    if (how & 0x20)
        CHECK(columns_parse("label=y,weight=w,cat=a;b,num=c,ignore=d", &columns) == PARAMO_OK);
    struct request_model model = {.hash_bits = how & 0x40 ? 20 : 0, .fields = how >> 7, .columns = columns};
    struct request request = {0};
    struct request_error error = {0};
    size_t len;
    uint8_t *body = draw_bytes(&s, s.left, &len);
    for (int pass = 0; pass < 2; pass++) { /* the memory is used again */
        int done =
            request_parse(&request, &model, formats[(how & 0x1f) % 6], (const char *)body, len, &error);
        const struct parse_buffer *b = &request.buffer;
        if (done) {
            CHECK(b->rows > 0 && b->offset[0] == 0 && b->offset[b->rows] == b->features);
            CHECK(b->has_field || !model.fields);
            for (size_t i = 0; i < b->features; i++)
                CHECK(isfinite(b->value[i]) && (!model.hash_bits || b->key[i] < UINT64_C(1) << 20));
        } else {
            CHECK(error.status == 400 && error.message[0] != '\0');
            for (const char *p = error.message; *p != '\0'; p++)
                CHECK(*p >= ' ' && *p <= '~');
            for (const char *p = error.field; *p != '\0'; p++)
                CHECK(*p >= ' ' && *p <= '~');
        }
    }
    request_free(&request);
    columns_release(columns);
    free(body);
    return 0;
}
