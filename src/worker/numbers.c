#include "worker/numbers.h"

#include <assert.h>

static void check(const struct client_numbers *n)
{
    assert(n->floor <= n->next && n->next - n->floor <= DATA_WINDOW);
    assert(n->floor == n->next || n->chunk[n->floor % DATA_WINDOW]);
}

void numbers_init(struct client *c, uint64_t first)
{
    c->numbers->next = c->numbers->floor = first;
    check(c->numbers);
}

bool numbers_assign(struct client *c, struct chunk *chunk)
{
    struct client_numbers *n = c->numbers;
    check(n);
    assert(!chunk->number);
    if (n->next - n->floor >= DATA_WINDOW) {
        n->full = true;
        return false;
    }
    assert(!n->chunk[n->next % DATA_WINDOW]);
    chunk->number = n->next++;
    n->chunk[chunk->number % DATA_WINDOW] = chunk;
    check(n);
    return true;
}

void numbers_take_back(struct client *c, struct chunk *chunk)
{
    struct client_numbers *n = c->numbers;
    assert(chunk->number + 1 == n->next && n->chunk[chunk->number % DATA_WINDOW] == chunk);
    n->chunk[chunk->number % DATA_WINDOW] = NULL;
    n->next--;
    chunk->number = 0;
    check(n);
}

void numbers_finish(struct client *c, struct chunk *chunk)
{
    struct client_numbers *n = c->numbers;
    assert(chunk->number >= n->floor && chunk->number < n->next);
    assert(n->chunk[chunk->number % DATA_WINDOW] == chunk);
    n->chunk[chunk->number % DATA_WINDOW] = NULL;
    chunk->number = 0;
    while (n->floor < n->next && !n->chunk[n->floor % DATA_WINDOW])
        n->floor++;
    check(n);
}

bool numbers_room_again(const struct client *c)
{
    const struct client_numbers *n = c->numbers;
    check(n);
    return n->full && n->next - n->floor < DATA_WINDOW;
}

void numbers_wait_over(struct client *c)
{
    check(c->numbers);
    c->numbers->full = false;
}
