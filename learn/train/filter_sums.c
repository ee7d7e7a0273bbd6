#include "learn/train/filter_sums.h"
#include "learn/train/summed.h"

#include <stdio.h>
#include <string.h>

/* The numbers of a filter in one direction that are summed. */
enum { MESSAGES, SKIPPED, RECEIVED, BEFORE, AFTER, TIME_NS, LOSSY, FIGURES };

static void key_of(char *out, size_t cap, paramo_filter_direction direction, const char *name)
{
    (void)snprintf(out, cap, "train/filtered/%s/%s", direction == PARAMO_FILTER_PUSH ? "push" : "pull", name);
}

/* The counters in `added` of this filter and direction; it makes them if there are none. NULL: there is no room. */
static paramo_filter_counter *find(struct filter_reported *f, const paramo_filter_counter *c)
{
    size_t at = 0;
    while (at < f->n && (strcmp(f->added[at].name, c->name) != 0 || f->added[at].direction != c->direction))
        at++;
    if (at == FILTER_SUMS_MAX)
        return NULL;
    if (at == f->n)
        f->added[f->n++] = (paramo_filter_counter){.name = c->name, .direction = c->direction};
    return &f->added[at];
}

paramo_err filter_sums_add(struct filter_reported *f, paramo_node *node, paramo_worker *worker)
{
    paramo_filter_counter now[FILTER_SUMS_MAX];
    paramo_err err = PARAMO_OK;
    const size_t n = paramo_filter_counters(worker, now, FILTER_SUMS_MAX);
    for (size_t i = 0; i < n && i < FILTER_SUMS_MAX && err == PARAMO_OK; i++) {
        const paramo_filter_counter *c = &now[i];
        paramo_filter_counter *old = find(f, c);
        char key[64];
        if (!old)
            break;
        const double more[FIGURES] = {[MESSAGES] = (double)(c->messages - old->messages),
                                      [SKIPPED] = (double)(c->skipped - old->skipped),
                                      [RECEIVED] = (double)(c->received - old->received),
                                      [BEFORE] = (double)(c->bytes_before - old->bytes_before),
                                      [AFTER] = (double)(c->bytes_after - old->bytes_after),
                                      [TIME_NS] = (double)(c->time_ns - old->time_ns),
                                      [LOSSY] = c->lossy};
        if (more[MESSAGES] + more[SKIPPED] + more[RECEIVED] + more[BEFORE] == 0)
            continue;
        key_of(key, sizeof key, c->direction, c->name);
        err = paramo_kv_add(node, key, more, FIGURES);
        if (err == PARAMO_OK)
            *old = *c;
    }
    return err;
}

/* Reads the sums of the filter whose name is the first `length` bytes. Returns 1 if they are not all 0. */
static int sum_of(paramo_node *node, paramo_filter_direction direction, const char *name, size_t length,
                  struct filter_sum *sum)
{
    char key[64];
    double of[FIGURES];
    (void)snprintf(sum->name, sizeof sum->name, "%.*s", (int)length, name);
    key_of(key, sizeof key, direction, sum->name);
    if (summed_get(node, key, of, FIGURES) != PARAMO_OK)
        return 0;
    sum->of = (paramo_filter_counter){.direction = direction,
                                      .lossy = of[LOSSY] > 0,
                                      .messages = (uint64_t)of[MESSAGES],
                                      .skipped = (uint64_t)of[SKIPPED],
                                      .received = (uint64_t)of[RECEIVED],
                                      .bytes_before = (uint64_t)of[BEFORE],
                                      .bytes_after = (uint64_t)of[AFTER],
                                      .time_ns = (uint64_t)of[TIME_NS]};
    return of[MESSAGES] + of[SKIPPED] + of[RECEIVED] + of[BEFORE] > 0;
}

size_t filter_sums_read(paramo_node *node, const char *chains, struct filter_sum sums[FILTER_SUMS_MAX])
{
    size_t n = 0;
    for (const char *chain = chains; chain && *chain; chain += strspn(chain, ";")) {
        const paramo_filter_direction direction =
            strncmp(chain, "pull=", 5) == 0 ? PARAMO_FILTER_PULL : PARAMO_FILTER_PUSH;
        const char *end = chain + strcspn(chain, ";"), *name = chain + strcspn(chain, "=;");
        while (name < end && n < FILTER_SUMS_MAX) {
            name++; /* after = or , */
            n += (size_t)sum_of(node, direction, name, strcspn(name, ":,;"), &sums[n]);
            name += strcspn(name, ",;");
        }
        chain = end;
    }
    return n;
}
