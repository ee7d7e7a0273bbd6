#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/sm.h"
#include "cluster/meta/store_dir.h"

/*
 * dir/lock: held while a scheduler runs. dir/state, replaced as a whole (fs_replace):
 *
 *   0 "PARAMOST" | 8 u32 format 1 | 12 u32 term | 16 u64 generation | 24 u64 bytes |
 *   32 durable records | u64 XXH3 of all before
 *
 * dir/log.G, where G is the generation of the state it follows: one entry for each later save, appended and
 * synced:
 *
 *   0 "PARAMORE" | 8 u64 generation | 16 u64 number, from 1 | 24 u64 bytes |
 *   32 durable records | u64 XXH3 of all before
 *
 * A crash may leave a partial last entry. Nothing was told about it, so it ends the log. If a whole entry
 * follows it, it was damaged later, and the log is refused. After a failed write or sync a log gets no more
 * entries: the next save must be a whole one, which begins a new log.
 */
static const char state_magic[8] = "PARAMOST", entry_magic[8] = "PARAMORE";
enum { FORMAT = 1, HEAD = 32, SUM = 8 };
/* The most that a log may hold; saves are whole again long before. A start writes state and log as one
 * file. */
#define LOG_MAX   ((size_t)STORE_BYTES_MAX * 4)
#define STATE_MAX (STORE_BYTES_MAX + LOG_MAX)

struct dir_store {
    struct store store;
    struct store_dir_config config;
    char *dir;
    enum store_phase phase; /* the lane's */
    bool closed;
    unsigned pending; /* blocking jobs in progress */
    struct fs_file *lock;
    /* Used by the blocking jobs only, which run one after the other. */
    uint32_t term;
    uint64_t generation, entries; /* of the state; in its log */
    struct fs_file *log;          /* NULL: not begun */
    bool broken;                  /* a save has failed: only a whole one is accepted */
};

/* A start or a save. */
struct store_blocking_job {
    struct blocking_job blocking_job;
    struct dir_store *store;
    struct writer records; /* to save, or those that were found */
    bool whole;
    paramo_err status;
    char text[ERR_TEXT_MAX];
    void *arg;
    store_started_fn *started;
    store_saved_fn *saved;
};

/* On the lane. A start is one job, and nothing is saved before it has succeeded. */
static void store_check(const struct dir_store *s)
{
    assert(s->phase != STORE_OPEN || !s->pending);
    assert(s->phase != STORE_STARTING || s->pending <= 1);
}

/* Off the lane. The lock guards the files. An entry is in a log that has begun, unless a save has failed. */
static void files_check(const struct dir_store *s)
{
    assert(s->lock && s->term);
    assert(s->broken || !s->log == !s->entries);
    assert(!s->log || s->generation);
}

/* ---- the files, off the lane -------------------------------------------------------------------------- */

static void sum_write(struct writer *w)
{
    if (!w->failed)
        write_u64(w, hash_bytes(w->data, w->len));
}

static void log_name(uint64_t generation, char name[32])
{
    (void)snprintf(name, 32, "log.%" PRIu64, generation);
}

/* Removes a log whose state is gone. If it stays, it does no harm. */
static void log_forget(struct dir_store *s, uint64_t generation)
{
    char name[32], path[FS_PATH_MAX];
    assert(generation < s->generation && !s->broken);
    log_name(generation, name);
    if (fs_join(s->dir, name, path) == PARAMO_OK && fs_unlink(s->config.fs, path) == PARAMO_OK)
        log_debug("store: removed %s, which is no longer needed", path);
}

/* Each attempt has its own generation, since a failed one may have left files. */
static paramo_err state_write(struct dir_store *s, const struct writer *records)
{
    struct writer w = {0};
    files_check(s);
    fs_close(s->log);
    s->log = NULL;
    s->entries = 0;
    s->broken = true;
    uint64_t before = s->generation++;
    write_bytes(&w, state_magic, sizeof state_magic);
    write_u32(&w, FORMAT);
    write_u32(&w, s->term);
    write_u64(&w, s->generation);
    write_u64(&w, records->len);
    if (records->len)
        write_bytes(&w, records->data, records->len);
    sum_write(&w);
    paramo_err err =
        w.failed ? err_memory(records->len) : fs_replace(s->config.fs, s->dir, "state", w.data, w.len);
    writer_fini(&w);
    if (err)
        return err;
    s->broken = false;
    assert(!s->log && !s->entries); /* the next entry is the first of its log */
    log_forget(s, before);
    if (before)
        log_forget(s, before - 1); /* left by a crash in between */
    return PARAMO_OK;
}

static paramo_err log_begin(struct dir_store *s)
{
    assert(!s->log && s->generation && !s->entries);
    char name[32], path[FS_PATH_MAX];
    log_name(s->generation, name);
    paramo_err err = fs_join(s->dir, name, path);
    if (!err)
        err = fs_open(s->config.fs, path, FS_CREATE, &s->log);
    if (!err)
        err = fs_sync_dir(s->config.fs, s->dir);
    return err;
}

static paramo_err entry_write(struct dir_store *s, const struct writer *records)
{
    struct writer w = {0};
    if (s->broken)
        return err_set(PARAMO_E_IO, "%s: an earlier save failed; the next save must contain the whole state",
                       s->dir);
    files_check(s);
    paramo_err err = s->log ? PARAMO_OK : log_begin(s);
    write_bytes(&w, entry_magic, sizeof entry_magic);
    write_u64(&w, s->generation);
    write_u64(&w, s->entries + 1);
    write_u64(&w, records->len);
    if (records->len)
        write_bytes(&w, records->data, records->len);
    sum_write(&w);
    if (!err && w.failed)
        err = err_memory(records->len);
    if (!err)
        err = fs_write_all(s->log, w.data, w.len);
    if (!err)
        err = fs_sync(s->log);
    writer_fini(&w);
    s->entries++;
    assert(err || s->log);
    s->broken = err != PARAMO_OK;
    files_check(s);
    return err;
}

/* Checks a whole file and returns its parts. */
static paramo_err state_check(const char *path, const struct writer *file, uint32_t *term,
                              uint64_t *generation, struct reader *records)
{
    struct reader r = reader_over(file->data, file->len);
    const uint8_t *begin = read_span(&r, sizeof state_magic);
    if (!begin || memcmp(begin, state_magic, sizeof state_magic) != 0)
        return err_set(PARAMO_E_FORMAT, "%s: not the state of a scheduler", path);
    uint32_t format = read_u32(&r);
    if (!r.failed && format != FORMAT)
        return err_set(PARAMO_E_FORMAT, "%s: has format %" PRIu32 "; this program reads format %d", path,
                       format, FORMAT);
    *term = read_u32(&r);
    *generation = read_u64(&r);
    uint64_t bytes = read_u64(&r);
    if (r.failed || r.left < SUM || bytes != r.left - SUM)
        return err_set(
            PARAMO_E_CORRUPT,
            "%s: damaged: it has %zu bytes, which is not what its head says; begin a new job with an empty "
            "folder, perhaps with --restore",
            path, file->len);
    const uint8_t *data = read_span(&r, (size_t)bytes);
    if (read_u64(&r) != hash_bytes(file->data, file->len - SUM))
        return err_set(PARAMO_E_CORRUPT,
                       "%s: damaged: its checksum is wrong; begin a new job with an empty folder, perhaps "
                       "with --restore",
                       path);
    if (!*term || *term >= STORE_TERM_MAX)
        return err_set(PARAMO_E_FORMAT, "%s: its term %" PRIu32 " is not valid", path, *term);
    if (!*generation || *generation > INT64_MAX) /* the next ones are above it */
        return err_set(PARAMO_E_FORMAT, "%s: its generation %" PRIu64 " is not valid", path, *generation);
    *records = reader_over(data, (size_t)bytes);
    return PARAMO_OK;
}

/* Reads the whole entry at the reader, if its number is from least to most, and moves after it. False: there
 * is none, and the reader stays. */
static bool entry_read(struct reader *r, uint64_t generation, uint64_t least, uint64_t most,
                       struct reader *records)
{
    struct reader at = *r;
    const uint8_t *begin = read_span(&at, sizeof entry_magic);
    if (!begin || memcmp(begin, entry_magic, sizeof entry_magic) != 0 || read_u64(&at) != generation)
        return false;
    uint64_t number = read_u64(&at);
    if (number < least || number > most)
        return false;
    uint64_t bytes = read_u64(&at);
    if (at.failed || at.left < SUM || bytes > at.left - SUM)
        return false;
    const uint8_t *data = read_span(&at, (size_t)bytes);
    if (read_u64(&at) != hash_bytes(begin, HEAD + (size_t)bytes))
        return false;
    *records = reader_over(data, (size_t)bytes);
    *r = at;
    return true;
}

/* Appends the durable records of the log's entries to those of the state. */
static paramo_err log_read(struct dir_store *s, uint64_t generation, struct writer *records)
{
    char name[32], path[FS_PATH_MAX];
    struct writer file = {0};
    assert(s->lock && !s->log && generation);
    log_name(generation, name);
    paramo_err err = fs_join(s->dir, name, path);
    if (!err)
        err = fs_load(s->config.fs, path, LOG_MAX, &file);
    if (err == PARAMO_E_NOT_FOUND)
        return PARAMO_OK;
    struct reader r = reader_over(file.data, file.len), entry;
    uint64_t number = 1;
    for (; !err && entry_read(&r, generation, number, number, &entry); number++)
        write_bytes(records, entry.at, entry.left);
    for (struct reader rest = r; !err && rest.left; (void)read_u8(&rest))
        if (entry_read(&rest, generation, number, UINT64_MAX, &entry))
            err = err_set(
                PARAMO_E_CORRUPT,
                "%s: entry %" PRIu64
                " is damaged, or missing; begin a new job with an empty folder, perhaps with --restore",
                path, number);
    if (!err && r.left)
        log_info("store: %s: ignoring the last %zu bytes, which the scheduler did not finish writing before "
                 "it died",
                 path, r.left);
    if (!err && records->failed)
        err = err_memory(file.len);
    writer_fini(&file);
    return err;
}

static paramo_err files_read(struct dir_store *s, struct writer *found)
{
    char path[FS_PATH_MAX];
    struct writer file = {0};
    struct reader records = {0};
    uint32_t term = 0;
    uint64_t generation = 0;
    assert(s->lock && !s->log && !s->entries);
    paramo_err err = fs_join(s->dir, "state", path);
    if (!err)
        err = fs_load(s->config.fs, path, STATE_MAX, &file);
    if (!err)
        err = state_check(path, &file, &term, &generation, &records);
    else if (err == PARAMO_E_NOT_FOUND)
        err = PARAMO_OK;
    if (!err && records.left)
        write_bytes(found, records.at, records.left);
    if (!err && term)
        err = log_read(s, generation, found);
    if (!err && found->failed) /* what is found is written again in a moment */
        err = err_memory(file.len);
    writer_fini(&file);
    s->term = term + 1;
    s->generation = generation;
    return err;
}

static paramo_err store_read(struct store_blocking_job *c)
{
    struct dir_store *s = c->store;
    char path[FS_PATH_MAX];
    assert(!s->lock && !c->records.len);
    paramo_err err = fs_join(s->dir, "lock", path);
    if (!err)
        err = fs_open(s->config.fs, path, FS_LOCK, &s->lock);
    if (err == PARAMO_E_REFUSED)
        return err_set(err, "%s is in use by a running scheduler; stop it, or use another folder", s->dir);
    if (!err)
        err = files_read(s, &c->records);
    return err ? err : state_write(s, &c->records);
}

static void start_work(struct blocking_job *blocking_job)
{
    struct store_blocking_job *c = container_of(blocking_job, struct store_blocking_job, blocking_job);
    struct dir_store *s = c->store;
    assert(c->started && !c->saved);
    assert(!s->lock && !s->log);
    paramo_err err = fs_keep_dir(s->config.fs, s->dir);
    if (!err)
        err = store_read(c);
    if (err == PARAMO_E_IO || err == PARAMO_E_NOT_FOUND)
        err = err_prefix(err, "the job's state cannot be kept in %s", s->dir);
    if (err) {
        err_text_copy(c->text);
        fs_close(s->lock);
        s->lock = NULL;
    }
    c->status = err;
}

static void save_work(struct blocking_job *blocking_job)
{
    struct store_blocking_job *c = container_of(blocking_job, struct store_blocking_job, blocking_job);
    assert(c->saved && !c->started);
    files_check(c->store);
    c->status = c->whole ? state_write(c->store, &c->records) : entry_write(c->store, &c->records);
    if (c->status)
        err_text_copy(c->text);
}

/* ---- on the lane -------------------------------------------------------------------------------------- */

static void store_free(struct dir_store *s)
{
    assert(s->closed && !s->pending);
    fs_close(s->log);
    fs_close(s->lock);
    free(s->dir);
    free(s);
}

/* Sets the job's status and message; false: the store is closed. */
static bool blocking_job_over(struct store_blocking_job *c)
{
    struct dir_store *s = c->store;
    bool wanted = !s->closed;
    assert(s->pending > 0);
    assert(s->phase != STORE_OPEN || c->status); /* a start that failed */
    s->pending--;
    if (wanted && c->status)
        (void)err_set(c->status, "%s", c->text);
    if (!wanted && !s->pending)
        store_free(s);
    return wanted;
}

static void blocking_job_free(struct store_blocking_job *c)
{
    writer_fini(&c->records);
    free(c);
}

static const struct sm machine = {"store",
                                  {[STORE_OPEN] = {"open", SM_TO(STORE_STARTING)},
                                   [STORE_STARTING] = {"starting", SM_TO(STORE_OPEN) | SM_TO(STORE_READY)},
                                   [STORE_READY] = {"ready", 0}}};

static void move(struct dir_store *s, enum store_phase to)
{
    sm_check(&machine, s->phase, to);
    s->phase = to;
}

static void start_done(struct blocking_job *blocking_job)
{
    struct store_blocking_job *c = container_of(blocking_job, struct store_blocking_job, blocking_job);
    struct dir_store *s = c->store;
    store_check(s);
    assert(!s->lock == !!c->status);
    if (!s->closed)
        move(s, c->status ? STORE_OPEN : STORE_READY);
    struct store_state state = {.term = s->term, .records = c->records.data, .bytes = c->records.len};
    if (blocking_job_over(c))
        c->started(c->arg, c->status, c->status ? NULL : &state);
    blocking_job_free(c);
}

static void save_done(struct blocking_job *blocking_job)
{
    struct store_blocking_job *c = container_of(blocking_job, struct store_blocking_job, blocking_job);
    assert(c->saved && c->store->phase == STORE_READY);
    if (blocking_job_over(c))
        c->saved(c->arg, c->status);
    blocking_job_free(c);
}

static struct store_blocking_job *blocking_job_new(struct dir_store *s, void (*work)(struct blocking_job *),
                                                   void (*done)(struct blocking_job *), void *arg)
{
    struct store_blocking_job *c = calloc(1, sizeof *c);
    if (c)
        *c = (struct store_blocking_job){
            .blocking_job = {.lane = s->config.lane, .work = work, .done = done}, .store = s, .arg = arg};
    return c;
}

static void store_post(struct dir_store *s, struct store_blocking_job *c)
{
    assert(!s->closed && c->store == s);
    assert(s->phase != STORE_OPEN);
    s->pending++;
    store_check(s);
    blocking_jobs_post(s->config.blocking_jobs, &c->blocking_job);
}

enum store_phase store_dir_phase(const struct store *store)
{
    return container_of(store, struct dir_store, store)->phase;
}

static struct dir_store *store_of(struct store *store)
{
    return container_of(store, struct dir_store, store);
}

static paramo_err dir_start(struct store *store, store_started_fn *done, void *arg)
{
    struct dir_store *s = store_of(store);
    store_check(s);
    assert(s->phase == STORE_OPEN && !s->closed);
    struct store_blocking_job *c = blocking_job_new(s, start_work, start_done, arg);
    if (!c)
        return err_memory(sizeof *c);
    c->started = done;
    move(s, STORE_STARTING);
    store_post(s, c);
    return PARAMO_OK;
}

static paramo_err dir_save(struct store *store, struct writer *records, bool whole, store_saved_fn *done,
                           void *arg)
{
    struct dir_store *s = store_of(store);
    assert(s->phase == STORE_READY && !s->closed);
    assert(!records->failed && !records->fixed && records->len <= STORE_BYTES_MAX);
    struct store_blocking_job *c = blocking_job_new(s, save_work, save_done, arg);
    if (!c) {
        writer_fini(records);
        return err_memory(sizeof *c);
    }
    c->records = *records;
    *records = (struct writer){0};
    c->whole = whole;
    c->saved = done;
    store_post(s, c);
    return PARAMO_OK;
}

static bool dir_sure(const struct store *store)
{
    (void)store;
    return true; /* the lock guarantees it */
}

static void dir_close(struct store *store)
{
    struct dir_store *s = store_of(store);
    store_check(s);
    assert(!s->closed);
    s->closed = true;
    if (!s->pending)
        store_free(s);
}

paramo_err store_dir_open(const struct store_dir_config *config, struct store **out)
{
    static const struct store_ops ops = {
        .start = dir_start, .save = dir_save, .sure = dir_sure, .close = dir_close};
    struct dir_store *s = calloc(1, sizeof *s);
    char *dir = strdup(config->dir);
    if (!s || !dir) {
        free(s);
        free(dir);
        return err_memory(sizeof *s);
    }
    for (size_t len = strlen(dir); len > 1 && dir[len - 1] == '/'; len--)
        dir[len - 1] = '\0';
    s->store.ops = &ops;
    s->config = *config;
    s->config.dir = NULL;
    s->dir = dir;
    *out = &s->store;
    return PARAMO_OK;
}
