#include "wire/sender_id.h"

static void encode(const struct sender_id *id, bool aligned, struct writer *w)
{
    write_u32(w, id->node);
    write_u32(w, id->app);
    write_u32(w, id->customer);
    if (aligned)
        write_u32(w, 0);
    write_u64(w, id->incarnation);
}

static struct sender_id decode(bool aligned, struct reader *r)
{
    struct sender_id id = {.node = read_u32(r)};
    id.app = read_u32(r);
    id.customer = read_u32(r);
    if (aligned && read_u32(r))
        r->failed = true;
    id.incarnation = read_u64(r);
    return id;
}

void sender_id_encode(const struct sender_id *id, struct writer *w)
{
    encode(id, false, w);
}

struct sender_id sender_id_decode(struct reader *r)
{
    return decode(false, r);
}

void sender_id_encode_aligned(const struct sender_id *id, struct writer *w)
{
    encode(id, true, w);
}

struct sender_id sender_id_decode_aligned(struct reader *r)
{
    return decode(true, r);
}
