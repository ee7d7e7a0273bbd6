/*
 * The messages by which two ucx vans set up a way on the socket (docs/PROTOCOL.md, section 10), which are
 * the bodies of own frames, and the word in each message by UCX. Decoding checks everything that can be
 * checked without UCX. This module never knows connections. Tests: test/van/test_ucx_setup.c,
 * fuzz/fuzz_way.c.
 */
#ifndef VAN_UCX_UCX_SETUP_H
#define VAN_UCX_UCX_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "van/area.h"

enum ucx_kind { UCX_SHM, UCX_FABRIC, UCX_KINDS };
enum ucx_setup_kind { SETUP_OFFER = 1, SETUP_ACCEPT, SETUP_DECLINE, SETUP_READY, SETUP_RETRACT, SETUP_LAST };
enum { SETUP_VERSION = 3, SETUP_BYTES_MAX = 2200, UCX_ADDRESS_MIN = 8, UCX_ADDRESS_MAX = 2048 };

struct ucx_setup {
    uint8_t kind; /* enum ucx_setup_kind */
    /* OFFER; an OFFER of another version has no further fields */
    uint8_t version;
    uint64_t host;
    uint8_t kinds; /* a bit for each enum ucx_kind */
    /* OFFER, ACCEPT: this side's area */
    struct area_place area;
    /* ACCEPT */
    uint8_t way; /* enum ucx_kind */
    /* ACCEPT, READY: the random bytes of the other side's area; UCX's address, of which only the length
     * is checked */
    uint64_t proof;
    const uint8_t *address; /* points into the decoded bytes */
    size_t address_len;
    /* DECLINE */
    char why[200];
};

/* PROTOCOL: not a valid message. */
MUST_USE paramo_err ucx_setup_decode(const uint8_t *bytes, size_t len, struct ucx_setup *setup);
/* Returns the length. 0: it does not fit. */
size_t ucx_setup_encode(const struct ucx_setup *setup, uint8_t bytes[SETUP_BYTES_MAX]);

/* ---- the word of a message by UCX ---- */

enum ucx_message {
    MESSAGE_DATA,  /* the next bytes of the stream */
    MESSAGE_PROBE, /* from the connector: it can send by UCX */
    MESSAGE_ECHO,  /* from the acceptor, to PROBE: both can */
    MESSAGE_GO,    /* the sender has read LAST: from here the receiver sends by UCX */
    MESSAGE_END,   /* nothing follows */
    MESSAGE_AREA,  /* the next bytes of the stream are in the sender's area */
    MESSAGE_ROOM,  /* the peer has read the receiver's own area up to this position */
    MESSAGE_KINDS
};

struct ucx_word {
    uint8_t message;
    bool wrap;         /* AREA: the bytes begin at the area's beginning */
    uint32_t len;      /* AREA */
    uint64_t position; /* ROOM: bytes since the area was made; 56 bits */
};
uint64_t ucx_word_encode(const struct ucx_word *word);
MUST_USE paramo_err ucx_word_decode(uint64_t bits, struct ucx_word *word);

/* The offset of the next bytes in an area. Both sides count in the same way. PROTOCOL: not inside the
 * area. */
MUST_USE paramo_err ucx_area_step(const struct ucx_word *word, uint64_t *position, size_t *offset);

#endif
