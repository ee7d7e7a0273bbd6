/*
 * What the van implementations share: the header on the wire, the base of vans and connections, and the
 * delivery of a frame. Only src/van and test/van include it. It never knows transports. Tests:
 * test/van/test_van.c.
 */
#ifndef VAN_CORE_H
#define VAN_CORE_H

#include "van/van.h"

struct van_header {
    uint8_t head[VAN_HEAD];
    uint64_t len[VAN_SEGS];
    uint64_t padded; /* bytes after the header */
    unsigned nseg;
    uint8_t class;
    bool own; /* a message between two vans, never delivered to a user */
};

void van_header_encode(const struct van_frame *frame, uint8_t out[VAN_HEADER_BYTES]);
/* Encodes the header of a van's own frame, with one segment. */
void van_own_header_encode(uint64_t len, uint8_t out[VAN_HEADER_BYTES]);
/* Checks the first bytes of a header, which may be incomplete. PROTOCOL: they are not a header. */
MUST_USE paramo_err van_header_begins(const uint8_t *bytes, size_t have);
/* Checks magic, version, nseg, class, checksum, and the sum of lengths against limit: PROTOCOL, VERSION,
 * TOO_LARGE. */
MUST_USE paramo_err van_header_decode(const uint8_t in[VAN_HEADER_BYTES], uint64_t limit,
                                      struct van_header *header);
/* The check of the lengths alone, for frames that are not decoded from bytes. */
MUST_USE paramo_err van_frame_check(const struct van_seg *seg, unsigned nseg, uint64_t limit);

MUST_USE paramo_err van_init(struct van *van, const struct van_ops *ops, struct env *env);
void van_fini(struct van *van);
void van_conn_init(struct van_conn *conn, struct van *van, struct lane *lane);

/* True if a received frame of this class must be dropped (van_set_drop). */
bool van_drops(struct van *van, uint8_t class);
/* Asks the user where the segments go. All VAN_POOL if the user has no place(). */
MUST_USE paramo_err van_ask_place(struct van_conn *conn, const uint8_t *head, const uint64_t *len,
                                  unsigned nseg, void *dst[VAN_SEGS]);
/* Counts the frame and delivers it to the user. hold: the memory of its pooled segments, or NULL.
 * borrowed: the segments, as bits, whose memory is valid in frame() only, so that van_keep must copy
 * them. */
MUST_USE paramo_err van_deliver(struct van_conn *conn, const uint8_t *head, const struct van_seg *seg,
                                unsigned nseg, struct van_hold *hold, unsigned borrowed);

/* Adds a connection that is closed but still flushing. */
void van_orphan_add(struct van_conn *conn);
void van_orphan_remove(struct van_conn *conn);

/* A closed connection may flush until no byte has left for VAN_FLUSH_SECONDS, and for VAN_FLUSH_MOST at most: both are
 * arbitrary. Arms the timer for that, first when the connection is closed and then whenever the timer fires. False: the
 * time is over, or there is no memory for a timer. */
enum { VAN_FLUSH_SECONDS = 10, VAN_FLUSH_MOST = 60 };
MUST_USE bool van_flush_wait(struct van_conn *conn, struct lane_timer *timer);

#endif
