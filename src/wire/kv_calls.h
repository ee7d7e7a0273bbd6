/*
 * KV_PUT, KV_GET, KV_ADD, KV_DELETE: small values that the scheduler keeps. Values are spans into the
 * message. It never knows what a value means. Tests: test/wire/test_calls.c.
 */
#ifndef WIRE_KV_CALLS_H
#define WIRE_KV_CALLS_H

#include "base/cursor.h"

enum { KV_KEY_MAX = 256 /* with its zero byte */, KV_VALUE_MAX = 64 * 1024 };

/* KV_PUT; KV_ADD: value is little-endian doubles. */
struct kv_put {
    char key[KV_KEY_MAX];
    const uint8_t *value; /* decoded: into the message */
    uint32_t len;
};
struct kv_get {
    char key[KV_KEY_MAX];
    uint32_t timeout_ms;
};
struct kv_delete {
    char key[KV_KEY_MAX];
};

void kv_put_encode(const struct kv_put *m, struct writer *w);
MUST_USE paramo_err kv_put_decode(struct reader *r, struct kv_put *m);
void kv_get_encode(const struct kv_get *m, struct writer *w);
MUST_USE paramo_err kv_get_decode(struct reader *r, struct kv_get *m);
void kv_delete_encode(const struct kv_delete *m, struct writer *w);
MUST_USE paramo_err kv_delete_decode(struct reader *r, struct kv_delete *m);
/* KV_GET's answer is the value: the whole body. */

#endif
