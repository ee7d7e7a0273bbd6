/* Shared memory between processes: what is no area of this user's is refused; copying around the caches. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "env/env.h"
#include "van/area.h"
#include "van/copy.h"

static void the_peer_reads_what_is_written(void **state)
{
    (void)state;
    struct area ours = {0}, theirs = {0}, other = {0};
    assert_int_equal(area_create(env_real(), &ours), PARAMO_OK);
    assert_int_equal(area_create(env_real(), &other), PARAMO_OK);
    assert_int_equal(area_open(&ours.place, &theirs), PARAMO_OK);
    assert_true(theirs.data != ours.data);
    assert_true(area_proof(&theirs) == area_proof(&ours));
    assert_true(area_proof(&theirs) != area_proof(&other));
    memcpy(ours.data + AREA_BYTES - 5, "here", 5);
    assert_string_equal((const char *)theirs.data + AREA_BYTES - 5, "here");
    area_close(&theirs);
    area_hide(&ours);
    assert_int_equal(area_open(&ours.place, &theirs), PARAMO_E_SYSTEM);
    area_close(&ours);
    area_close(&ours);
    area_close(&other);
}

static void what_is_no_area_is_refused(void **state)
{
    (void)state;
    struct area got = {0};
    uint32_t pid = (uint32_t)getpid();
    assert_int_equal(area_open(&(struct area_place){pid, 99999}, &got), PARAMO_E_SYSTEM);
    assert_int_equal(area_open(&(struct area_place){UINT32_MAX, 0}, &got), PARAMO_E_SYSTEM);
    int pipes[2];
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    assert_int_equal(area_open(&(struct area_place){pid, (uint32_t)pipes[0]}, &got), PARAMO_E_PROTOCOL);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    /* it could become shorter under us; it is shorter */
    for (int sealed = 0; sealed < 2; sealed++) {
        int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, AREA_HEAD_BYTES + (sealed ? 4096 : AREA_BYTES)), 0);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, sealed ? F_SEAL_SHRINK : F_SEAL_GROW), 0);
        assert_int_equal(area_open(&(struct area_place){pid, (uint32_t)fd}, &got), PARAMO_E_PROTOCOL);
        (void)close(fd);
    }
    assert_null(got.head);
}

static void copies_of_every_shape(void **state)
{
    (void)state;
    enum { BYTES = 1000 };
    uint8_t from[BYTES], *to = aligned_alloc(64, 1024);
    assert_non_null(to);
    for (unsigned i = 0; i < BYTES; i++)
        from[i] = (uint8_t)(i * 7 + i / 256);
    for (size_t at = 0; at < 70; at += 3) {
        for (size_t skip = 0; skip < 20; skip += 5) {
            for (size_t len = 0; len < 300; len += 1 + len / 8) {
                memset(to, 255, 1024);
                copy_away(to + at, from + skip, len);
                assert_memory_equal(to + at, from + skip, len);
                assert_int_equal(to[at + len], 255);
                assert_true(!at || to[at - 1] == 255);
            }
        }
    }
    free(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peer_reads_what_is_written),
        cmocka_unit_test(what_is_no_area_is_refused),
        cmocka_unit_test(copies_of_every_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
