#include "filter/users.h"

#include <math.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/registered.h"
#include "filter/message.h"
#include "filter/rounding.h"
#include "wire/capability.h"

enum { NAME_MAX_BYTES = 32, PAYS = 16 /* as compressing.c */ };

struct user_filter {
    struct filter_ops ops;
    paramo_filter def;
    char name[NAME_MAX_BYTES];
};

static struct user_filter filters[FILTER_USERS_MAX];
static struct registered registered = REGISTERED_NONE;

static const struct user_filter *user_of(const struct filter_ops *ops)
{
    return container_of(ops, struct user_filter, ops);
}

unsigned filter_users_count(void)
{
    return registered_count(&registered);
}

const struct filter_ops *filter_users_at(unsigned index)
{
    return &filters[index].ops;
}

const struct filter_ops *filter_users_of_hash(uint64_t hash)
{
    for (unsigned i = 0, n = filter_users_count(); i < n; i++)
        if (filters[i].ops.hash == hash)
            return &filters[i].ops;
    return NULL;
}

uint64_t filter_users_capabilities(void)
{
    uint64_t bits = 0;
    for (unsigned i = 0, n = filter_users_count(); i < n; i++)
        bits |= filters[i].ops.capability;
    return bits;
}

void filter_users_forget(void)
{
    registered_forget(&registered);
}

/* ---- the operations ---- */

static bool user_round(const struct filter_setting *setting, struct filter_rows *r)
{
    const struct user_filter *u = user_of(setting->ops);
    paramo_filter_rows rows = {.size = sizeof rows,
                               .dtype = r->dtype,
                               .vals = r->vals,
                               .n = r->n,
                               .whole = r->whole,
                               .whole_n = r->whole_n,
                               .keys = r->keys,
                               .count = r->count,
                               .lens = r->lens,
                               .row_values = r->row_values,
                               .column = r->column,
                               .seed = r->seed};
    return u->def.round(u->def.user, setting->arg, &rows);
}

static bool user_encode(const struct filter_setting *setting, struct filter_message *m, struct writer *params)
{
    const struct user_filter *u = user_of(setting->ops);
    struct van_seg *seg = &m->seg[WIRE_SEG_VALS];
    size_t bytes = (size_t)seg->len, room = bytes - bytes / PAYS;
    if (!bytes || bytes == room)
        return false;
    uint8_t *to = filter_memory_take(&m->memory, room), *back = filter_memory_take(&m->memory, bytes);
    if (!to || !back)
        return false;
    paramo_filter_data data = {
        .size = sizeof data, .typed = !m->coded, .dtype = m->dtype, .from = seg->data, .bytes = bytes};
    size_t written = u->def.encode(u->def.user, setting->arg, &data, to, room);
    if (!written || written > room || u->def.decode(u->def.user, setting->arg, to, written, back, bytes) ||
        memcmp(back, seg->data, bytes) != 0)
        return false;
    write_u64(params, u->ops.hash);
    write_f32(params, setting->arg);
    write_u32(params, (uint32_t)bytes);
    *seg = (struct van_seg){.data = to, .len = written};
    return true;
}

static paramo_err user_decode(struct reader *params, struct filter_message *m)
{
    const struct user_filter *u = user_of(m->by);
    struct van_seg *seg = &m->seg[WIRE_SEG_VALS];
    uint64_t hash = read_u64(params);
    float arg = read_f32(params);
    size_t want = read_u32(params);
    if (!reader_done(params) || hash != u->ops.hash || !filter_takes(&u->ops, arg) || !want ||
        want > FILTER_MESSAGE_MAX || !seg->len)
        return err_set(PARAMO_E_PROTOCOL, "%s: %zu bytes of values are not valid", u->name, want);
    void *to = filter_memory_take(&m->memory, want);
    if (!to)
        return err_memory(want);
    if (u->def.decode(u->def.user, arg, seg->data, (size_t)seg->len, to, want))
        return err_set(PARAMO_E_PROTOCOL, "%s: the values cannot be decoded to %zu bytes", u->name, want);
    *seg = (struct van_seg){.data = to, .len = want};
    return PARAMO_OK;
}

/* ---- registration ---- */

static bool name_is_good(const char *name)
{
    size_t len = name ? strlen(name) : 0;
    return len && len < NAME_MAX_BYTES && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == len &&
           strcmp(name, "none") != 0;
}

static bool is_taken(const char *name)
{
    bool taken = false;
    for (unsigned i = 0; i < FILTER_COUNT; i++)
        taken = taken || strcmp(filter_at(i)->name, name) == 0;
    for (unsigned i = 0, n = filter_users_count(); i < n; i++)
        taken = taken || strcmp(filters[i].name, name) == 0;
    return taken;
}

static paramo_err check(const paramo_filter *f)
{
    if (!f || f->size != sizeof *f)
        return err_set(PARAMO_E_INVALID, "the filter is NULL, or its size is not that of paramo_filter");
    if (!name_is_good(f->name))
        return err_set(PARAMO_E_INVALID, "the name of a filter has 1 to %d of a-z, 0-9 and _",
                       NAME_MAX_BYTES - 1);
    if (is_taken(f->name))
        return err_set(PARAMO_E_INVALID, "filter \"%s\" exists already; use another name", f->name);
    if (!f->encode != !f->decode || (!f->round && !f->encode))
        return err_set(PARAMO_E_INVALID, "filter %s: it needs round, or encode and decode, or all three",
                       f->name);
    if (f->meta && !(f->min <= f->max && (isnan(f->preset) || (f->preset >= f->min && f->preset <= f->max))))
        return err_set(PARAMO_E_INVALID, "filter %s: the bounds of its argument, or its preset, are wrong",
                       f->name);
    if (filter_users_count() == FILTER_USERS_MAX)
        return err_set(PARAMO_E_INVALID, "a process has at most %d filters of its own", FILTER_USERS_MAX);
    return PARAMO_OK;
}

static void fill(struct user_filter *u, const paramo_filter *f)
{
    (void)snprintf(u->name, sizeof u->name, "%s", f->name);
    u->def = *f;
    u->def.name = u->name;
    uint64_t hash = hash_bytes(u->name, strlen(u->name));
    u->ops = (struct filter_ops){.name = u->name,
                                 .id = FILTER_ID_USER,
                                 .hash = hash,
                                 .rank = f->round ? FILTER_ROUNDS : FILTER_BYTES,
                                 .directions = 1 << FILTER_PUSH | 1 << FILTER_PULL,
                                 .codes = FILTER_OF_PUSH | FILTER_OF_ANSWER,
                                 .capability = capability_of_user_filter(hash),
                                 .lossy = f->round != NULL,
                                 .whole = f->whole,
                                 .meta = f->meta,
                                 .min = f->min,
                                 .max = f->max,
                                 .preset = f->meta ? f->preset : 0,
                                 .help = f->help,
                                 .unfit = f->round ? filter_unfit_float : NULL,
                                 .round = f->round ? user_round : NULL,
                                 .encode = f->encode ? user_encode : NULL,
                                 .decode = f->decode ? user_decode : NULL};
}

paramo_err filter_users_register(const paramo_filter *filter)
{
    registered_begin(&registered);
    paramo_err err = check(filter);
    if (!err)
        fill(&filters[filter_users_count()], filter);
    registered_end(&registered, !err);
    return err;
}
