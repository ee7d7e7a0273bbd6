#include "cluster/scheduler/sched.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cluster/session/address.h"
#include "wire/end.h"

enum {
    HEARTBEAT_MS = 1000,
    HEARTBEAT_TIMEOUT_MS = 10000,
    REJOIN_MS = 300,
    END_WAIT_MS = 5000,
    UNSURE_MS =
        25000, /* how long the end waits for a store that may be another's by now: a node stops within 30 s */
    TRY_AGAIN_MS = 200,
    REGISTER_SECONDS = 10,
    FRAME_BYTES = 64 << 20,
    MIGRATION_KIB_PER_S = 64 << 10,
    PEERS_SPARE = 256 /* connections beyond two for each node */
};

/* ---- control connections ---------------------------------------------------------------------------------
 */

void sched_peer_close(struct peer *peer, bool flush)
{
    struct scheduler *s = peer->sched;
    lane_timer_cancel(s->config.lane, &peer->timer);
    if (peer->node)
        peer->node->peer = NULL;
    van_close(peer->conn, flush);
    *(peer->prev ? &peer->prev->next : &s->peers) = peer->next;
    if (peer->next)
        peer->next->prev = peer->prev;
    s->peers_count--;
    free(peer);
}

/* A busy lane that does nothing for long is reported once: its node is alive, and something in it is not. */
static void note_progress(struct sched_node *node, const struct heartbeat *beat)
{
    struct scheduler *s = node->sched;
    uint64_t now = lane_now(s->config.lane);
    if (beat->lanes != node->lanes_count) {
        struct lane_progress *lanes = realloc(node->lanes, (beat->lanes + 1) * sizeof *lanes);
        if (!lanes)
            return;
        node->lanes = lanes;
        node->lanes_count = beat->lanes;
        for (uint32_t i = 0; i < beat->lanes; i++)
            lanes[i] = (struct lane_progress){.steps = beat->lane[i].steps, .progressed_at = now};
    }
    for (uint32_t i = 0; i < beat->lanes; i++) {
        struct lane_progress *lane = &node->lanes[i];
        if (!beat->lane[i].busy || beat->lane[i].steps != lane->steps) {
            *lane = (struct lane_progress){.steps = beat->lane[i].steps, .progressed_at = now};
        } else if (!lane->reported && now - lane->progressed_at > s->config.heartbeat_timeout_ms * ENV_MS) {
            char label[SCHED_LABEL];
            lane->reported = true;
            log_warn("scheduler: %s lives, but its lane %" PRIu32 " has work and has done none for %" PRIu32
                     " ms",
                     node_label(node, label), i, s->config.heartbeat_timeout_ms);
        }
    }
}

/* Answers, and repeats what the node should have heard by now: a van loses nothing, but a full queue may
 * have. */
static paramo_err got_heartbeat(struct peer *peer, const struct wire_head *head, struct reader *body)
{
    struct scheduler *s = peer->sched;
    struct sched_node *node = peer->node;
    struct heartbeat beat;
    paramo_err err = heartbeat_decode(body, &beat);
    if (err || !node)
        return err;
    err = calls_floor(node, head->floor);
    if (err)
        return err;
    note_progress(node, &beat);
    struct wire_head answer = {.kind = WIRE_HEARTBEAT, .view = s->announced};
    if (peer_send(peer, &answer, NULL, 0))
        return PARAMO_OK; /* the queue is full: the node will hear from us by what is in it */
    uint64_t now = lane_now(s->config.lane);
    if (s->state == SCHED_RUNNING && node->info.id && head->view < s->announced &&
        now - node->view_sent_at >= s->config.heartbeat_ms * ENV_MS)
        sched_view_send(node);
    orders_send(node, s->config.heartbeat_ms * ENV_MS);
    if (s->end_told && node->state == SNODE_JOINED)
        sched_send_end(node, s->end_status, s->end_text);
    return PARAMO_OK;
}

static paramo_err peer_frame(void *user, struct van_conn *conn, const uint8_t bytes[VAN_HEAD],
                             const struct van_seg *seg, unsigned nseg)
{
    struct peer *peer = user;
    struct wire_head head;
    struct reader body;
    (void)conn;
    paramo_err err = control_message_open(bytes, seg, nseg, &head, &body);
    if (err)
        return err;
    if (peer->node)
        peer->node->heard_at = lane_now(peer->sched->config.lane);
    if (head.kind == WIRE_HEARTBEAT)
        return got_heartbeat(peer, &head, &body);
    if (head.kind == WIRE_HELLO)
        return PARAMO_OK; /* a second copy of the first */
    if (head.kind != WIRE_CALL)
        return err_set(PARAMO_E_PROTOCOL, "%s to a scheduler", wire_kind_name(head.kind));
    if (head.table == CALL_REGISTER) {
        roster_register(peer->sched, peer, head.view, &body);
        return PARAMO_OK;
    }
    if (head.table == CALL_ADMIN_VIEW)
        return sched_view_admin_query(peer, &head, &body);
    if (!peer->node && head.table == CALL_STATUS)
        return sched_status_admin_query(peer, &head, &body);
    if (!peer->node && (head.table == CALL_CKPT_SAVE || head.table == CALL_CKPT_LOAD))
        return sched_ckpt_admin_query(peer, &head, &body);
    if (!peer->node && head.table == CALL_DRAIN)
        return sched_drain_admin_query(peer, &head, &body);
    if (!peer->node)
        return err_set(PARAMO_E_PROTOCOL, "%s before REGISTER", call_kind_name(head.table));
    return calls_received(peer->node, &head, &body);
}

static void peer_writable(void *user, struct van_conn *conn)
{
    struct peer *peer = user;
    (void)conn;
    if (peer->node && peer->node->view_due)
        sched_view_send(peer->node);
}

static void peer_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    struct peer *peer = user;
    struct sched_node *node = peer->node;
    log_info("scheduler: the connection of %s was lost: %s (%s)", conn->peer, text, err_name(why));
    sched_peer_close(peer, false);
    if (node)
        roster_connection_lost(node);
}

static const struct van_user peer_user = {
    .frame = peer_frame, .writable = peer_writable, .closed = peer_closed};

static void peer_mute(struct lane_timer *timer)
{
    sched_peer_close(container_of(timer, struct peer, timer), false);
}

static void peer_comes(void *arg, struct van_conn *conn, const struct hello *hello)
{
    struct scheduler *s = arg;
    if (hello->purpose == HELLO_DATA) {
        s->config.accept_data(s->config.arg, conn, hello);
        return;
    }
    uint32_t most = 2 * (s->slots[SLOTS_SERVERS].count + s->slots[SLOTS_WORKERS].count) + PEERS_SPARE;
    struct peer *peer = s->peers_count < most ? calloc(1, sizeof *peer) : NULL;
    if (!peer) {
        acceptor_reject(conn, PARAMO_E_FULL, "the scheduler has as many connections as it takes");
        return;
    }
    peer->sched = s;
    peer->conn = conn;
    peer->incarnation = hello->incarnation;
    peer->timer.fire = peer_mute;
    van_set_user(conn, &peer_user, peer);
    peer->next = s->peers;
    if (s->peers)
        s->peers->prev = peer;
    s->peers = peer;
    s->peers_count++;
    struct lane *lane = s->config.lane;
    if (lane_timer_arm(lane, &peer->timer, lane_now(lane) + REGISTER_SECONDS * ENV_SEC) ||
        acceptor_welcome(conn, s->job, s->incarnation))
        sched_peer_close(peer, false);
}

/* ---- the end of the job -----------------------------------------------------------------------------------
 */

void sched_send_end(struct sched_node *node, paramo_err status, const char *text)
{
    if (!node->peer)
        return;
    struct wire_head head = {.kind = WIRE_END};
    struct writer w = {0};
    end_encode(status, text, &w);
    paramo_err err = control_message_send_written(node->peer->conn, &head, &w);
    if (err)
        log_debug("scheduler: END waits: %s", err_text()); /* a heartbeat brings it */
}

void sched_deposed(struct scheduler *s)
{
    if (s->state == SCHED_OVER)
        return;
    char text[CALL_TEXT_MAX];
    snprintf(text, sizeof text, "%s", err_text());
    log_info("scheduler: %s", text);
    s->state = SCHED_OVER;
    s->end_status = PARAMO_E_FENCED;
    snprintf(s->end_text, sizeof s->end_text, "%s", text);
    struct lane *lane = s->config.lane;
    lane_timer_cancel(lane, &s->tick);
    lane_timer_cancel(lane, &s->end_timer);
    acceptor_close(s->acceptor);
    s->acceptor = NULL;
    for (struct peer *peer = s->peers, *next; peer; peer = next) {
        next = peer->next;
        struct sched_node *node = peer->node;
        if (node && node->info.role == PARAMO_ROLE_SCHEDULER)
            sched_send_end(node, s->end_status, s->end_text); /* this process's own ends with it */
        else
            sched_peer_close(peer, false); /* the others find who leads */
    }
    s->config.over(s->config.arg, s->end_status, s->end_text);
}

static bool anyone_left(const struct scheduler *s)
{
    size_t cursor = 0;
    for (const struct sched_node *node; (node = roster_next(s, &cursor));)
        if (node->info.role != PARAMO_ROLE_SCHEDULER &&
            (node->state == SNODE_JOINED || node->state == SNODE_ABSENT))
            return true;
    return false;
}

static void report_over(struct scheduler *s)
{
    s->config.over(s->config.arg, s->end_status, s->end_text);
}

static void over_in(struct scheduler *s, uint64_t ms);
static void end_if_all_gone(struct scheduler *s, bool waited);

static void end_due(struct lane_timer *timer)
{
    struct scheduler *s = container_of(timer, struct scheduler, end_timer);
    if (s->awaits_worker) {
        s->awaits_worker = false;
        end_if_all_gone(s, true);
        return;
    }
    uint64_t now = lane_now(s->config.lane);
    bool sure = !s->config.store || store_sure(s->config.store);
    if (!s->end_told && !sure && now < s->ending_since + UNSURE_MS * ENV_MS) {
        over_in(s, TRY_AGAIN_MS); /* the job may go on under another scheduler */
        return;
    }
    if (sure)
        sched_end_told(s); /* a disk that cannot take it keeps nobody waiting for longer */
    s->state = SCHED_OVER;
    if (s->config.store)
        sched_save_nothing(s, report_over);
    else
        report_over(s);
}

static void over_in(struct scheduler *s, uint64_t ms)
{
    if (lane_timer_arm(s->config.lane, &s->end_timer, lane_now(s->config.lane) + ms * ENV_MS))
        end_due(&s->end_timer);
}

void sched_end(struct scheduler *s, paramo_err status, const char *text)
{
    if (s->state == SCHED_ENDING || s->state == SCHED_OVER)
        return;
    s->awaits_worker = false;
    s->state = SCHED_ENDING;
    s->ending_since = lane_now(s->config.lane);
    s->end_status = status;
    snprintf(s->end_text, sizeof s->end_text, "%s", text);
    log_info("scheduler: the job ends: %s%s%s; values still kept: %zu", err_name(status), text[0] ? ": " : "",
             text, s->kv_count);
    char why[CALL_TEXT_MAX + 32];
    snprintf(why, sizeof why, "the job is over%s%s", text[0] ? ": " : "", text);
    roster_refuse_waiting(s, PARAMO_E_SHUTDOWN, why);
    size_t cursor = 0;
    for (struct sched_node *node; (node = roster_next(s, &cursor));)
        calls_drop(node, true);
    if (s->config.store)
        sched_save_end(s);
    else
        sched_end_told(s);
    over_in(s, anyone_left(s) ? s->config.end_wait_ms : 0);
}

void sched_worker_came(struct scheduler *s)
{
    if (!s->awaits_worker)
        return;
    s->awaits_worker = false;
    lane_timer_cancel(s->config.lane, &s->end_timer);
}

void sched_end_told(struct scheduler *s)
{
    size_t cursor = 0;
    for (struct sched_node *node; !s->end_told && (node = roster_next(s, &cursor));)
        sched_send_end(node, s->end_status, s->end_text);
    s->end_told = true;
}

void sched_end_write(const struct scheduler *s, struct writer *w)
{
    end_encode(s->end_status, s->end_text, w);
}

paramo_err sched_end_restore(struct scheduler *s, struct reader *record)
{
    paramo_err err = end_decode(record, &s->end_status, s->end_text);
    s->end_told = s->saves.end_saved = !err;
    return err;
}

/* waited: for a worker that would come in a dead one's place, in vain. */
static void end_if_all_gone(struct scheduler *s, bool waited)
{
    const struct slot_list *workers = &s->slots[SLOTS_WORKERS];
    if (!workers->count || workers->gone < workers->count)
        return;
    char names[CALL_TEXT_MAX];
    uint32_t needed = s->chains.replicas || sched_lost_restores(s) /* others have what a server had */
                          ? PARAMO_GROUP_WORKERS
                          : PARAMO_GROUP_ALL;
    bool recovers = s->config.recovery_ms && !waited &&
                    roster_gone(s, PARAMO_GROUP_WORKERS, false, names, sizeof names) > 0 &&
                    !roster_gone(s, needed & ~PARAMO_GROUP_WORKERS, false, names, sizeof names);
    bool lost = roster_gone(s, needed, false, names, sizeof names) > 0;
    if (recovers) {
        if (!s->awaits_worker)
            log_warn("scheduler: no worker is left (%s); the job waits %" PRIu32
                     " ms for one that takes the place of one that died",
                     names, s->config.recovery_ms);
        s->awaits_worker = true;
        over_in(s, s->config.recovery_ms);
        return;
    }
    sched_end(s, lost ? PARAMO_E_NODE_LOST : PARAMO_OK, names);
}

void sched_node_gone(struct sched_node *node)
{
    struct scheduler *s = node->sched;
    sched_status_gone(node);
    if (s->state == SCHED_ENDING && !anyone_left(s))
        over_in(s, 0);
    if (s->state != SCHED_RUNNING)
        return;
    sched_barrier_node_gone(node);
    sched_pool_node_gone(node);
    end_if_all_gone(s, false);
}

/* ---- life
 * --------------------------------------------------------------------------------------------------- */

static void tick(struct lane_timer *timer)
{
    struct scheduler *s = container_of(timer, struct scheduler, tick);
    uint64_t now = lane_now(s->config.lane), period = s->config.heartbeat_ms * ENV_MS;
    uint64_t passed = now - s->ticked_at;
    s->ticked_at = now;
    paramo_err err = lane_timer_arm(s->config.lane, timer, now + period);
    if (err)
        log_error("scheduler: the clock cannot be set: %s", err_text());
    if (passed > 2 * period) {
        /* This process was stopped: what was silent meanwhile may wait in its sockets. */
        log_warn("scheduler: stood still for %" PRIu64 " ms", passed / ENV_MS);
        uint64_t grace = passed - period;
        size_t cursor = 0;
        for (struct sched_node *node; (node = roster_next(s, &cursor));)
            node->heard_at += grace;
        for (struct sched_node *node = s->waiting_first; node; node = node->next) {
            node->heard_at += grace;
            node->arrived_at += grace; /* the death that gives it a place may be news that waits, too */
        }
        return;
    }
    roster_check_silence(s);
    sched_save_proof(s);
}

static paramo_err slots_create(struct scheduler *s)
{
    const struct scheduler_config *c = &s->config;
    s->slots[SLOTS_SCHEDULER] =
        (struct slot_list){.role = PARAMO_ROLE_SCHEDULER, .count = c->own_member ? 1 : 0};
    s->slots[SLOTS_SERVERS] = (struct slot_list){.role = PARAMO_ROLE_SERVER, .count = c->num_servers};
    s->slots[SLOTS_WORKERS] = (struct slot_list){.role = PARAMO_ROLE_WORKER, .count = c->num_workers};
    if (c->num_servers >= VIEW_NODES_MAX || c->num_workers >= VIEW_NODES_MAX - c->num_servers)
        return err_set(PARAMO_E_TOO_LARGE, "a cluster has at most %d nodes", VIEW_NODES_MAX);
    for (size_t i = 0; i < SLOTS; i++) {
        s->slots[i].founders = s->slots[i].count;
        s->slots[i].node = calloc(s->slots[i].count + 1, sizeof(struct sched_node *));
        if (!s->slots[i].node)
            return err_memory(s->slots[i].count * sizeof(struct sched_node *));
    }
    return PARAMO_OK;
}

/* As sched_ckpt.c compares them. */
static paramo_err folders_normal(struct scheduler_config *c)
{
    char *const dirs[] = {c->checkpoint_dir, c->restore_dir};
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        char normal[FS_PATH_MAX];
        if (!dirs[i][0])
            continue;
        paramo_err err = ckpt_dir_normal(dirs[i], normal);
        if (err)
            return err;
        memcpy(dirs[i], normal, sizeof normal);
    }
    return PARAMO_OK;
}

static uint64_t random_not_zero(struct env *env)
{
    uint64_t number;
    do {
        number = env_random(env);
    } while (!number);
    return number;
}

/* Goes on where the scheduler before has stopped: its nodes are there, though none has been heard yet. */
static paramo_err restore(struct scheduler *s)
{
    paramo_err err = sched_save_restore(s);
    if (err || !s->slots[SLOTS_WORKERS].count || !s->slots[SLOTS_WORKERS].node[0])
        return err;
    s->state = SCHED_RUNNING;
    sched_view_change(s); /* what is saved whole has it, though the job ends: without a view nothing counts */
    s->state = s->end_told ? SCHED_ENDING : SCHED_RUNNING;
    log_info("scheduler: goes on with a job, in term %" PRIu32 ", after view %" PRIx64, s->term,
             s->view_number);
    if (s->end_told)
        over_in(s, anyone_left(s) ? s->config.end_wait_ms : 0);
    else
        end_if_all_gone(s, false);
    sched_migrations_retarget(s); /* of moves that went on only its last view says anything */
    sched_lost_check(
        s); /* the one before may have died between its last view and the end that was to follow */
    return s->state == SCHED_RUNNING ? sched_ckpt_start(s) : PARAMO_OK;
}

paramo_err scheduler_create(const struct scheduler_config *config, struct scheduler **out)
{
    struct scheduler *s = calloc(1, sizeof *s);
    if (!s)
        return err_memory(sizeof *s);
    struct scheduler_config *c = &s->config;
    *c = *config;
    c->heartbeat_ms = c->heartbeat_ms ? c->heartbeat_ms : HEARTBEAT_MS;
    c->heartbeat_timeout_ms = c->heartbeat_timeout_ms ? c->heartbeat_timeout_ms : HEARTBEAT_TIMEOUT_MS;
    c->rejoin_ms = c->rejoin_ms ? c->rejoin_ms : REJOIN_MS;
    c->end_wait_ms = c->end_wait_ms ? c->end_wait_ms : END_WAIT_MS;
    c->migration_kib_per_s = c->migration_kib_per_s ? c->migration_kib_per_s : MIGRATION_KIB_PER_S;
    c->frame_bytes = c->frame_bytes ? c->frame_bytes : FRAME_BYTES;
    s->job = random_not_zero(lane_env(c->lane));
    s->incarnation = random_not_zero(lane_env(c->lane));
    s->term = c->store ? c->found->term : 1;
    s->view_number = (uint64_t)s->term << 32;
    s->tick.fire = tick;
    s->end_timer.fire = end_due;
    s->ticked_at = lane_now(c->lane);
    struct acceptor_config acceptor = {.van = c->van,
                                       .lane = c->lane,
                                       .address = c->address,
                                       .token = c->token,
                                       .purposes = ACCEPTOR_PURPOSE_CONTROL |
                                                   (c->accept_data ? (unsigned)ACCEPTOR_PURPOSE_DATA : 0),
                                       .frame_bytes = c->frame_bytes,
                                       .accept = peer_comes,
                                       .arg = s};
    paramo_err err = slots_create(s);
    if (!err)
        err = folders_normal(c);
    if (!err && c->store)
        err = restore(s);
    if (!err)
        err = acceptor_open(&acceptor, &s->acceptor);
    c->address = c->token = NULL; /* the acceptor has them */
    if (!err)
        err = lane_timer_arm(c->lane, &s->tick, s->ticked_at + c->heartbeat_ms * ENV_MS);
    if (err) {
        c->store = NULL; /* the caller's */
        scheduler_destroy(s);
        return err;
    }
    c->found = NULL;
    acceptor_set_job(s->acceptor, s->job);
    s->self = (struct view_node){.id = PARAMO_ID_SCHEDULER,
                                 .role = PARAMO_ROLE_SCHEDULER,
                                 .incarnation = s->incarnation,
                                 .alive = true};
    if (address_split(acceptor_address(s->acceptor), s->self.host, sizeof s->self.host, &s->self.port))
        s->self.host[0] = '\0'; /* an address of a van that has no ports: nobody needs it from the view */
    *out = s;
    return PARAMO_OK;
}

uint64_t scheduler_incarnation(const struct scheduler *s)
{
    return s->incarnation;
}

const char *scheduler_address(const struct scheduler *s)
{
    return acceptor_address(s->acceptor);
}

void scheduler_end(struct scheduler *s, paramo_err status, const char *text)
{
    sched_end(s, status, text);
}

void scheduler_destroy(struct scheduler *s)
{
    if (!s)
        return;
    lane_timer_cancel(s->config.lane, &s->tick);
    lane_timer_cancel(s->config.lane, &s->end_timer);
    sched_save_fini(s); /* first: from here on nothing is saved */
    sched_ckpt_fini(s);
    sched_status_fini(s);
    while (s->peers)
        sched_peer_close(s->peers, true);
    sched_view_fini(s);
    sched_ring_fini(s);
    sched_migrations_fini(s);
    roster_fini(s);
    sched_barrier_fini(s);
    sched_pool_fini(s);
    sched_kv_fini(s);
    acceptor_close(s->acceptor);
    free(s);
}
