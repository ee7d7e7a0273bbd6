/*
 * What every fuzz target stands on: the input as a source of small decisions, and checks that end the process
 * with the place that failed. A target is one fuzz_<name>.c with LLVMFuzzerTestOneInput. In the preset "fuzz"
 * it is linked with libFuzzer; in every other build with replay_main.c, which runs it over its corpus and
 * over fuzz/regressions/<name>/, as the test fuzz/<name>. Equal inputs do equal things: no clock, no
 * addresses.
 */
#ifndef FUZZ_HARNESS_H
#define FUZZ_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition) ((condition) ? (void)0 : harness_fail(__FILE__, __LINE__, #condition))
_Noreturn void harness_fail(const char *file, int line, const char *condition);

/* The rest of the input; all that is taken beyond its end is zero. */
struct source {
    const uint8_t *at;
    size_t left;
};

uint8_t draw_u8(struct source *s);
uint16_t draw_u16(struct source *s);
uint32_t draw_u32(struct source *s);
uint64_t draw_u64(struct source *s);
/* Below n (n > 0). */
uint32_t draw_below(struct source *s, uint32_t n);
/* Mostly small, sometimes at an edge, sometimes anything. */
uint64_t draw_number(struct source *s);
/* At most n bytes, in memory of exactly that size (freed by the caller), so that a sanitizer sees a read
 * beyond; *got is how many there were. Never NULL. */
uint8_t *draw_bytes(struct source *s, size_t n, size_t *got);
/* Without zero bytes, cut to capacity with its end. */
void draw_text(struct source *s, char *text, size_t capacity);

/* Silences the library's log; once. */
void harness_quiet(void);
void *harness_alloc(size_t bytes);
/* A file in memory that holds the bytes, by a name to open; harness_file_close frees it. */
struct harness_file {
    int fd;
    char path[32];
};
void harness_file_open(struct harness_file *file, const void *bytes, size_t len);
void harness_file_close(struct harness_file *file);

#endif
