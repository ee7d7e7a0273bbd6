#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster/meta/store_etcd_call.h"
#include "cluster/meta/store_etcd_impl.h"
#include "cluster/meta/store_etcd_lead.h"

/* ---- the lease ---------------------------------------------------------------------------------------- */

void meta_grant(struct etcd_store *s, void (*then)(struct etcd_store *s, paramo_err err))
{
    assert(!s->asking && !s->body.data);
    etcd_store_check(s);
    etcd_grant_write(TTL_S, &s->body);
    meta_call(s, "lease/grant", SHORT_MS, then);
}

void meta_lease_lasts(struct etcd_store *s, uint64_t asked_at, uint32_t ttl_s)
{
    assert(s->lease && ttl_s);
    assert(!s->fenced && s->leads);
    s->sure_until = asked_at + ttl_s * ENV_SEC;
    s->lease_due = asked_at + ttl_s * ENV_SEC / 3;
}

paramo_err meta_lease_taken(struct etcd_store *s, paramo_err err)
{
    assert(s->inside && !s->asking);
    if (!err)
        err = etcd_lease_read(&s->answer, &s->lease, &s->ttl_s);
    if (!err && !s->ttl_s)
        err = err_set(PARAMO_E_PROTOCOL, "etcd granted a lease of 0 s");
    if (err)
        s->lease = 0;
    s->granted_at = s->asked_at;
    assert(err ? !s->lease : s->lease && s->ttl_s);
    return err;
}

static void lease_again_in(struct etcd_store *s, uint64_t ms)
{
    assert(s->term && !s->fenced);
    s->lease_due = meta_now(s) + ms * ENV_MS;
}

static void lease_ended(struct etcd_store *s, uint64_t again_ms)
{
    etcd_store_check(s);
    assert(s->lease && !s->fenced);
    s->lease = 0;
    s->leads = false;
    s->sure_until = 0;
    lease_again_in(s, again_ms);
}

/* The key `leader` is ours again, unless another scheduler has taken the lead. */
static void led_again(struct etcd_store *s, paramo_err err)
{
    struct etcd_answer answer = {0};
    assert(s->lease && !s->leads && !s->fenced);
    etcd_store_check(s);
    if (!err)
        err = etcd_txn_read(&s->answer, &answer);
    s->leads = !err && answer.succeeded;
    if (s->leads)
        meta_lease_lasts(s, s->granted_at, s->ttl_s);
    else if (err || !meta_fenced(s, &answer))
        lease_ended(s, err ? AGAIN_MS : POLL_MS); /* the lease of the key that is there ends soon */
    etcd_answer_fini(&answer);
}

static void lead_again(struct etcd_store *s)
{
    assert(s->lease && !s->leads && s->term);
    etcd_store_check(s);
    struct etcd_txn txn = {0};
    struct key leader = meta_key(s, "leader");
    etcd_compare(&txn, leader.text, 0);
    meta_compare_fence(s, &txn);
    etcd_put(&txn.then, leader.text, s->name, strlen(s->name), s->lease);
    meta_range(s, &txn.otherwise);
    meta_txn(s, &txn, SHORT_MS, led_again);
}

static void granted_again(struct etcd_store *s, paramo_err err)
{
    etcd_store_check(s);
    assert(!s->lease && !s->leads && !s->fenced);
    lease_again_in(s, meta_lease_taken(s, err) ? AGAIN_MS : 0);
}

static void kept_alive(struct etcd_store *s, paramo_err err)
{
    uint64_t lease;
    uint32_t ttl_s = 0;
    etcd_store_check(s);
    assert(s->lease && s->leads && !s->fenced);
    if (!err)
        err = etcd_lease_read(&s->answer, &lease, &ttl_s);
    if (!err && ttl_s)
        meta_lease_lasts(s, s->asked_at, ttl_s);
    else if (!err)
        lease_ended(s, 0); /* and with it the key */
    else
        lease_again_in(s, AGAIN_MS);
}

void meta_lease_call(struct etcd_store *s)
{
    etcd_store_check(s);
    assert(!s->asking && !s->fenced && (s->lease || !s->leads));
    if (!s->lease) {
        meta_grant(s, granted_again);
    } else if (!s->leads) {
        lead_again(s);
    } else {
        etcd_lease_write(s->lease, &s->body);
        meta_call(s, "lease/keepalive", SHORT_MS, kept_alive);
    }
}

/* ---- saves -------------------------------------------------------------------------------------------- */

static void save_ends(struct etcd_store *s, paramo_err err)
{
    struct save *v = s->first;
    assert(v && v->done);
    assert(s->inside && (v->next || s->last == v));
    etcd_store_check(s);
    s->first = v->next;
    if (v->records.len || v->whole) {
        s->broken = err != PARAMO_OK;
        s->head_known = s->head_known && !err;
    }
    writer_fini(&v->records);
    store_saved_fn *done = v->done;
    void *arg = v->arg;
    free(v);
    done(arg, err);
}

/* The answer to a save's transaction. False: it did not hold, or did not come; the save has ended. */
static bool save_held(struct etcd_store *s, paramo_err err, struct etcd_answer *answer)
{
    *answer = (struct etcd_answer){0};
    assert(s->inside && s->first && s->phase == PHASE_READY);
    if (!err)
        err = etcd_txn_read(&s->answer, answer);
    if (!err && answer->succeeded)
        return true;
    if (!err && meta_fenced(s, answer))
        err = meta_fenced_text(s);
    else if (!err)
        err = err_set(PARAMO_E_IO, "an earlier save arrived late");
    etcd_answer_fini(answer);
    save_ends(s, err);
    return false;
}

static void head_checked(struct etcd_store *s, paramo_err err)
{
    struct etcd_answer answer;
    if (!save_held(s, err, &answer))
        return;
    etcd_store_check(s);
    assert(s->first && !s->fenced);
    bool fits = meta_head_read(&answer, s, &s->head, &s->head_changed);
    etcd_answer_fini(&answer);
    s->head_known = fits;
    if (!fits)
        save_ends(s, err_set(PARAMO_E_FORMAT, "key %shead in etcd is not a scheduler's", s->prefix));
    else if (!s->first->records.len && !s->first->whole)
        save_ends(s, PARAMO_OK);
}

static void piece_put(struct etcd_store *s, paramo_err err)
{
    struct etcd_answer answer;
    if (!save_held(s, err, &answer))
        return;
    etcd_answer_fini(&answer);
    assert(s->head_known && !s->fenced);
    s->first->pieces++;
    assert(s->first->number);
    assert((size_t)s->first->pieces * PIECE < s->first->records.len);
}

/* The head as it will be after that save. */
static struct head head_with(const struct etcd_store *s, const struct save *v)
{
    assert(v == s->first && v->number);
    struct head head = v->whole || !s->head.first ? (struct head){.first = v->number} : s->head;
    head.last = v->number;
    head.pieces += v->pieces + (v->records.len ? 1 : 0);
    head.bytes += v->records.len;
    return head;
}

static void committed(struct etcd_store *s, paramo_err err)
{
    struct etcd_answer answer;
    struct save *v = s->first;
    if (!save_held(s, err, &answer))
        return;
    etcd_store_check(s);
    assert(v->number && s->head_known && !s->fenced);
    s->head_changed = answer.revision;
    s->head = head_with(s, v);
    etcd_answer_fini(&answer);
    save_ends(s, PARAMO_OK);
}

static void piece_write(const struct etcd_store *s, struct etcd_txn *txn)
{
    const struct save *v = s->first;
    size_t from = (size_t)v->pieces * PIECE, left = v->records.len - from;
    assert(v->number && from <= v->records.len);
    if (left)
        etcd_put(&txn->then, meta_record_key(s, v->number, v->pieces).text, v->records.data + from,
                 left < PIECE ? left : PIECE, 0);
}

/* Writes the last piece, and the head, which makes all pieces count. */
static void commit_write(const struct etcd_store *s, struct etcd_txn *txn)
{
    const struct save *v = s->first;
    assert(s->head_known && !s->fenced);
    struct key head_key = meta_key(s, "head");
    struct head head = head_with(s, v);
    char text[120];
    (void)snprintf(text, sizeof text, "1 %" PRIx64 " %" PRIx64 " %" PRIu64 " %" PRIu64, head.first, head.last,
                   head.pieces, head.bytes);
    etcd_compare(txn, head_key.text, s->head_changed);
    piece_write(s, txn);
    etcd_put(&txn->then, head_key.text, text, strlen(text), 0);
    if (v->whole)
        etcd_erase(&txn->then, meta_record_key(s, 0, 0).text, meta_record_key(s, v->number, 0).text);
    if (v->whole && !v->records.len) /* the job is over: no scheduler needs to wait for the lease */
        etcd_erase(&txn->then, meta_key(s, "leader").text, NULL);
}

void meta_save_call(struct etcd_store *s)
{
    struct save *v = s->first;
    struct etcd_txn txn = {0};
    bool proof = !v->records.len && !v->whole;
    etcd_store_check(s);
    assert(!s->asking && !s->fenced && s->phase == PHASE_READY);
    meta_compare_fence(s, &txn);
    meta_range(s, &txn.otherwise);
    if (proof || !s->head_known) {
        etcd_range(&txn.then, meta_key(s, "head").text, NULL, 0);
        meta_txn(s, &txn, LONG_MS, head_checked);
        return;
    }
    if (!v->number) /* each attempt has its own */
        v->number = (uint64_t)s->term << 32 | ++s->counter;
    if (v->records.len - (size_t)v->pieces * PIECE > PIECE) {
        piece_write(s, &txn);
        meta_txn(s, &txn, LONG_MS, piece_put);
    } else {
        commit_write(s, &txn);
        meta_txn(s, &txn, LONG_MS, committed);
    }
}

paramo_err meta_broken_text(void)
{
    return err_set(PARAMO_E_IO, "an earlier save failed; the next save must contain the whole state");
}

void meta_saves_fail(struct etcd_store *s)
{
    etcd_store_check(s);
    assert(!s->inside && !s->asking);
    s->inside = true;
    for (struct save *v; !s->closed && (v = s->first);) {
        if (s->fenced)
            save_ends(s, meta_fenced_text(s));
        else if (s->broken && !v->whole && v->records.len)
            save_ends(s, meta_broken_text());
        else
            break;
    }
    s->inside = false;
}
