#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "post/store.h"

/*
 * dir/lock: held while a scheduler runs. dir/state, replaced as a whole (fs_replace):
 *
 *   0 "PARAMOST" | 8 u32 format 1 | 12 u32 term | 16 u64 job | 24 u64 number | 32 u64 bytes | 40 view |
 *   u64 XXH3 of all before
 */
static const char magic[8] = "PARAMOST";
enum { FORMAT = 1, HEAD = 40, SUM = 8 };

enum store_phase { STORE_OPEN, STORE_STARTING, STORE_READY };

struct store {
    struct store_config config;
    char *dir;
    enum store_phase phase; /* the lane's */
    bool closed;
    unsigned pending; /* chores under way */
    struct fs_file *lock;
    uint32_t term; /* written by the chore of a start, read by later chores: they follow each other */
    uint64_t job;
};

/* A start or a save. */
struct store_chore {
    struct chore chore;
    struct store *store;
    uint64_t number;
    struct writer view; /* the bytes to save, or those that were found (with head and sum) */
    paramo_err status;
    char text[ERR_TEXT_MAX];
    void *arg;
    void (*started)(void *arg, paramo_err status, const struct store_state *state);
    void (*saved)(void *arg, paramo_err status);
};

/* ---- the file, off the lane ---------------------------------------------------------------------------- */

static paramo_err state_write(struct store *s, uint32_t term, uint64_t number, const void *view, size_t bytes)
{
    struct writer w = {0};
    write_bytes(&w, magic, sizeof magic);
    write_u32(&w, FORMAT);
    write_u32(&w, term);
    write_u64(&w, s->job);
    write_u64(&w, number);
    write_u64(&w, bytes);
    if (bytes)
        write_bytes(&w, view, bytes);
    if (!w.failed)
        write_u64(&w, hash_bytes(w.data, w.len));
    paramo_err err = w.failed ? err_memory(bytes) : fs_replace(s->config.fs, s->dir, "state", w.data, w.len);
    writer_fini(&w);
    return err;
}

/* Checks a whole file; its parts. */
static paramo_err state_check(const char *path, const struct writer *file, struct store_state *state)
{
    struct reader r = reader_over(file->data, file->len);
    const uint8_t *begin = read_span(&r, sizeof magic);
    if (!begin || memcmp(begin, magic, sizeof magic) != 0)
        return err_set(PARAMO_E_FORMAT, "%s: not the state of a scheduler", path);
    uint32_t format = read_u32(&r);
    if (!r.failed && format != FORMAT)
        return err_set(PARAMO_E_FORMAT, "%s: of format %" PRIu32 "; this program reads %d", path, format,
                       FORMAT);
    state->term = read_u32(&r);
    state->job = read_u64(&r);
    state->number = read_u64(&r);
    uint64_t bytes = read_u64(&r);
    if (r.failed || r.left < SUM || bytes != r.left - SUM)
        return err_set(PARAMO_E_CORRUPT, "%s: it has %zu bytes, which do not fit its head", path, file->len);
    state->view_bytes = (size_t)bytes;
    state->view = read_span(&r, state->view_bytes);
    if (read_u64(&r) != hash_bytes(file->data, file->len - SUM))
        return err_set(PARAMO_E_CORRUPT, "%s: damaged: its checksum is wrong", path);
    if (!state->term || !state->job)
        return err_set(PARAMO_E_CORRUPT, "%s: its term or job is 0", path);
    return PARAMO_OK;
}

static paramo_err store_read(struct store_chore *c)
{
    struct store *s = c->store;
    char path[FS_PATH_MAX];
    struct store_state state = {0};
    paramo_err err = fs_join(s->dir, "lock", path);
    if (!err)
        err = fs_open(s->config.fs, path, FS_LOCK, &s->lock);
    if (err == PARAMO_E_REFUSED)
        return err_set(err, "%s belongs to a scheduler that runs", s->dir);
    if (!err)
        err = fs_join(s->dir, "state", path);
    if (err)
        return err;
    err = fs_load(s->config.fs, path, STORE_BYTES_MAX + HEAD + SUM, &c->view);
    if (!err)
        err = state_check(path, &c->view, &state);
    else if (err == PARAMO_E_NOT_FOUND)
        err = PARAMO_OK;
    if (!err && state.term == UINT32_MAX)
        err = err_set(PARAMO_E_FORMAT, "%s: its terms are used up", path);
    if (err)
        return err;
    s->term = state.term + 1;
    if (state.job)
        s->job = state.job;
    return state_write(s, s->term, state.number, state.view, state.view_bytes);
}

static void start_work(struct chore *chore)
{
    struct store_chore *c = container_of(chore, struct store_chore, chore);
    struct store *s = c->store;
    paramo_err err = fs_keep_dir(s->config.fs, s->dir);
    if (!err)
        err = store_read(c);
    if (err) {
        err_text_copy(c->text);
        fs_close(s->lock);
        s->lock = NULL;
    }
    c->status = err;
}

static void save_work(struct chore *chore)
{
    struct store_chore *c = container_of(chore, struct store_chore, chore);
    c->status = state_write(c->store, c->store->term, c->number, c->view.data, c->view.len);
    if (c->status)
        err_text_copy(c->text);
}

/* ---- on the lane --------------------------------------------------------------------------------------- */

static void store_free(struct store *s)
{
    fs_close(s->lock);
    free(s->dir);
    free(s);
}

/* The chore's status with its message; false: nobody wants to know any more. */
static bool chore_over(struct store_chore *c)
{
    struct store *s = c->store;
    bool wanted = !s->closed;
    s->pending--;
    if (wanted && c->status)
        (void)err_set(c->status, "%s", c->text);
    if (!wanted && !s->pending)
        store_free(s);
    return wanted;
}

static void chore_free(struct store_chore *c)
{
    writer_fini(&c->view);
    free(c);
}

static void start_done(struct chore *chore)
{
    struct store_chore *c = container_of(chore, struct store_chore, chore);
    struct store *s = c->store;
    bool closed = s->closed;
    if (!closed)
        s->phase = c->status ? STORE_OPEN : STORE_READY;
    struct store_state state = {.term = s->term, .job = s->job};
    if (!c->status && c->view.len) {
        struct store_state found = {0};
        /* It was checked before: this only finds the parts again. */
        if (state_check(s->dir, &c->view, &found) == PARAMO_OK) {
            state.number = found.number;
            state.view = found.view;
            state.view_bytes = found.view_bytes;
        }
    }
    if (chore_over(c))
        c->started(c->arg, c->status, c->status ? NULL : &state);
    chore_free(c);
}

static void save_done(struct chore *chore)
{
    struct store_chore *c = container_of(chore, struct store_chore, chore);
    if (chore_over(c))
        c->saved(c->arg, c->status);
    chore_free(c);
}

static struct store_chore *chore_new(struct store *s, void (*work)(struct chore *),
                                     void (*done)(struct chore *), void *arg)
{
    struct store_chore *c = calloc(1, sizeof *c);
    if (c)
        *c = (struct store_chore){
            .chore = {.lane = s->config.lane, .work = work, .done = done}, .store = s, .arg = arg};
    return c;
}

static void store_post(struct store *s, struct store_chore *c)
{
    s->pending++;
    chores_post(s->config.chores, &c->chore);
}

paramo_err store_dir_open(const struct store_config *config, struct store **out)
{
    struct store *s = calloc(1, sizeof *s);
    char *dir = strdup(config->dir);
    if (!s || !dir) {
        free(s);
        free(dir);
        return err_memory(sizeof *s);
    }
    for (size_t len = strlen(dir); len > 1 && dir[len - 1] == '/'; len--)
        dir[len - 1] = '\0';
    s->config = *config;
    s->config.dir = NULL;
    s->dir = dir;
    *out = s;
    return PARAMO_OK;
}

paramo_err store_start(struct store *s, uint64_t job,
                       void (*done)(void *arg, paramo_err status, const struct store_state *state), void *arg)
{
    assert(s->phase == STORE_OPEN && job);
    struct store_chore *c = chore_new(s, start_work, start_done, arg);
    if (!c)
        return err_memory(sizeof *c);
    c->started = done;
    s->job = job;
    s->phase = STORE_STARTING;
    store_post(s, c);
    return PARAMO_OK;
}

paramo_err store_save(struct store *s, uint64_t number, const void *view, size_t bytes,
                      void (*done)(void *arg, paramo_err status), void *arg)
{
    assert(s->phase == STORE_READY);
    if (bytes > STORE_BYTES_MAX)
        return err_set(PARAMO_E_TOO_LARGE, "a view of %zu bytes", bytes);
    struct store_chore *c = chore_new(s, save_work, save_done, arg);
    if (c)
        write_bytes(&c->view, view, bytes);
    if (!c || c->view.failed) {
        if (c)
            chore_free(c);
        return err_memory(bytes);
    }
    c->number = number;
    c->saved = done;
    store_post(s, c);
    return PARAMO_OK;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    s->closed = true;
    if (!s->pending)
        store_free(s);
}
