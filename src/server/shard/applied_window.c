#include "server/shard/applied_window.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void applied_window_init(struct applied_window *applied_window)
{
    memset(applied_window, 0, sizeof *applied_window);
    dedup_init(&applied_window->own);
}

static void applied_note_end(struct applied_note **at)
{
    struct applied_note *applied_note = *at;
    *at = applied_note->next;
    free(applied_note);
}

void applied_window_fini(struct applied_window *applied_window)
{
    while (applied_window->applied_notes)
        applied_note_end(&applied_window->applied_notes);
}

void applied_window_raise_floor(struct applied_window *applied_window, uint64_t floor)
{
    dedup_raise(&applied_window->own, floor);
    while (applied_window->applied_notes && applied_window->applied_notes->number < applied_window->own.floor)
        applied_note_end(&applied_window->applied_notes);
    assert(!applied_window->applied_notes ||
           applied_window->applied_notes->number - applied_window->own.floor < DATA_WINDOW);
}

enum dedup_state applied_window_state(const struct applied_window *applied_window, uint64_t number)
{
    return dedup_check(&applied_window->own, number);
}

/* Where the note of the number is, or would be. */
static struct applied_note **applied_note_at(struct applied_note **at, uint64_t number)
{
    while (*at && (*at)->number < number)
        at = &(*at)->next;
    return at;
}

static bool is_at(struct applied_note *const *at, uint64_t number)
{
    return *at && (*at)->number == number;
}

const struct applied_note *applied_window_note(const struct applied_window *applied_window, uint64_t number)
{
    const struct applied_note *applied_note = applied_window->applied_notes;
    while (applied_note && applied_note->number < number)
        applied_note = applied_note->next;
    return applied_note && applied_note->number == number ? applied_note : NULL;
}

bool applied_window_is_empty(const struct applied_window *applied_window)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < DATA_WINDOW / 64; i++)
        any |= applied_window->own.bits[i];
    return !any && !applied_window->applied_notes;
}

static void record(struct dedup *d, uint64_t number)
{
    if (dedup_check(d, number) == DEDUP_NEW)
        dedup_record(d, number);
}

void applied_window_record(struct applied_window *applied_window, uint64_t number)
{
    struct applied_note **at = applied_note_at(&applied_window->applied_notes, number);
    if (is_at(at, number)) {
        assert(dedup_check(&applied_window->own, number) == DEDUP_NEW);
        applied_note_end(at);
    }
    record(&applied_window->own, number);
}

struct applied_note *applied_note_make(uint64_t number, const uint64_t partitions[PARTITION_WORDS])
{
    struct applied_note *applied_note = calloc(1, sizeof *applied_note);
    if (!applied_note)
        return NULL;
    applied_note->number = number;
    memcpy(applied_note->partitions, partitions, sizeof applied_note->partitions);
    return applied_note;
}

void applied_window_attach(struct applied_window *applied_window, struct applied_note *applied_note)
{
    if (dedup_check(&applied_window->own, applied_note->number) ==
        DEDUP_BEYOND) /* a sender is never further ahead of its floor */
        applied_window_raise_floor(applied_window, applied_note->number - DATA_WINDOW + 1);
    assert(dedup_check(&applied_window->own, applied_note->number) != DEDUP_BEYOND);
    struct applied_note **at = applied_note_at(&applied_window->applied_notes, applied_note->number);
    if (dedup_check(&applied_window->own, applied_note->number) != DEDUP_NEW) {
        free(applied_note);
    } else if (is_at(at, applied_note->number)) {
        for (unsigned i = 0; i < PARTITION_WORDS; i++)
            (*at)->partitions[i] |= applied_note->partitions[i];
        free(applied_note);
    } else {
        assert(!*at || (*at)->number > applied_note->number); /* by number */
        applied_note->next = *at;
        *at = applied_note;
    }
}

paramo_err applied_window_note_number(struct applied_window *applied_window, uint64_t number,
                                      const uint64_t partitions[PARTITION_WORDS])
{
    struct applied_note *applied_note = applied_note_make(number, partitions);
    if (!applied_note)
        return err_memory(sizeof *applied_note);
    applied_window_attach(applied_window, applied_note);
    return PARAMO_OK;
}

/* ---- partitions that come and go ---- */

/* Numbers on which all partitions agree move back to the record. */
static void normalize(struct applied_window *applied_window, const uint64_t held[PARTITION_WORDS])
{
    for (struct applied_note **at = &applied_window->applied_notes; *at;) {
        uint64_t some = 0, others = 0, number = (*at)->number;
        for (unsigned i = 0; i < PARTITION_WORDS; i++) {
            some |= held[i] & (*at)->partitions[i];
            others |= held[i] & ~(*at)->partitions[i];
        }
        if (some && others) {
            at = &(*at)->next;
            continue;
        }
        assert(dedup_check(&applied_window->own, number) == DEDUP_NEW);
        applied_note_end(at);
        if (some)
            record(&applied_window->own, number);
    }
}

void applied_window_retain(struct applied_window *applied_window, const uint64_t held[PARTITION_WORDS])
{
    normalize(applied_window, held);
    for (struct applied_note *applied_note = applied_window->applied_notes; applied_note;
         applied_note = applied_note->next)
        for (unsigned i = 0; i < PARTITION_WORDS; i++)
            applied_note->partitions[i] &= held[i];
}

/* Moves what the record says of the number into applied_note, which is inserted at its place. */
static void applied_note_open(struct applied_window *applied_window, uint64_t number,
                              struct applied_note **at, struct applied_note *applied_note)
{
    bool done = dedup_check(&applied_window->own, number) == DEDUP_DONE;
    assert(!*at || (*at)->number > number);
    applied_note->number = number;
    for (unsigned i = 0; i < PARTITION_WORDS; i++)
        applied_note->partitions[i] = done ? UINT64_MAX : 0;
    applied_note->next = *at;
    *at = applied_note;
    if (done)
        dedup_drop(&applied_window->own, number);
    assert(dedup_check(&applied_window->own, number) != DEDUP_DONE);
}

/* there: the partitions on which it is applied; NULL: all of them, or none. */
static void applied_note_set(struct applied_note *applied_note, const uint64_t partitions[PARTITION_WORDS],
                             bool done, const struct applied_note *there)
{
    assert(!done || !there); /* the record has no note of a number that is applied on all partitions */
    for (unsigned i = 0; i < PARTITION_WORDS; i++) {
        uint64_t these = done ? UINT64_MAX : there ? there->partitions[i] : 0;
        applied_note->partitions[i] =
            (applied_note->partitions[i] & ~partitions[i]) | (these & partitions[i]);
    }
}

/* The first number from this one on for which the records differ; both have the same floor. */
static uint64_t next_different(const struct dedup *a, const struct dedup *b, uint64_t number)
{
    uint64_t end = a->floor + DATA_WINDOW;
    assert(a->floor == b->floor && number >= a->floor);
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

/* Visits numbers in ascending order: those with a note here or there, and those for which the records differ
 * (both have the same floor). For all others they agree already. A number without a note gets a spare one. */
static void arrive(struct applied_window *applied_window, const uint64_t partitions[PARTITION_WORDS],
                   const struct dedup *own, const struct applied_note *theirs, struct applied_note **spare)
{
    struct applied_note **at = &applied_window->applied_notes;
    uint64_t floor = applied_window->own.floor, end = floor + DATA_WINDOW;
    assert(own->floor == floor);
    while (theirs && theirs->number < floor)
        theirs = theirs->next;
    for (uint64_t next = floor;;) {
        uint64_t number = next_different(&applied_window->own, own, next);
        number = *at && (*at)->number < number ? (*at)->number : number;
        number = theirs && theirs->number < number ? theirs->number : number;
        if (number >= end)
            return;
        bool there = dedup_check(own, number) == DEDUP_DONE;
        bool some = theirs && theirs->number == number;
        if (!is_at(at, number)) {
            struct applied_note *applied_note = *spare;
            assert(applied_note); /* spare_notes() counted this number */
            *spare = applied_note->next;
            applied_note_open(applied_window, number, at, applied_note);
        }
        applied_note_set(*at, partitions, there, some ? theirs : NULL);
        at = &(*at)->next;
        theirs = some ? theirs->next : theirs;
        next = number + 1;
    }
}

/* Notes for all numbers that may need one. */
static paramo_err spare_notes(const struct dedup *a, const struct dedup *b, const struct applied_note *theirs,
                              struct applied_note **spare)
{
    assert(a->floor == b->floor);
    assert(!*spare);
    size_t n = 0;
    for (unsigned i = 0; i < DATA_WINDOW / 64; i++)
        n += (size_t)__builtin_popcountll(a->bits[i] ^ b->bits[i]);
    for (; theirs; theirs = theirs->next)
        n++;
    for (; n; n--) {
        struct applied_note *applied_note = malloc(sizeof *applied_note);
        if (!applied_note)
            return err_memory(sizeof *applied_note);
        applied_note->next = *spare;
        *spare = applied_note;
    }
    return PARAMO_OK;
}

paramo_err applied_window_import(struct applied_window *applied_window, const uint64_t held[PARTITION_WORDS],
                                 const uint64_t partitions[PARTITION_WORDS],
                                 const struct applied_window *theirs)
{
    struct dedup own;
    struct applied_note *spare = NULL;
    uint64_t all[PARTITION_WORDS];
    assert(theirs != applied_window);
    dedup_init(&own);
    if (theirs)
        own = theirs->own;
    applied_window_raise_floor(applied_window, own.floor); /* both floors are the same sender's */
    dedup_raise(&own, applied_window->own.floor);
    paramo_err err = spare_notes(&own, &applied_window->own, theirs ? theirs->applied_notes : NULL, &spare);
    if (!err &&
        (spare ||
         applied_window->applied_notes)) /* otherwise they agree on all numbers, as for most senders */
        arrive(applied_window, partitions, &own, theirs ? theirs->applied_notes : NULL, &spare);
    while (spare)
        applied_note_end(&spare);
    for (unsigned i = 0; i < PARTITION_WORDS; i++)
        all[i] = held[i] | partitions[i];
    normalize(applied_window, all);
    assert(own.floor == applied_window->own.floor);
    return err;
}

paramo_err applied_window_merge(struct applied_window *applied_window, const uint64_t held[PARTITION_WORDS],
                                const uint64_t partitions[PARTITION_WORDS], const struct dedup *theirs)
{
    struct dedup own = *theirs;
    paramo_err err = PARAMO_OK;
    applied_window_raise_floor(applied_window, own.floor);
    dedup_raise(&own, applied_window->own.floor);
    assert(own.floor == applied_window->own.floor);
    uint64_t end = own.floor + DATA_WINDOW;
    for (uint64_t number = next_different(&own, &applied_window->own, own.floor); number < end && !err;
         number = next_different(&own, &applied_window->own, number + 1))
        if (dedup_check(&own, number) == DEDUP_DONE)
            err = applied_window_note_number(applied_window, number, partitions);
    normalize(applied_window, held);
    return err;
}

/* ---- what goes with partitions ---- */

static bool applied_note_covers(const struct applied_note *applied_note,
                                const uint64_t partitions[PARTITION_WORDS])
{
    uint64_t others = 0;
    for (unsigned i = 0; i < PARTITION_WORDS; i++)
        others |= partitions[i] & ~applied_note->partitions[i];
    return !others;
}

bool applied_note_splits(const struct applied_note *applied_note, const uint64_t partitions[PARTITION_WORDS])
{
    uint64_t some = 0;
    for (unsigned i = 0; i < PARTITION_WORDS; i++)
        some |= partitions[i] & applied_note->partitions[i];
    return some && !applied_note_covers(applied_note, partitions);
}

struct dedup applied_window_extract(const struct applied_window *applied_window,
                                    const uint64_t partitions[PARTITION_WORDS])
{
    struct dedup own = applied_window->own;
    for (const struct applied_note *applied_note = applied_window->applied_notes; applied_note;
         applied_note = applied_note->next)
        if (applied_note_covers(applied_note, partitions))
            record(&own, applied_note->number);
    return own;
}

size_t applied_window_count_notes(const struct applied_window *applied_window, size_t *bytes)
{
    size_t n = 0;
    for (const struct applied_note *applied_note = applied_window->applied_notes; applied_note;
         applied_note = applied_note->next)
        n++;
    *bytes += n * sizeof *applied_window->applied_notes;
    return n;
}
