/*
 * Requests to etcd's JSON gateway (v3: POST /v3/kv/txn, /v3/lease/grant, /v3/lease/keepalive) and its
 * answers, as bytes to and from structs. Keys and values are base64, numbers of 64 bits are decimal strings,
 * and answers leave out what is 0, false or empty.
 *
 * It never knows what keys mean. Tests: test/cluster/test_etcd.c, fuzz/fuzz_etcd.c.
 */
#ifndef CLUSTER_META_ETCD_H
#define CLUSTER_META_ETCD_H

#include "base/cursor.h"

enum { ETCD_KEY_MAX = 160, ETCD_KVS_MAX = 64 };

/* Comparisons, operations if all of them hold, and operations if not. Zero it first; each function appends.
 * If one runs out of memory, etcd_txn_write's body has failed. */
struct etcd_txn {
    struct writer compare, then, otherwise;
};

/* Holds if the key was last changed in this revision; 0: if there is no such key. */
void etcd_compare(struct etcd_txn *txn, const char *key, uint64_t modified);
/* lease 0: none. */
void etcd_put(struct writer *list, const char *key, const void *value, size_t len, uint64_t lease);
/* One key; or, with an end, all keys from this one up to the end, which is excluded, in order. limit 0: no
 * limit. */
void etcd_range(struct writer *list, const char *key, const char *end, unsigned limit);
void etcd_erase(struct writer *list, const char *key, const char *end);
/* Empties the lists. */
void etcd_txn_write(struct etcd_txn *txn, struct writer *body);
void etcd_grant_write(uint32_t ttl_s, struct writer *body);
/* For keepalive and revoke. */
void etcd_lease_write(uint64_t lease, struct writer *body);

struct etcd_kv {
    char key[ETCD_KEY_MAX];
    uint64_t modified;
    struct writer value;
};

struct etcd_answer {
    uint64_t revision;
    bool succeeded;
    struct etcd_kv *kv; /* of all ranges, in order */
    unsigned count;
};

/* PROTOCOL: not an answer of etcd. */
MUST_USE paramo_err etcd_txn_read(const struct writer *json, struct etcd_answer *answer);
/* The first with this key, or NULL. */
const struct etcd_kv *etcd_find(const struct etcd_answer *answer, const char *key);
void etcd_answer_fini(struct etcd_answer *answer);
/* The answer to grant or keepalive. ttl 0: there is no such lease. */
MUST_USE paramo_err etcd_lease_read(const struct writer *json, uint64_t *lease, uint32_t *ttl_s);
/* The error in an answer: its "error" or "message", or its first bytes; printable. */
void etcd_error_text(const struct writer *json, char *text, size_t capacity);

#endif
