/*
 * What two ucx vans say to each other on the socket while they set up a way (docs/PROTOCOL.md, section 10):
 * the bodies of own frames, and the one word that goes with each message by UCX. Decoding checks everything
 * that can be checked without UCX; it knows no connection. Tests: test/van/test_ucx_setup.c, fuzz/fuzz_way.c.
 */
#ifndef VAN_UCX_UCX_SETUP_H
#define VAN_UCX_UCX_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "van/area.h"

enum ucx_kind { UCX_SHM, UCX_FABRIC, UCX_KINDS };
enum ucx_setup_kind {
    SETUP_OFFER = 1,
    SETUP_ACCEPT,
    SETUP_DECLINE,
    SETUP_READY,
    SETUP_RETRACT,
    SETUP_SWITCH
};
enum { SETUP_VERSION = 2, SETUP_BYTES_MAX = 2200, UCX_ADDRESS_MIN = 8, UCX_ADDRESS_MAX = 2048 };

struct ucx_setup {
    uint8_t kind; /* enum ucx_setup_kind */
    /* OFFER; of another version, the rest is not there */
    uint8_t version;
    uint64_t host;
    uint8_t kinds; /* a bit for each enum ucx_kind */
    /* OFFER, ACCEPT: this side's area */
    struct area_place area;
    /* ACCEPT */
    uint8_t way; /* enum ucx_kind */
    /* ACCEPT, READY: what stands in the other side's area; UCX's address, which is checked by length only */
    uint64_t proof;
    const uint8_t *address; /* in the bytes that were decoded */
    size_t address_len;
    /* DECLINE */
    char why[200];
};

/* PROTOCOL: no such message. */
MUST_USE paramo_err ucx_setup_decode(const uint8_t *bytes, size_t len, struct ucx_setup *setup);
/* The length; 0: it does not fit. */
size_t ucx_setup_encode(const struct ucx_setup *setup, uint8_t bytes[SETUP_BYTES_MAX]);

/* ---- the word of a message by UCX ---- */

enum ucx_message {
    MESSAGE_DATA,  /* the next bytes of the stream */
    MESSAGE_PROBE, /* from the connector: from here the acceptor sends by UCX */
    MESSAGE_GO,    /* from the acceptor: from here the connector does */
    MESSAGE_END,   /* nothing follows */
    MESSAGE_AREA,  /* the next bytes of the stream lie in the sender's area */
    MESSAGE_ROOM,  /* of the receiver's own area, the peer has read everything before this position */
    MESSAGE_KINDS
};

struct ucx_word {
    uint8_t message;
    bool wrap;         /* AREA: they begin at the area's beginning */
    uint32_t len;      /* AREA */
    uint64_t position; /* ROOM: bytes since the area was made; 56 bits */
};
uint64_t ucx_word_encode(const struct ucx_word *word);
MUST_USE paramo_err ucx_word_decode(uint64_t bits, struct ucx_word *word);

/* Where in an area the next bytes are; both sides count alike. PROTOCOL: not inside the area. */
MUST_USE paramo_err ucx_area_step(const struct ucx_word *word, uint64_t *position, size_t *offset);

#endif
