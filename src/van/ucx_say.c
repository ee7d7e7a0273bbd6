#include "van/ucx_say.h"

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

static void address_read(struct reader *r, struct ucx_say *say)
{
    say->proof = read_u64(r);
    say->address_len = read_u16(r);
    say->address = read_span(r, say->address_len);
    if (say->address_len < UCX_ADDRESS_MIN || say->address_len > UCX_ADDRESS_MAX)
        r->failed = true;
}

static void address_write(struct writer *w, const struct ucx_say *say)
{
    write_u64(w, say->proof);
    write_u16(w, (uint16_t)say->address_len);
    write_bytes(w, say->address, say->address_len);
}

paramo_err ucx_say_decode(const uint8_t *bytes, size_t len, struct ucx_say *say)
{
    struct reader r = reader_over(bytes, len);
    *say = (struct ucx_say){.kind = read_u8(&r)};
    switch (say->kind) {
    case SAY_OFFER:
        say->version = read_u8(&r);
        if (say->version != SAY_VERSION && !r.failed)
            return PARAMO_OK;
        say->host = read_u64(&r);
        say->kinds = read_u8(&r);
        place_read(&r, &say->area);
        break;
    case SAY_ACCEPT:
        say->way = read_u8(&r);
        place_read(&r, &say->area);
        address_read(&r, say);
        if (say->way >= UCX_KINDS)
            r.failed = true;
        break;
    case SAY_DECLINE:
        read_string(&r, say->why, sizeof say->why);
        break;
    case SAY_READY:
        address_read(&r, say);
        break;
    case SAY_RETRACT:
    case SAY_SWITCH:
        break;
    default:
        r.failed = true;
    }
    if (!reader_done(&r))
        return err_set(PARAMO_E_PROTOCOL, "an own frame of kind %u and %zu bytes", say->kind, len);
    return PARAMO_OK;
}

size_t ucx_say_encode(const struct ucx_say *say, uint8_t bytes[SAY_MAX])
{
    struct writer w = writer_over(bytes, SAY_MAX);
    write_u8(&w, say->kind);
    switch (say->kind) {
    case SAY_OFFER:
        write_u8(&w, say->version);
        write_u64(&w, say->host);
        write_u8(&w, say->kinds);
        place_write(&w, &say->area);
        break;
    case SAY_ACCEPT:
        write_u8(&w, say->way);
        place_write(&w, &say->area);
        address_write(&w, say);
        break;
    case SAY_DECLINE:
        write_string(&w, say->why);
        break;
    case SAY_READY:
        address_write(&w, say);
        break;
    default:
        break;
    }
    return w.failed || say->address_len > UCX_ADDRESS_MAX ? 0 : w.len;
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
        return err_set(PARAMO_E_PROTOCOL, "a message by UCX of kind %u", word->message);
    return PARAMO_OK;
}

paramo_err ucx_area_step(const struct ucx_word *word, uint64_t *position, size_t *offset)
{
    size_t at = (size_t)(*position % AREA_BYTES);
    if (word->wrap && at) {
        *position += AREA_BYTES - at;
        at = 0;
    } else if (word->wrap) {
        return err_set(PARAMO_E_PROTOCOL, "bytes that begin their area anew twice");
    }
    if (!word->len || word->len > AREA_BYTES - at)
        return err_set(PARAMO_E_PROTOCOL, "%u bytes at %zu of an area", word->len, at);
    *position += word->len;
    *offset = at;
    return PARAMO_OK;
}
