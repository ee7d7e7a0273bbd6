/* What two ucx vans say while they set up a way, and the words of their messages: what decodes is encoded
 * again to the same bytes, and no word leads out of an area. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "van/ucx/ucx_setup.h"

static void try_setup(const uint8_t *data, size_t size)
{
    uint8_t again[SETUP_BYTES_MAX];
    struct ucx_setup setup;
    if (ucx_setup_decode(data, size, &setup) || (setup.kind == SETUP_OFFER && setup.version != SETUP_VERSION))
        return;
    CHECK(setup.address_len <= UCX_ADDRESS_MAX && setup.way < UCX_KINDS &&
          strlen(setup.why) < sizeof setup.why);
    CHECK(ucx_setup_encode(&setup, again) == size && memcmp(data, again, size) == 0);
}

static void words(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    uint64_t at = 0;
    while (s.left) {
        struct ucx_word word;
        uint64_t bits = draw_u64(&s), before = at;
        size_t offset;
        if (ucx_word_decode(bits, &word))
            continue;
        CHECK(ucx_word_encode(&word) == bits);
        if (word.message != MESSAGE_AREA || ucx_area_step(&word, &at, &offset))
            continue;
        CHECK(offset + word.len <= AREA_BYTES && at - before >= word.len);
        CHECK((at - word.len) % AREA_BYTES == offset);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    if (data[0] & 1)
        try_setup(data + 1, size - 1);
    else
        words(data + 1, size - 1);
    return 0;
}
