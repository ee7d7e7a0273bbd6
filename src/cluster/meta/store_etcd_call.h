/*
 * One request to etcd, as a blocking job: its body out, its answer back on the lane; and the keys and records
 * of the job below "paramo/JOB/". It never knows which request comes next: the store's `turn` says so. Tests:
 * test/cluster/test_store_etcd.c.
 */
#ifndef CLUSTER_META_STORE_ETCD_CALL_H
#define CLUSTER_META_STORE_ETCD_CALL_H

#include "cluster/meta/store_etcd_impl.h"

struct key {
    char text[ETCD_KEY_MAX];
};

struct key meta_key(const struct etcd_store *s, const char *name);
/* Of a piece. Keys ascend by number, then by piece. */
struct key meta_record_key(const struct etcd_store *s, uint64_t number, uint32_t piece);
/* Above all pieces of this number, below those of the next. */
struct key meta_record_end(const struct etcd_store *s, uint64_t number);
/* Sends s->body. then(s, err) is called on the lane with s->answer; it must not send a request itself. */
void meta_call(struct etcd_store *s, const char *path, uint32_t timeout_ms,
               void (*then)(struct etcd_store *s, paramo_err err));
void meta_txn(struct etcd_store *s, struct etcd_txn *txn, uint32_t timeout_ms,
              void (*then)(struct etcd_store *s, paramo_err err));
/* The transaction holds only while no other scheduler has taken the lead. */
void meta_compare_fence(const struct etcd_store *s, struct etcd_txn *txn);
/* Reads `term`, `leader` and `head`. */
void meta_range(const struct etcd_store *s, struct writer *list);
/* A value as printable text; empty if there is none. */
void meta_text(const struct etcd_kv *kv, char *text, size_t capacity);
/* False: the value is not one that a scheduler writes. */
bool meta_term_read(const struct etcd_answer *answer, const struct etcd_store *s, uint32_t *term);
bool meta_head_read(const struct etcd_answer *answer, const struct etcd_store *s, struct head *head,
                    uint64_t *changed);
/* After a transaction that did not hold: has another scheduler taken the lead? Then this store is fenced, for
 * good. */
bool meta_fenced(struct etcd_store *s, const struct etcd_answer *answer);
paramo_err meta_fenced_text(const struct etcd_store *s);

#endif
