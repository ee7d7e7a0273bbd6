/*
 * Copies bytes that another core will read and this one will not, with stores that bypass the caches. A
 * plain store must first fetch the line from the other core's cache, about 25 ns each (measured), which
 * limits a ring of shared memory to 2.5 GB/s; with bypassing stores it reaches 18 GB/s
 * (docs/PERFORMANCE.md). Processors without such stores use memcpy. Tests: test/van/test_area.c.
 */
#ifndef VAN_COPY_H
#define VAN_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

static inline void copy_away(uint8_t *to, const uint8_t *from, size_t len)
{
    enum { LINE = 64, STEP = sizeof(__m128i) };
    size_t head = (LINE - (uintptr_t)to % LINE) % LINE;
    if (len < head + LINE) {
        memcpy(to, from, len);
        return;
    }
    memcpy(to, from, head);
    size_t at = head;
    for (; len - at >= LINE; at += LINE) {
        __m128i part[LINE / STEP];
        for (unsigned i = 0; i < LINE / STEP; i++)
            part[i] = _mm_loadu_si128((const __m128i *)(const void *)(from + at + i * STEP));
        for (unsigned i = 0; i < LINE / STEP; i++)
            _mm_stream_si128((__m128i *)(void *)(to + at + i * STEP), part[i]);
    }
    memcpy(to + at, from + at, len - at);
    _mm_sfence(); /* these stores are not ordered with the store that announces them */
}
#else
static inline void copy_away(uint8_t *to, const uint8_t *from, size_t len)
{
    memcpy(to, from, len);
}
#endif

#endif
