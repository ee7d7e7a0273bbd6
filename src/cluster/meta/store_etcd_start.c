#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/sm.h"
#include "cluster/meta/store_etcd_call.h"
#include "cluster/meta/store_etcd_impl.h"
#include "cluster/meta/store_etcd_lead.h"
#include "cluster/meta/store_etcd_start.h"

/* ---- the start: looking, the campaign, reading -------------------------------------------------------- */

static const struct sm machine = {
    "lead",
    {[PHASE_OPEN] = {"open", SM_TO(PHASE_WATCH)},
     [PHASE_WATCH] = {"watch", SM_TO(PHASE_WATCH) | SM_TO(PHASE_GRANT) | SM_TO(PHASE_OPEN)},
     [PHASE_GRANT] = {"grant", SM_TO(PHASE_WATCH) | SM_TO(PHASE_CAMPAIGN) | SM_TO(PHASE_OPEN)},
     [PHASE_CAMPAIGN] = {"campaign", SM_TO(PHASE_WATCH) | SM_TO(PHASE_READ) | SM_TO(PHASE_OPEN)},
     [PHASE_READ] = {"read", SM_TO(PHASE_WATCH) | SM_TO(PHASE_OPEN) | SM_TO(PHASE_READY)},
     [PHASE_READY] = {"ready", 0}}};

static void move(struct etcd_store *s, enum phase to)
{
    sm_check(&machine, s->phase, to);
    s->phase = to;
}

/* The end of a start. */
static void start_ends(struct etcd_store *s, paramo_err err)
{
    store_started_fn *started = s->started;
    struct store_state state = {.term = s->term, .records = s->found.data, .bytes = s->found.len};
    etcd_store_check(s);
    assert(started && !s->asking);
    s->started = NULL;
    move(s, err ? PHASE_OPEN : PHASE_READY);
    struct writer found = s->found;
    s->found = (struct writer){0};
    started(s->started_arg, err, err ? NULL : &state);
    writer_fini(&found);
}

void meta_watch_in(struct etcd_store *s, uint32_t ms)
{
    etcd_store_check(s);
    move(s, PHASE_WATCH);
    assert(s->started);
    s->look_at = meta_now(s) + ms * ENV_MS;
}

/* etcd has not answered: tries again until give_up_at. */
static void start_fails(struct etcd_store *s, paramo_err err)
{
    etcd_store_check(s);
    assert(err && s->started);
    if (s->give_up_at && meta_now(s) >= s->give_up_at) {
        start_ends(s, err_prefix(err, "etcd does not answer"));
        return;
    }
    if (!s->silent_since)
        s->silent_since = meta_now(s);
    if (!s->silent && meta_now(s) >= s->silent_since + SILENT_MS * ENV_MS) {
        log_warn("scheduler: etcd does not answer; trying again: %s", err_text());
        s->silent = true;
    }
    meta_watch_in(s, AGAIN_MS);
}

static void started_well(struct etcd_store *s)
{
    assert(s->phase == PHASE_WATCH && s->started);
    assert(!s->silent || s->silent_since);
    if (s->silent)
        log_warn("scheduler: etcd answers again");
    s->silent = false;
    s->silent_since = 0;
    s->give_up_at = 0;
}

static void somebody_leads(struct etcd_store *s, const struct etcd_answer *answer, uint32_t term)
{
    char who[ADDRESS_MAX];
    meta_text(etcd_find(answer, meta_key(s, "leader").text), who, sizeof who);
    if (s->waited_for != term || strcmp(who, s->told) != 0) {
        if (strcmp(who, s->name) == 0)
            log_warn("scheduler: waits until the lease of the scheduler before it ends");
        else
            log_warn("scheduler: stands by: %s leads the job", who);
        memcpy(s->told, who, sizeof who);
    }
    assert(s->phase == PHASE_WATCH && !s->silent);
    s->waited_for = term;
    meta_watch_in(s, POLL_MS);
}

static void looked(struct etcd_store *s, paramo_err err)
{
    etcd_store_check(s);
    assert(s->phase == PHASE_WATCH && s->started);
    struct etcd_answer answer = {0};
    uint32_t term;
    if (!err)
        err = etcd_txn_read(&s->answer, &answer);
    if (err) {
        start_fails(s, err);
        return;
    }
    started_well(s);
    if (!meta_term_read(&answer, s, &term) || !meta_head_read(&answer, s, &s->head, &s->head_changed)) {
        err = err_set(PARAMO_E_FORMAT, "%s in etcd is not the state of a scheduler", s->prefix);
        etcd_answer_fini(&answer);
        start_ends(s, err);
        return;
    }
    const struct etcd_kv *kv = etcd_find(&answer, meta_key(s, "term").text);
    bool led = etcd_find(&answer, meta_key(s, "leader").text) != NULL;
    /* The scheduler that was waited for has emptied its store: its job needs no successor. */
    bool over = s->waited_for && s->head.first >> 32 == s->waited_for && !s->head.bytes;
    s->term = term;
    s->fence = kv ? kv->modified : 0;
    if (over)
        start_ends(s, err_set(PARAMO_E_CLOSED, "the job that this scheduler stood by for is over"));
    else if (led)
        somebody_leads(s, &answer, term);
    else
        move(s, PHASE_GRANT);
    etcd_answer_fini(&answer);
}

void meta_watch(struct etcd_store *s)
{
    etcd_store_check(s);
    assert(s->phase == PHASE_WATCH && s->started);
    struct etcd_txn txn = {0};
    meta_range(s, &txn.then);
    meta_txn(s, &txn, LONG_MS, looked);
}

void meta_granted(struct etcd_store *s, paramo_err err)
{
    etcd_store_check(s);
    assert(s->phase == PHASE_GRANT && s->started);
    err = meta_lease_taken(s, err);
    if (err)
        start_fails(s, err);
    else
        move(s, PHASE_CAMPAIGN);
}

static void read_ends(struct etcd_store *s)
{
    etcd_store_check(s);
    assert(s->phase == PHASE_READ && s->term);
    paramo_err err = PARAMO_OK;
    if (s->pieces_found != s->head.pieces || s->found.len != s->head.bytes)
        err = err_set(PARAMO_E_CORRUPT,
                      "%srecord in etcd is damaged: it has %" PRIu64 " pieces with %zu bytes, not %" PRIu64
                      " with %" PRIu64,
                      s->prefix, s->pieces_found, s->found.len, s->head.pieces, s->head.bytes);
    if (!err)
        log_line(s->waited_for ? LOG_WARN : LOG_INFO, "scheduler: leads the job now, in term %" PRIu32,
                 s->term);
    s->counter = 0;
    s->head_known = true;
    s->broken = false;
    start_ends(s, err);
}

static void page_read(struct etcd_store *s, paramo_err err)
{
    assert(s->phase == PHASE_READ && s->started);
    assert(s->term);
    struct etcd_answer answer = {0};
    if (!err)
        err = etcd_txn_read(&s->answer, &answer);
    if (err) {
        start_fails(s, err); /* the campaign is held again when its lease has gone */
        return;
    }
    if (!answer.succeeded) {
        etcd_answer_fini(&answer);
        meta_watch_in(s, 0);
        return;
    }
    for (unsigned i = 0; i < answer.count; i++) {
        const struct writer *value = &answer.kv[i].value;
        if (value->len && s->found.len + value->len <= s->head.bytes)
            write_bytes(&s->found, value->data, value->len);
        s->pieces_found++;
    }
    bool end = answer.count < PIECES_A_PAGE || s->pieces_found > s->head.pieces;
    if (answer.count) /* the next page begins after it */
        (void)snprintf(s->read_from, sizeof s->read_from, "%.*s!", ETCD_KEY_MAX - 2,
                       answer.kv[answer.count - 1].key);
    etcd_answer_fini(&answer);
    if (s->found.failed)
        start_ends(s, err_memory(s->head.bytes));
    else if (end)
        read_ends(s);
}

void meta_read_page(struct etcd_store *s)
{
    etcd_store_check(s);
    assert(s->phase == PHASE_READ && s->started && s->fence);
    struct etcd_txn txn = {0};
    meta_compare_fence(s, &txn);
    etcd_range(&txn.then, s->read_from, meta_record_end(s, s->head.last).text, PIECES_A_PAGE);
    meta_txn(s, &txn, LONG_MS, page_read);
}

static void campaigned(struct etcd_store *s, paramo_err err)
{
    etcd_store_check(s);
    assert(s->phase == PHASE_CAMPAIGN && s->lease && s->started);
    struct etcd_answer answer = {0};
    if (!err)
        err = etcd_txn_read(&s->answer, &answer);
    if (err) {
        start_fails(s, err); /* if etcd has carried it out, its lease ends soon */
        return;
    }
    bool held = answer.succeeded, fits = !held || meta_head_read(&answer, s, &s->head, &s->head_changed);
    s->fence = answer.revision;
    etcd_answer_fini(&answer);
    if (!held) {
        meta_watch_in(s, 0);
        return;
    }
    if (!fits) {
        start_ends(s, err_set(PARAMO_E_FORMAT, "key %shead in etcd is not a scheduler's", s->prefix));
        return;
    }
    s->term++;
    s->fenced = false; /* in a campaign before, from whose records another took it away */
    s->leads = true;
    meta_lease_lasts(s, s->granted_at, s->ttl_s);
    writer_fini(&s->found);
    s->found = (struct writer){0};
    s->pieces_found = 0;
    memcpy(s->read_from, meta_record_key(s, s->head.first, 0).text, sizeof s->read_from);
    move(s, PHASE_READ);
    if (!s->head.pieces)
        read_ends(s);
}

void meta_campaign(struct etcd_store *s)
{
    etcd_store_check(s);
    assert(s->phase == PHASE_CAMPAIGN && s->started && s->lease);
    struct etcd_txn txn = {0};
    char term[16];
    struct key term_key = meta_key(s, "term"), leader = meta_key(s, "leader");
    (void)snprintf(term, sizeof term, "%" PRIu32, s->term + 1);
    etcd_compare(&txn, leader.text, 0);
    etcd_compare(&txn, term_key.text, s->fence);
    etcd_put(&txn.then, term_key.text, term, strlen(term), 0);
    etcd_put(&txn.then, leader.text, s->name, strlen(s->name), s->lease);
    etcd_range(&txn.then, meta_key(s, "head").text, NULL, 0);
    meta_txn(s, &txn, LONG_MS, campaigned);
}
