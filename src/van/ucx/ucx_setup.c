#include "van/ucx/ucx_setup.h"

#include <string.h>

#include "base/cursor.h"

static void place_read(struct reader *r, struct area_place *place)
{
    place->pid = read_u32(r);
    place->fd = read_u32(r);
}

static void place_write(struct writer *w, const struct area_place *place)
{
    write_u32(w, place->pid);
    write_u32(w, place->fd);
}

static void address_read(struct reader *r, struct ucx_setup *setup)
{
    setup->proof = read_u64(r);
    setup->address_len = read_u16(r);
    setup->address = read_span(r, setup->address_len);
    if (setup->address_len < UCX_ADDRESS_MIN || setup->address_len > UCX_ADDRESS_MAX)
        r->failed = true;
}

static void address_write(struct writer *w, const struct ucx_setup *setup)
{
    write_u64(w, setup->proof);
    write_u16(w, (uint16_t)setup->address_len);
    write_bytes(w, setup->address, setup->address_len);
}

paramo_err ucx_setup_decode(const uint8_t *bytes, size_t len, struct ucx_setup *setup)
{
    struct reader r = reader_over(bytes, len);
    *setup = (struct ucx_setup){.kind = read_u8(&r)};
    switch (setup->kind) {
    case SETUP_OFFER:
        setup->version = read_u8(&r);
        if (setup->version != SETUP_VERSION && !r.failed)
            return PARAMO_OK;
        setup->host = read_u64(&r);
        setup->kinds = read_u8(&r);
        place_read(&r, &setup->area);
        break;
    case SETUP_ACCEPT:
        setup->way = read_u8(&r);
        place_read(&r, &setup->area);
        address_read(&r, setup);
        if (setup->way >= UCX_KINDS)
            r.failed = true;
        break;
    case SETUP_DECLINE:
        read_string(&r, setup->why, sizeof setup->why);
        break;
    case SETUP_READY:
        address_read(&r, setup);
        break;
    case SETUP_RETRACT:
    case SETUP_LAST:
        break;
    default:
        r.failed = true;
    }
    if (!reader_done(&r))
        return err_set(PARAMO_E_PROTOCOL, "a UCX setup frame of kind %u and %zu bytes is not valid",
                       setup->kind, len);
    return PARAMO_OK;
}

size_t ucx_setup_encode(const struct ucx_setup *setup, uint8_t bytes[SETUP_BYTES_MAX])
{
    struct writer w = writer_over(bytes, SETUP_BYTES_MAX);
    write_u8(&w, setup->kind);
    switch (setup->kind) {
    case SETUP_OFFER:
        write_u8(&w, setup->version);
        write_u64(&w, setup->host);
        write_u8(&w, setup->kinds);
        place_write(&w, &setup->area);
        break;
    case SETUP_ACCEPT:
        write_u8(&w, setup->way);
        place_write(&w, &setup->area);
        address_write(&w, setup);
        break;
    case SETUP_DECLINE:
        write_string(&w, setup->why);
        break;
    case SETUP_READY:
        address_write(&w, setup);
        break;
    default:
        break;
    }
    return w.failed || setup->address_len > UCX_ADDRESS_MAX ? 0 : w.len;
}

/* kind 8, then ROOM: position 56; AREA: wrap 1, zero 23, len 32 */
uint64_t ucx_word_encode(const struct ucx_word *word)
{
    if (word->message == MESSAGE_ROOM)
        return MESSAGE_ROOM | word->position << 8;
    return word->message | (uint64_t)word->wrap << 8 | (uint64_t)word->len << 32;
}

paramo_err ucx_word_decode(uint64_t bits, struct ucx_word *word)
{
    *word = (struct ucx_word){.message = (uint8_t)bits};
    if (word->message == MESSAGE_ROOM) {
        word->position = bits >> 8;
        return PARAMO_OK;
    }
    word->wrap = bits >> 8 & 1;
    word->len = (uint32_t)(bits >> 32);
    bool area = word->message == MESSAGE_AREA;
    if (word->message >= MESSAGE_KINDS || ucx_word_encode(word) != bits ||
        (!area && (word->wrap || word->len)))
        return err_set(PARAMO_E_PROTOCOL, "a UCX message of kind %u is not valid", word->message);
    return PARAMO_OK;
}

paramo_err ucx_area_step(const struct ucx_word *word, uint64_t *position, size_t *offset)
{
    size_t at = (size_t)(*position % AREA_BYTES);
    if (word->wrap && at) {
        *position += AREA_BYTES - at;
        at = 0;
    } else if (word->wrap) {
        return err_set(PARAMO_E_PROTOCOL, "a UCX message restarts its area twice");
    }
    if (!word->len || word->len > AREA_BYTES - at)
        return err_set(PARAMO_E_PROTOCOL, "a UCX message has %u bytes at %zu, beyond its area", word->len,
                       at);
    *position += word->len;
    *offset = at;
    return PARAMO_OK;
}
