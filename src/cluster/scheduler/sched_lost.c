/* Rows that no server has any more. From the view that says that the server is dead until all of them are
 * restored, views list them (struct view, `lost`). So no owner takes them for empty, and the next scheduler
 * continues the restore. */
#include "cluster/scheduler/sched_lost.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_view.h"
#include "ring/chains.h"

enum { RANGES_SHOWN = 3 /* ranges of a table's rows that a message names before "and more"; arbitrary */ };

/* ---- which rows ---------------------------------------------------------------------------------------- */

/* A restore that has begun has a view since when. */
static void lost_check(const struct scheduler *s)
{
    assert(!s->lost->more || s->lost->at);
    assert(s->lost->at <= sched_view_next(s));
}

/* Marks a partition that has only members from this level on. */
static bool level_loses(const struct view_table *table, unsigned level)
{
    assert(level <= RING_LEVELS);
    return table->options.kind != PARAMO_TABLE_USER &&
           (level == RING_LEVELS || level > table->options.replicas);
}

/* Those that the last deaths took. A table that was opened after the owner's death had no rows there. */
static bool partition_dies(const struct scheduler *s, const struct view_table *table, size_t partition)
{
    return table->since < sched_ring_owner_gone(s)[partition] &&
           level_loses(table, sched_ring_lowest(s)[partition]);
}

/* The rows to restore; without a restore those that the last deaths took. */
static bool partition_lost(const struct scheduler *s, const struct view_table *table, size_t partition)
{
    return s->lost->at ? table->since < s->lost->at && level_loses(table, s->lost->level[partition])
                       : partition_dies(s, table, partition);
}

uint32_t sched_lost_partitions(const struct scheduler *s, const struct view_table *table)
{
    const uint8_t *level = s->lost->at ? s->lost->level : sched_ring_lowest(s);
    uint32_t lost = 0;
    if (!*level && memcmp(level, level + 1, RING_PARTITIONS - 1) == 0)
        return 0; /* level 0 loses nothing, and mostly all are 0 */
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        lost += partition_lost(s, table, a);
    return lost;
}

bool sched_lost_table(const struct scheduler *s, const struct view_table *table)
{
    return s->lost->at && sched_lost_partitions(s, table);
}

/* Have the last deaths taken rows of any table there? */
static bool partition_dies_of_any(const struct scheduler *s, size_t partition)
{
    bool any = false;
    for (uint32_t i = 0; sched_ring_lowest(s)[partition] && i < sched_view_tables_count(s) && !any; i++)
        any = partition_dies(s, sched_view_table(s, i), partition);
    return any;
}

void sched_lost_note(struct scheduler *s)
{
    bool any = false;
    lost_check(s);
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        uint8_t level = sched_ring_lowest(s)[a];
        if (!partition_dies_of_any(s, a)) {
            sched_ring_lowest(s)[a] = 0; /* nothing is lost by another owner, either */
            continue;
        }
        any = true;
        s->lost->level[a] = level > s->lost->level[a] ? level : s->lost->level[a];
    }
    if (any) {
        s->lost->at = sched_view_next(s);
        assert(s->lost->at > sched_view_announced(s)); /* the view that says so comes first */
        s->lost->more = true;
    }
    if (!sched_ring_adopt(s))
        log_debug("scheduler: no server is left"); /* sched_lost_check ends the job */
}

/* ---- messages ------------------------------------------------------------------------------------------ */

struct text {
    char *to;
    size_t len, capacity;
};

__attribute__((format(printf, 2, 3))) static void append_text(struct text *t, const char *format, ...)
{
    assert(t->len < t->capacity);
    va_list args;
    va_start(args, format);
    int wrote = vsnprintf(t->to + t->len, t->capacity - t->len, format, args);
    va_end(args);
    if (wrote > 0)
        t->len = t->len + (size_t)wrote < t->capacity ? t->len + (size_t)wrote : t->capacity - 1;
}

/* Prints runs of rows or keys, if the placement keeps their order. */
static void append_ranges(const struct scheduler *s, const struct view_table *table, struct text *t)
{
    struct ring_placement placement = {.kind = table->options.placement, .rows = table->options.rows};
    bool dense = placement.kind == PARAMO_PLACE_DENSE;
    unsigned ranges = 0;
    for (size_t a = 0, end; a < RING_PARTITIONS; a = end) {
        for (end = a; end < RING_PARTITIONS && partition_lost(s, table, end); end++)
            ;
        if (end == a) {
            end++;
            continue;
        }
        uint64_t first =
            dense ? ring_first_row(&placement, (unsigned)a) : (uint64_t)a << RING_PARTITION_SHIFT;
        uint64_t last = dense                    ? ring_first_row(&placement, (unsigned)end) - 1
                        : end == RING_PARTITIONS ? UINT64_MAX
                                                 : ((uint64_t)end << RING_PARTITION_SHIFT) - 1;
        if (dense && first > last)
            continue; /* fewer rows than partitions */
        if (ranges++ == RANGES_SHOWN) {
            append_text(t, " and more");
            return;
        }
        const char *before = ranges > 1 ? "," : dense ? " rows" : " keys";
        append_text(t, "%s %" PRIu64 " to %" PRIu64, before, first, last);
    }
}

static void append_keys(const struct scheduler *s, const struct view_table *table, struct text *t)
{
    append_text(t, "table %s", table->name);
    if (table->options.placement == PARAMO_PLACE_MIXED)
        append_text(t, " %.1f %% of the keys", 100.0 * sched_lost_partitions(s, table) / RING_PARTITIONS);
    else
        append_ranges(s, table, t);
}

static bool append_lost(const struct scheduler *s, struct text *t)
{
    char names[ERR_TEXT_MAX];
    bool any = false;
    (void)sched_roster_gone(s, PARAMO_GROUP_SERVERS, true, names, sizeof names);
    append_text(t, "the last copy is lost");
    if (names[0]) /* otherwise others have joined in their places */
        append_text(t, " (%s)", names);
    append_text(t, ":");
    for (uint32_t i = 0; i < sched_view_tables_count(s); i++)
        if (sched_lost_partitions(s, sched_view_table(s, i))) {
            append_text(t, any ? "; " : " ");
            append_keys(s, sched_view_table(s, i), t);
            any = true;
        }
    return any;
}

bool sched_lost_describe(const struct scheduler *s, char text[CALL_TEXT_MAX])
{
    struct text t = {.to = text, .capacity = CALL_TEXT_MAX};
    return append_lost(s, &t);
}

void sched_lost_describe_keys(const struct scheduler *s, const struct view_table *table,
                              char text[CALL_TEXT_MAX])
{
    struct text t = {.to = text, .capacity = CALL_TEXT_MAX};
    append_keys(s, table, &t);
}

void sched_lost_restore(struct scheduler *s, const struct view *view)
{
    assert(!s->lost->at && !s->lost->more);
    s->lost->at = view->lost_at;
    memcpy(s->lost->level, view->lost, sizeof s->lost->level);
}

void sched_lost_over(struct scheduler *s)
{
    lost_check(s);
    assert(s->lost->at);
    s->lost->at = 0;
    s->lost->more = false;
    memset(s->lost->level, 0, sizeof s->lost->level);
}

void sched_lost_reported(struct scheduler *s)
{
    lost_check(s);
    memset(sched_ring_lowest(s), 0, RING_PARTITIONS);
    s->lost->more = false;
}

bool sched_lost_grew(const struct scheduler *s)
{
    return s->lost->more;
}

uint64_t sched_lost_since(const struct scheduler *s)
{
    return s->lost->at;
}

const uint8_t *sched_lost_levels(const struct scheduler *s)
{
    return s->lost->level;
}
