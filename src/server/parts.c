#include "server/parts.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = RING_ARCS / 64 };

const struct part *parts_find(const struct part *parts, uint64_t number)
{
    while (parts && parts->number != number)
        parts = parts->next;
    return parts;
}

paramo_err parts_note(struct part **parts, uint64_t number, const uint64_t arcs[WORDS])
{
    struct part *note = calloc(1, sizeof *note);
    if (!note)
        return err_memory(sizeof *note);
    note->number = number;
    memcpy(note->arcs, arcs, sizeof note->arcs);
    parts_join(parts, note);
    return PARAMO_OK;
}

void parts_join(struct part **parts, struct part *note)
{
    struct part *part = *parts;
    while (part && part->number != note->number)
        part = part->next;
    if (!part) {
        note->next = *parts;
        *parts = note;
        return;
    }
    for (unsigned i = 0; i < WORDS; i++)
        part->arcs[i] |= note->arcs[i];
    free(note);
}

void parts_raise(struct part **parts, uint64_t floor)
{
    while (*parts) {
        struct part *part = *parts;
        if (part->number >= floor) {
            parts = &part->next;
            continue;
        }
        *parts = part->next;
        free(part);
    }
}

paramo_err parts_pass(struct part **from, struct part **to, const uint64_t arcs[WORDS])
{
    paramo_err err = PARAMO_OK;
    for (struct part *part = *from; part && !err; part = part->next) {
        uint64_t both[WORDS], any = 0;
        for (unsigned i = 0; i < WORDS; i++)
            any |= both[i] = part->arcs[i] & arcs[i];
        if (any)
            err = parts_note(to, part->number, both);
    }
    if (!err)
        parts_drop(from, arcs);
    return err;
}

void parts_drop(struct part **parts, const uint64_t arcs[WORDS])
{
    while (*parts) {
        struct part *part = *parts;
        uint64_t any = 0;
        for (unsigned i = 0; i < WORDS; i++)
            any |= part->arcs[i] &= ~arcs[i];
        if (any) {
            parts = &part->next;
            continue;
        }
        *parts = part->next;
        free(part);
    }
}

void parts_fini(struct part **parts)
{
    parts_raise(parts, UINT64_MAX);
}
