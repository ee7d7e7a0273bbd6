#include "server/clocks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void clock_init(struct clock *clock)
{
    memset(clock, 0, sizeof *clock);
    dedup_init(&clock->own);
}

static void part_end(struct part **at)
{
    struct part *part = *at;
    *at = part->next;
    free(part);
}

void clock_fini(struct clock *clock)
{
    while (clock->parts)
        part_end(&clock->parts);
}

void clock_raise(struct clock *clock, uint64_t floor)
{
    dedup_raise(&clock->own, floor);
    while (clock->parts && clock->parts->number < clock->own.floor)
        part_end(&clock->parts);
}

enum dedup_state clock_look(const struct clock *clock, uint64_t number)
{
    return dedup_look(&clock->own, number);
}

/* Where the number's part is, or would be. */
static struct part **part_at(struct part **at, uint64_t number)
{
    while (*at && (*at)->number < number)
        at = &(*at)->next;
    return at;
}

static bool is_at(struct part *const *at, uint64_t number)
{
    return *at && (*at)->number == number;
}

const struct part *clock_part(const struct clock *clock, uint64_t number)
{
    const struct part *part = clock->parts;
    while (part && part->number < number)
        part = part->next;
    return part && part->number == number ? part : NULL;
}

bool clock_empty(const struct clock *clock)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < DATA_WINDOW / 64; i++)
        any |= clock->own.bits[i];
    return !any && !clock->parts;
}

static void record(struct dedup *d, uint64_t number)
{
    if (dedup_look(d, number) == DEDUP_NEW)
        dedup_record(d, number);
}

void clock_record(struct clock *clock, uint64_t number)
{
    struct part **at = part_at(&clock->parts, number);
    if (is_at(at, number))
        part_end(at);
    record(&clock->own, number);
}

struct part *part_make(uint64_t number, const uint64_t arcs[ARCS_WORDS])
{
    struct part *part = calloc(1, sizeof *part);
    if (!part)
        return NULL;
    part->number = number;
    memcpy(part->arcs, arcs, sizeof part->arcs);
    return part;
}

void clock_add(struct clock *clock, struct part *part)
{
    if (dedup_look(&clock->own, part->number) == DEDUP_BEYOND) /* a sender is no further ahead of its floor */
        clock_raise(clock, part->number - DATA_WINDOW + 1);
    struct part **at = part_at(&clock->parts, part->number);
    if (dedup_look(&clock->own, part->number) != DEDUP_NEW) {
        free(part);
    } else if (is_at(at, part->number)) {
        for (unsigned i = 0; i < ARCS_WORDS; i++)
            (*at)->arcs[i] |= part->arcs[i];
        free(part);
    } else {
        part->next = *at;
        *at = part;
    }
}

paramo_err clock_note(struct clock *clock, uint64_t number, const uint64_t arcs[ARCS_WORDS])
{
    struct part *part = part_make(number, arcs);
    if (!part)
        return err_memory(sizeof *part);
    clock_add(clock, part);
    return PARAMO_OK;
}

/* ---- arcs that come and go ------------------------------------------------------------------------------
 */

/* What all arcs say is the record's again. */
static void settle(struct clock *clock, const uint64_t held[ARCS_WORDS])
{
    for (struct part **at = &clock->parts; *at;) {
        uint64_t some = 0, others = 0, number = (*at)->number;
        for (unsigned i = 0; i < ARCS_WORDS; i++) {
            some |= held[i] & (*at)->arcs[i];
            others |= held[i] & ~(*at)->arcs[i];
        }
        if (some && others) {
            at = &(*at)->next;
            continue;
        }
        part_end(at);
        if (some)
            record(&clock->own, number);
    }
}

void clock_keep(struct clock *clock, const uint64_t held[ARCS_WORDS])
{
    settle(clock, held);
    for (struct part *part = clock->parts; part; part = part->next)
        for (unsigned i = 0; i < ARCS_WORDS; i++)
            part->arcs[i] &= held[i];
}

/* The record says of the number what it said, in a part: `part`, which goes to its place. */
static void part_open(struct clock *clock, uint64_t number, struct part **at, struct part *part)
{
    bool done = dedup_look(&clock->own, number) == DEDUP_DONE;
    part->number = number;
    for (unsigned i = 0; i < ARCS_WORDS; i++)
        part->arcs[i] = done ? UINT64_MAX : 0;
    part->next = *at;
    *at = part;
    if (done)
        dedup_drop(&clock->own, number);
}

/* there: on which of the arcs it is done; NULL: on all of them, or on none. */
static void part_set(struct part *part, const uint64_t arcs[ARCS_WORDS], bool done, const struct part *there)
{
    for (unsigned i = 0; i < ARCS_WORDS; i++) {
        uint64_t these = done ? UINT64_MAX : there ? there->arcs[i] : 0;
        part->arcs[i] = (part->arcs[i] & ~arcs[i]) | (these & arcs[i]);
    }
}

/* The first number from this one on of which they say different things; both are of one floor. */
static uint64_t next_different(const struct dedup *a, const struct dedup *b, uint64_t number)
{
    uint64_t end = a->floor + DATA_WINDOW;
    while (number < end) {
        unsigned bit = number % 64;
        uint64_t differ = (a->bits[number % DATA_WINDOW / 64] ^ b->bits[number % DATA_WINDOW / 64]) >> bit;
        if (differ) {
            number += (unsigned)__builtin_ctzll(differ);
            break;
        }
        number += 64 - bit;
    }
    return number < end ? number : end;
}

/* In the order of their numbers: those that have a part here or there, and those of which the records, both
 * of one floor, say different things. Of all others they say the same already. One that has no part gets one
 * of the spare ones. */
static void arrive(struct clock *clock, const uint64_t arcs[ARCS_WORDS], const struct dedup *own,
                   const struct part *theirs, struct part **spare)
{
    struct part **at = &clock->parts;
    uint64_t floor = clock->own.floor, end = floor + DATA_WINDOW;
    assert(own->floor == floor);
    while (theirs && theirs->number < floor)
        theirs = theirs->next;
    for (uint64_t next = floor;;) {
        uint64_t number = next_different(&clock->own, own, next);
        number = *at && (*at)->number < number ? (*at)->number : number;
        number = theirs && theirs->number < number ? theirs->number : number;
        if (number >= end)
            return;
        bool there = dedup_look(own, number) == DEDUP_DONE;
        bool some = theirs && theirs->number == number;
        if (!is_at(at, number)) {
            struct part *part = *spare;
            *spare = part->next;
            part_open(clock, number, at, part);
        }
        part_set(*at, arcs, there, some ? theirs : NULL);
        at = &(*at)->next;
        theirs = some ? theirs->next : theirs;
        next = number + 1;
    }
}

/* Parts for all numbers that may need one. */
static paramo_err spare_parts(const struct dedup *a, const struct dedup *b, const struct part *theirs,
                              struct part **spare)
{
    size_t n = 0;
    for (unsigned i = 0; i < DATA_WINDOW / 64; i++)
        n += (size_t)__builtin_popcountll(a->bits[i] ^ b->bits[i]);
    for (; theirs; theirs = theirs->next)
        n++;
    for (; n; n--) {
        struct part *part = malloc(sizeof *part);
        if (!part)
            return err_memory(sizeof *part);
        part->next = *spare;
        *spare = part;
    }
    return PARAMO_OK;
}

paramo_err clock_arrive(struct clock *clock, const uint64_t held[ARCS_WORDS], const uint64_t arcs[ARCS_WORDS],
                        const struct clock *theirs)
{
    struct dedup own;
    struct part *spare = NULL;
    uint64_t all[ARCS_WORDS];
    dedup_init(&own);
    if (theirs)
        own = theirs->own;
    clock_raise(clock, own.floor); /* both are what one sender has said */
    dedup_raise(&own, clock->own.floor);
    paramo_err err = spare_parts(&own, &clock->own, theirs ? theirs->parts : NULL, &spare);
    if (!err && (spare || clock->parts)) /* else both say the same of all numbers: most senders are silent */
        arrive(clock, arcs, &own, theirs ? theirs->parts : NULL, &spare);
    while (spare)
        part_end(&spare);
    for (unsigned i = 0; i < ARCS_WORDS; i++)
        all[i] = held[i] | arcs[i];
    settle(clock, all);
    return err;
}

paramo_err clock_join(struct clock *clock, const uint64_t held[ARCS_WORDS], const uint64_t arcs[ARCS_WORDS],
                      const struct dedup *theirs)
{
    struct dedup own = *theirs;
    paramo_err err = PARAMO_OK;
    clock_raise(clock, own.floor);
    dedup_raise(&own, clock->own.floor);
    for (uint64_t number = own.floor; number < own.floor + DATA_WINDOW && !err; number++)
        if (dedup_look(&own, number) == DEDUP_DONE && clock_look(clock, number) == DEDUP_NEW)
            err = clock_note(clock, number, arcs);
    settle(clock, held);
    return err;
}

/* ---- what goes with arcs --------------------------------------------------------------------------------
 */

static bool part_covers(const struct part *part, const uint64_t arcs[ARCS_WORDS])
{
    uint64_t others = 0;
    for (unsigned i = 0; i < ARCS_WORDS; i++)
        others |= arcs[i] & ~part->arcs[i];
    return !others;
}

bool part_splits(const struct part *part, const uint64_t arcs[ARCS_WORDS])
{
    uint64_t some = 0;
    for (unsigned i = 0; i < ARCS_WORDS; i++)
        some |= arcs[i] & part->arcs[i];
    return some && !part_covers(part, arcs);
}

struct dedup clock_of(const struct clock *clock, const uint64_t arcs[ARCS_WORDS])
{
    struct dedup own = clock->own;
    for (const struct part *part = clock->parts; part; part = part->next)
        if (part_covers(part, arcs))
            record(&own, part->number);
    return own;
}

size_t clock_count(const struct clock *clock, size_t *bytes)
{
    size_t n = 0;
    for (const struct part *part = clock->parts; part; part = part->next)
        n++;
    *bytes += n * sizeof *clock->parts;
    return n;
}
