#include "sim/pages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/history.h"
#include "sim/judge.h"
#include "sim/ledger.h"
#include "sim/losses.h"
#include "sim/overdue.h"
#include "sim/world.h"

void page_draw(struct op *op, struct dice *dice)
{
    struct world *w = op->machine->world;
    struct customer *c = &op->machine->customers[op->customer];
    const struct ledger_key *keys = w->ledger[op->table].keys;
    struct page_op *p = calloc(1, sizeof *p);
    if (!p)
        abort();
    op->page = p;
    paramo_page *page = &p->page;
    paramo_page_init(page);
    unsigned from = (unsigned)dice_draw(dice, 2 * SIM_KEYS), to = (unsigned)dice_draw(dice, 2 * SIM_KEYS);
    page->begin = from < SIM_KEYS ? keys[from].key : 0;
    page->end = to < SIM_KEYS && keys[to].key > page->begin ? keys[to].key : 0;
    page->most = 1 + dice_draw(dice, dice_draw(dice, 2) ? 8 : SIM_KEYS);
    page->vals_len = SIM_WIDE + dice_draw(dice, (SIM_KEYS - 1) * SIM_WIDE);
    op->began = op->from;
    memcpy(op->began_must, op->all_must, sizeof op->began_must);
    if (c->page.more && c->page.table == op->table && !w->loading && c->page.from > w->loaded_at) {
        page->begin = c->page.next;
        page->end = c->page.end;
        page->scan = c->page.scan;
        c->page.more = false;
        op->began = c->page.from;
        memcpy(op->began_must, c->page.must, sizeof op->began_must);
    }
    page->keys = p->keys;
    page->vals = p->vals;
    page->lens = op->table == SIM_VAR ? p->lens : NULL;
}

/* The next request of this customer for a page of this table may continue it. */
static void continues(const struct op *op)
{
    struct customer *c = &op->machine->customers[op->customer];
    const paramo_page *page = &op->page->page;
    if (!page->more)
        return;
    c->page.more = true;
    c->page.table = op->table;
    c->page.next = page->next;
    c->page.end = page->end;
    c->page.scan = page->scan;
    c->page.from = op->began;
    memcpy(c->page.must, op->began_must, sizeof op->began_must);
}

void page_judge(struct world *w, const struct op *op)
{
    const paramo_page *page = &op->page->page;
    uint64_t last = page->more ? page->next - 1 : page->end - 1;
    bool dense = op->table == SIM_DENSE || op->table == SIM_ROWS;
    size_t row = 0, at = 0;
    if (page->n > page->most || page->vals_n > page->vals_len || (page->more && !page->n)) {
        judge_broken(w, "a page for %zu rows has %zu", page->most, page->n);
        return;
    }
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        const struct ledger_key *k = &w->ledger[op->table].keys[i];
        if (k->key < page->begin || k->key > last)
            continue;
        bool there = row < page->n && page->keys[row] == k->key;
        unsigned width = op->columns ? op->columns : sim_row_values(op->table, i);
        unsigned n = !there ? 0 : page->lens ? page->lens[row] : width;
        /* A row that was created since the first page may be left out. */
        uint64_t must = there ? op->all_must[i] : op->began_must[i], from = there ? op->from : op->began;
        overdue_read(k, &from, &must);
        ledger_columns_check(w, "a page", op->table, i, op->column, op->page->vals + at, n, must, from);
        if (dense && !there && !w->restoring)
            judge_broken(w, "a page leaves out row %" PRIu64 " of table %d", k->key, (int)op->table);
        row += there;
        at += n;
    }
    if (row != page->n)
        judge_broken(w, "a page gives key %" PRIu64 ", which is not asked for, or out of order",
                     page->keys[row]);
    else if (at != page->vals_n)
        judge_broken(w, "a page has %zu values in rows, and %zu in all", at, page->vals_n);
    continues(op);
}
