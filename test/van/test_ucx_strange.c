/* The ucx van and peers that say what they should not: own frames out of place, invalid shared memory, and addresses
 * of a peer that has not proved to be of this host and user, which UCX must never see. */
#include <unistd.h>

#include "van/support_ucx.h"

static void ucx_open(struct env **env, struct van **van)
{
    *env = env_real();
    assert_int_equal(van_ucx_create(*env, &(struct van_config){.at_once = true}, van), PARAMO_OK);
}

const struct conf_van conf_van = {
    .open = ucx_open, .close = van_destroy, .listen_address = "127.0.0.1:0", .dead_address = "127.0.0.1:1"};

static const uint8_t garbage[200] = {0xff, 0xee, 0x03, 0x80, 0x77, 0x12, 0xff, 0xff, 0xff, 0xff, 0x7f};

static void is_broken(struct conf *c, unsigned lane, struct peer *peer)
{
    conf_wait(c->lane[lane], &peer->closed, 1);
    assert_int_equal(peer->why, PARAMO_E_PROTOCOL);
}

/* ---- tests --------------------------------------------------------------------------------------------- */

static void own_frames_out_of_place(void **state)
{
    (void)state;
    static const struct {
        uint8_t body[32];
        size_t len;
    } says[] = {
        {{SETUP_READY, 1, 2, 3, 4, 5, 6, 7, 8, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8}, 19}, /* READY first */
        {{SETUP_ACCEPT, 0, 0, 0}, 4},
        {{SETUP_LAST}, 1},
        {{SETUP_OFFER, SETUP_VERSION, 0, 0}, 4}, /* a short offer */
        {{0}, 0},
        {{77, 1}, 2}, /* no such kind */
        {{SETUP_OFFER, SETUP_VERSION, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 9},
         20}, /* a long one */
    };
    for (unsigned i = 0; i < sizeof says / sizeof says[0]; i++) {
        struct conf *c = conf_open();
        conf_listen(c);
        int fd = hand_connect(c->address);
        hand_own(fd, says[i].body, says[i].len);
        conf_wait(c->lane[1], &c->accepted, 1);
        is_broken(c, 1, &c->server[0]);
        (void)close(fd);
        conf_close(c);
    }
}

static void memory_that_is_none_is_declined(void **state)
{
    (void)state;
    uint8_t bytes[SETUP_BYTES_MAX + VAN_ALIGN];
    struct ucx_setup offer, answer;
    struct conf *c = conf_open();
    (void)close(hand_offered(c, &offer));
    conf_listen(c);
    offer.area = (struct area_place){(uint32_t)getpid(), 99999};
    int fd = hand_connect(c->address);
    hand_say(fd, &offer);
    answer = hand_hear(fd, bytes);
    assert_int_equal(answer.kind, SETUP_DECLINE);
    offer.version++; /* a later version's */
    int other = hand_connect(c->address);
    hand_say(other, &offer);
    answer = hand_hear(other, bytes);
    assert_int_equal(answer.kind, SETUP_DECLINE);
    (void)close(fd);
    (void)close(other);
    conf_close(c);
}

/* It knows host and user, as anybody may, but has not read our memory. */
static void an_accept_without_proof_is_refused(void **state)
{
    (void)state;
    struct ucx_setup offer;
    struct area area = {0};
    struct conf *c = conf_open();
    assert_int_equal(area_create(c->env, &area), PARAMO_OK);
    int fd = hand_offered(c, &offer);
    hand_say(fd, &(struct ucx_setup){.kind = SETUP_ACCEPT,
                                     .way = UCX_SHM,
                                     .area = area.place,
                                     .proof = 1,
                                     .address = garbage,
                                     .address_len = sizeof garbage});
    is_broken(c, 0, &c->client[0]);
    area_close(&area);
    (void)close(fd);
    conf_close(c);
}

static void a_ready_without_proof_is_refused(void **state)
{
    (void)state;
    uint8_t bytes[SETUP_BYTES_MAX + VAN_ALIGN];
    struct ucx_setup offer, answer;
    struct area area = {0};
    struct conf *c = conf_open();
    assert_int_equal(area_create(c->env, &area), PARAMO_OK);
    (void)close(hand_offered(c, &offer));
    conf_listen(c);
    offer.area = area.place;
    int fd = hand_connect(c->address);
    hand_say(fd, &offer);
    answer = hand_hear(fd, bytes);
    assert_int_equal(answer.kind, SETUP_ACCEPT);
    assert_true(answer.proof == area_proof(&area)); /* it has read ours */
    hand_say(fd, &(struct ucx_setup){
                     .kind = SETUP_READY, .proof = 1, .address = garbage, .address_len = sizeof garbage});
    is_broken(c, 1, &c->server[0]);
    area_close(&area);
    (void)close(fd);
    conf_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_frames_out_of_place),
        cmocka_unit_test(memory_that_is_none_is_declined),
        cmocka_unit_test(an_accept_without_proof_is_refused),
        cmocka_unit_test(a_ready_without_proof_is_refused),
    };
    return ucx_is_here() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
