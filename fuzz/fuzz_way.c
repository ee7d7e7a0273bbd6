/* What two ucx vans say while they set up a way, and the words of their messages: what decodes is encoded
 * again to the same bytes, and no word leads out of an area. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "van/ucx_say.h"

static void said(const uint8_t *data, size_t size)
{
    uint8_t again[SAY_MAX];
    struct ucx_say say;
    if (ucx_say_decode(data, size, &say) || (say.kind == SAY_OFFER && say.version != SAY_VERSION))
        return;
    CHECK(say.address_len <= UCX_ADDRESS_MAX && say.way < UCX_KINDS && strlen(say.why) < sizeof say.why);
    CHECK(ucx_say_encode(&say, again) == size && memcmp(data, again, size) == 0);
}

static void words(const uint8_t *data, size_t size)
{
    struct source s = {data, size};
    uint64_t at = 0;
    while (s.left) {
        struct ucx_word word;
        uint64_t bits = take_u64(&s), before = at;
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
        said(data + 1, size - 1);
    else
        words(data + 1, size - 1);
    return 0;
}
