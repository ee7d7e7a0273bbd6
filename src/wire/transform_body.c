#include "wire/transform_body.h"

#include "base/cursor.h"

size_t transform_body_bytes(const struct transform *what)
{
    return TRANSFORM_BODY_BYTES +
           (what->function == PARAMO_TRANSFORM_USER ? user_body_bytes(&what->user) : 0);
}

void transform_encode(const struct transform *what, uint8_t *out)
{
    struct writer w = writer_over(out, transform_body_bytes(what));
    write_u8(&w, what->function);
    write_u8(&w, what->two);
    write_u16(&w, 0);
    write_u32(&w, what->other);
    write_f64(&w, what->a);
    if (what->function == PARAMO_TRANSFORM_USER)
        user_body_encode(&w, &what->user);
}

paramo_err transform_decode(const void *body, uint64_t len, struct transform *what)
{
    struct reader r = reader_over(body, len);
    *what = (struct transform){.function = read_u8(&r)};
    uint8_t two = read_u8(&r);
    uint16_t zero = read_u16(&r);
    what->two = two;
    what->other = read_u32(&r);
    what->a = read_f64(&r);
    bool user = what->function == PARAMO_TRANSFORM_USER;
    if (user)
        user_body_decode(&r, &what->user);
    if (!reader_done(&r) || zero || two > 1 || (!two && what->other) ||
        (!user && what->function >= PARAMO_TRANSFORM_FUNCTIONS))
        return err_set(PARAMO_E_PROTOCOL, "TRANSFORM: a field is not valid");
    return PARAMO_OK;
}

bool transform_other(const void *body, uint32_t *table)
{
    struct reader r = reader_over(body, TRANSFORM_BODY_BYTES);
    (void)read_u8(&r);
    bool two = read_u8(&r);
    (void)read_u16(&r);
    *table = read_u32(&r);
    return two;
}
