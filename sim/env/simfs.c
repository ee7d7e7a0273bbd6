#include "sim/env/simfs.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sim/env/sim.h"

enum { SECTOR = 512 };

/* The file or folder of a name. A folder has no bytes. */
struct inode {
    unsigned links; /* references: names, names in journals, durable names, open files */
    bool folder;
    bool dropped; /* a sync has failed: what was not durable then is never written */
    bool locked;
    uint8_t *bytes;
    size_t size, capacity, durable; /* bytes[0 .. durable) survive a crash */
    size_t claimed;                 /* durable, according to syncs that lied */
};

/* A name as it is now, and as it would be after a crash; NULL: it does not exist. */
struct name {
    struct name *next;
    struct inode *now, *durable;
    bool lost; /* the last crash took what a sync had called durable */
    char path[];
};

/* Changes of names that are not durable yet, in order. */
struct change {
    struct change *next;
    struct name *name;
    struct inode *to;
    bool with_next; /* one rename is two changes in one step */
    bool claimed;   /* durable, according to a sync that lied */
};

struct simfs {
    struct fs fs;
    struct sim *sim; /* NULL: it is used without one */
    uint64_t random;
    uint64_t steps, fault_step;
    enum simfs_fault fault;
    bool planned, crashed;
    uint64_t struck;
    unsigned lies;   /* syncs that will lie */
    unsigned starts; /* files that were opened before the last restart are dead */
    struct name *names;
    struct change *changes;
};

struct sim_file {
    struct fs_file file;
    struct simfs *fs;
    struct inode *inode;
    unsigned start;
    bool lock;
    char path[FS_PATH_MAX];
};

static uint64_t draw(struct simfs *fs, uint64_t below)
{
    fs->random += UINT64_C(0x9e3779b97f4a7c15);
    return mix64(fs->random) % below;
}

/* What the file system itself consists of. The process that uses it has no part in that memory. */
static void *own_realloc(const struct simfs *fs, void *p, size_t size)
{
    if (fs->sim)
        sim_hold(fs->sim, true);
    void *longer = realloc(p, size);
    if (fs->sim)
        sim_hold(fs->sim, false);
    return longer;
}

static void *own_calloc(const struct simfs *fs, size_t size)
{
    void *p = own_realloc(fs, NULL, size);
    return p ? memset(p, 0, size) : NULL;
}

static struct inode *inode_ref(struct inode *inode)
{
    if (inode)
        inode->links++;
    return inode;
}

static void inode_unref(struct inode *inode)
{
    if (!inode || --inode->links)
        return;
    free(inode->bytes);
    free(inode);
}

static void inode_set(struct inode **place, struct inode *inode)
{
    (void)inode_ref(inode);
    inode_unref(*place);
    *place = inode;
}

static struct name *name_find(struct simfs *fs, const char *path)
{
    for (struct name *name = fs->names; name; name = name->next)
        if (strcmp(name->path, path) == 0)
            return name;
    return NULL;
}

static struct name *name_get(struct simfs *fs, const char *path)
{
    struct name *name = name_find(fs, path);
    if (name)
        return name;
    size_t len = strlen(path) + 1;
    name = own_calloc(fs, sizeof *name + len);
    if (!name)
        return NULL;
    memcpy(name->path, path, len);
    name->next = fs->names;
    fs->names = name;
    return name;
}

static struct inode *inode_find(struct simfs *fs, const char *path)
{
    const struct name *name = name_find(fs, path);
    return name ? name->now : NULL;
}

/* "" for what lies outside of all folders. */
static void folder_of(const char *path, char folder[FS_PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    (void)snprintf(folder, FS_PATH_MAX, "%.*s", slash ? (int)(slash - path) : 0, path);
}

/* True if the path names an entry of the folder itself. */
static bool is_in(const char *path, const char *folder)
{
    size_t len = strlen(folder);
    return strncmp(path, folder, len) == 0 && path[len] == '/' && !strchr(path + len + 1, '/');
}

static bool change_name(struct simfs *fs, struct name *name, struct inode *to, bool with_next)
{
    struct change *change = own_calloc(fs, sizeof *change), **last = &fs->changes;
    if (!change)
        return false;
    *change = (struct change){.name = name, .to = inode_ref(to), .with_next = with_next};
    while (*last)
        last = &(*last)->next;
    *last = change;
    inode_set(&name->now, to);
    return true;
}

static struct inode *inode_new(const struct simfs *fs, bool folder)
{
    struct inode *inode = own_calloc(fs, sizeof *inode);
    if (inode)
        inode->folder = folder;
    return inode;
}

/* ---- crashes ------------------------------------------------------------------------------------------- */

static void change_free(struct change *change)
{
    inode_unref(change->to);
    free(change);
}

/* The folder of the path, and those that it lies in, as far as they are simulated. */
static bool folders_there(struct simfs *fs, const char *path)
{
    char folder[FS_PATH_MAX], parent[FS_PATH_MAX];
    for (folder_of(path, folder); folder[0]; memcpy(folder, parent, sizeof folder)) {
        const struct name *name = name_find(fs, folder);
        if (name && !name->now)
            return false;
        folder_of(folder, parent);
    }
    return true;
}

/* The first few changes of each folder survive. */
static void crash_names(struct simfs *fs)
{
    for (struct name *name = fs->names; name; name = name->next)
        name->lost = name->now && name->now->claimed > name->now->durable;
    for (const struct name *folder = fs->names; folder; folder = folder->next) {
        uint64_t count = 0;
        for (const struct change *c = fs->changes; c; c = c->next)
            count += is_in(c->name->path, folder->path);
        uint64_t kept = draw(fs, count + 1);
        bool torn = false;
        for (const struct change *c = fs->changes; c; c = c->next) {
            if (!is_in(c->name->path, folder->path))
                continue;
            if (!kept && !torn) {
                c->name->lost |= c->claimed;
                continue;
            }
            inode_set(&c->name->durable, c->to);
            torn = c->with_next;
            kept -= kept > 0;
        }
    }
    while (fs->changes) {
        struct change *change = fs->changes;
        fs->changes = change->next;
        change_free(change);
    }
    for (struct name *name = fs->names; name; name = name->next)
        inode_set(&name->now, name->durable);
    for (struct name *name = fs->names; name; name = name->next) {
        if (!folders_there(fs, name->path)) { /* it is gone with its folder */
            inode_set(&name->now, NULL);
            inode_set(&name->durable, NULL);
        }
        if (name->now)
            name->now->locked = false;
    }
}

/* A file keeps any length from the durable length on, often all of it. Its sectors that are not durable are
 * new, empty or of another file. */
static void crash_bytes(struct simfs *fs)
{
    for (struct name *name = fs->names; name; name = name->next) {
        struct inode *inode = name->now;
        if (!inode || inode->size == inode->durable)
            continue;
        size_t size = inode->size;
        if (draw(fs, 3))
            size = inode->durable + (size_t)draw(fs, inode->size - inode->durable + 1);
        for (size_t at = inode->durable; at < size; at += SECTOR - at % SECTOR) {
            size_t end = at + SECTOR - at % SECTOR;
            uint64_t fate = inode->dropped ? 1 + draw(fs, 2) : draw(fs, 3);
            for (size_t i = at; fate && i < end && i < size; i++)
                inode->bytes[i] = fate == 1 ? 0 : (uint8_t)draw(fs, 256);
        }
        inode->size = inode->durable = size;
        inode->claimed = 0;
        inode->dropped = false;
    }
}

static void crash(struct simfs *fs)
{
    fs->crashed = true;
    crash_names(fs);
    crash_bytes(fs);
}

/* Counts one step. *fault is SIMFS_FAULTS if it succeeds. */
static paramo_err step(struct simfs *fs, const char *what, const char *path, enum simfs_fault *fault)
{
    *fault = SIMFS_FAULTS;
    if (fs->planned && fs->steps == fs->fault_step) {
        fs->planned = false;
        fs->struck++;
        *fault = fs->fault;
        if (fs->fault == SIMFS_CRASH)
            crash(fs);
    }
    fs->steps++;
    if (fs->crashed)
        return err_set(PARAMO_E_IO, "%s %s: the machine has crashed", what, path);
    if (*fault == SIMFS_FAIL)
        return err_set(PARAMO_E_IO, "%s %s: injected", what, path);
    return PARAMO_OK;
}

static bool lies(struct simfs *fs)
{
    bool lie = fs->lies > 0;
    fs->lies -= lie;
    return lie;
}

static paramo_err alive(const struct simfs *fs, const char *path)
{
    return fs->crashed ? err_set(PARAMO_E_IO, "%s: the machine has crashed", path) : PARAMO_OK;
}

/* ---- operations ---------------------------------------------------------------------------------------- */

static struct simfs *simfs_of(struct fs *fs)
{
    return (struct simfs *)fs;
}

static paramo_err not_there(const char *path)
{
    return err_set(PARAMO_E_NOT_FOUND, "%s: it is not there", path);
}

static paramo_err open_new(struct simfs *fs, const char *path, enum fs_mode mode, struct inode **inode)
{
    enum simfs_fault fault;
    char folder[FS_PATH_MAX];
    paramo_err err = step(fs, "create", path, &fault);
    if (err)
        return err;
    if (inode_find(fs, path)) {
        *inode = inode_find(fs, path);
        return mode == FS_LOCK ? PARAMO_OK : err_set(PARAMO_E_IO, "create %s: it is there", path);
    }
    folder_of(path, folder);
    const struct inode *parent = inode_find(fs, folder);
    if (folder[0] && (!parent || !parent->folder))
        return not_there(folder);
    struct name *name = name_get(fs, path);
    *inode = inode_new(fs, false);
    if (!name || !*inode || !change_name(fs, name, *inode, false))
        return err_memory(sizeof **inode);
    return PARAMO_OK;
}

static paramo_err sim_open(struct fs *base, const char *path, enum fs_mode mode, struct fs_file **out)
{
    struct simfs *fs = simfs_of(base);
    struct inode *inode = inode_find(fs, path);
    paramo_err err = mode == FS_READ ? alive(fs, path) : open_new(fs, path, mode, &inode);
    if (!err && !inode)
        err = not_there(path);
    if (!err && inode->folder)
        err = err_set(PARAMO_E_IO, "open %s: it is a folder", path);
    if (!err && mode == FS_LOCK && inode->locked)
        err = err_set(PARAMO_E_REFUSED, "%s is locked by another process", path);
    struct sim_file *file = err ? NULL : calloc(1, sizeof *file);
    if (!file)
        return err ? err : err_memory(sizeof *file);
    *file = (struct sim_file){.file.ops = base->ops,
                              .fs = fs,
                              .inode = inode_ref(inode),
                              .start = fs->starts,
                              .lock = mode == FS_LOCK};
    inode->locked |= file->lock;
    (void)snprintf(file->path, sizeof file->path, "%s", path);
    *out = &file->file;
    return PARAMO_OK;
}

static struct sim_file *file_of(struct fs_file *file)
{
    return (struct sim_file *)file;
}

static paramo_err file_alive(const struct sim_file *file)
{
    return file->start != file->fs->starts
               ? err_set(PARAMO_E_IO, "%s was open when the machine crashed", file->path)
               : alive(file->fs, file->path);
}

static paramo_err sim_write(struct fs_file *f, const void *data, size_t len, size_t *wrote)
{
    struct sim_file *file = file_of(f);
    struct inode *inode = file->inode;
    enum simfs_fault fault;
    paramo_err err = step(file->fs, "write", file->path, &fault);
    if (!err)
        err = file_alive(file);
    if (err)
        return err;
    size_t taken = fault == SIMFS_SHORT ? 1 : fault == SIMFS_HALF ? len / 2 : len;
    if (inode->size + taken > inode->capacity) {
        size_t capacity = 2 * (inode->size + taken);
        uint8_t *bytes = own_realloc(file->fs, inode->bytes, capacity);
        if (!bytes)
            return err_memory(capacity);
        inode->bytes = bytes;
        inode->capacity = capacity;
    }
    if (taken)
        memcpy(inode->bytes + inode->size, data, taken);
    inode->size += taken;
    if (fault == SIMFS_HALF)
        return err_set(PARAMO_E_IO, "write %s: no space left (injected)", file->path);
    *wrote = taken;
    return PARAMO_OK;
}

static paramo_err sim_read(struct fs_file *f, uint64_t at, void *data, size_t len, size_t *got)
{
    const struct sim_file *file = file_of(f);
    paramo_err err = file_alive(file);
    if (err)
        return err;
    size_t left = at < file->inode->size ? file->inode->size - (size_t)at : 0;
    *got = len < left ? len : left;
    if (*got)
        memcpy(data, file->inode->bytes + at, *got);
    return PARAMO_OK;
}

static paramo_err sim_size(struct fs_file *f, uint64_t *size)
{
    const struct sim_file *file = file_of(f);
    *size = file->inode->size;
    return file_alive(file);
}

static paramo_err sim_sync(struct fs_file *f)
{
    struct sim_file *file = file_of(f);
    enum simfs_fault fault;
    paramo_err err = step(file->fs, "sync", file->path, &fault);
    if (err && fault == SIMFS_FAIL)
        file->inode->dropped = file->inode->size > file->inode->durable;
    if (!err)
        err = file_alive(file);
    if (err)
        return err;
    if (lies(file->fs))
        file->inode->claimed = file->inode->size;
    else if (!file->inode->dropped)
        file->inode->durable = file->inode->size;
    return fault == SIMFS_HALF ? err_set(PARAMO_E_IO, "sync %s: injected", file->path) : PARAMO_OK;
}

static void sim_close(struct fs_file *f)
{
    struct sim_file *file = file_of(f);
    if (file->lock && file->start == file->fs->starts)
        file->inode->locked = false;
    inode_unref(file->inode);
    free(file);
}

static paramo_err sim_rename(struct fs *base, const char *from, const char *to)
{
    struct simfs *fs = simfs_of(base);
    enum simfs_fault fault;
    paramo_err err = step(fs, "rename", from, &fault);
    if (err)
        return err;
    struct inode *inode = inode_find(fs, from);
    if (!inode)
        return not_there(from);
    if (inode->folder)
        return err_set(PARAMO_E_IO, "rename %s: it is a folder, which is not simulated", from);
    struct name *source = name_get(fs, from), *target = name_get(fs, to);
    if (!target || !change_name(fs, target, inode, true) || !change_name(fs, source, NULL, false))
        return err_memory(sizeof *target);
    return PARAMO_OK;
}

static paramo_err remove_name(struct fs *base, const char *path, bool folder)
{
    struct simfs *fs = simfs_of(base);
    enum simfs_fault fault;
    paramo_err err = step(fs, "remove", path, &fault);
    if (err)
        return err;
    const struct inode *inode = inode_find(fs, path);
    if (!inode)
        return not_there(path);
    for (const struct name *name = fs->names; folder && name; name = name->next)
        if (name->now && is_in(name->path, path))
            return err_set(PARAMO_E_IO, "remove %s: it is not empty", path);
    if (inode->folder != folder)
        return err_set(PARAMO_E_IO, "remove %s: it is %s folder", path, folder ? "no" : "a");
    return change_name(fs, name_find(fs, path), NULL, false) ? PARAMO_OK : err_memory(sizeof *inode);
}

static paramo_err sim_unlink(struct fs *fs, const char *path)
{
    return remove_name(fs, path, false);
}

static paramo_err sim_remove_dir(struct fs *fs, const char *path)
{
    return remove_name(fs, path, true);
}

/* Makes the folders that a test begins with. Their own names are durable at once, since their parents may be
 * outside of the simulation. */
static paramo_err make_dir(struct fs *base, const char *path, bool must_be_new)
{
    struct simfs *fs = simfs_of(base);
    enum simfs_fault fault;
    paramo_err err = step(fs, "make the folder", path, &fault);
    if (err)
        return err;
    const struct inode *there = inode_find(fs, path);
    if (there && must_be_new)
        return err_set(PARAMO_E_REFUSED, "make the folder %s: it exists already", path);
    if (there)
        return there->folder ? PARAMO_OK : err_set(PARAMO_E_IO, "make the folder %s: it is a file", path);
    struct name *name = name_get(fs, path);
    struct inode *inode = inode_new(fs, true);
    char parent[FS_PATH_MAX];
    folder_of(path, parent);
    if (!name || !inode || !change_name(fs, name, inode, false))
        return err_memory(sizeof *inode);
    if (!inode_find(fs, parent))
        inode_set(&name->durable, inode);
    return PARAMO_OK;
}

static paramo_err sim_make_dir(struct fs *fs, const char *path)
{
    return make_dir(fs, path, false);
}

static paramo_err sim_new_dir(struct fs *fs, const char *path)
{
    return make_dir(fs, path, true);
}

static paramo_err sim_sync_dir(struct fs *base, const char *path)
{
    struct simfs *fs = simfs_of(base);
    enum simfs_fault fault;
    paramo_err err = step(fs, "sync the folder", path, &fault);
    if (err)
        return err;
    if (!inode_find(fs, path))
        return not_there(path);
    bool lie = lies(fs);
    for (struct change **at = &fs->changes; *at;) {
        struct change *change = *at;
        bool in = is_in(change->name->path, path);
        if (!in || lie) {
            change->claimed |= in;
            at = &change->next;
            continue;
        }
        inode_set(&change->name->durable, change->to);
        *at = change->next;
        change_free(change);
    }
    return fault == SIMFS_HALF ? err_set(PARAMO_E_IO, "sync the folder %s: injected", path) : PARAMO_OK;
}

static paramo_err sim_list(struct fs *base, const char *path, void (*entry)(void *arg, const char *name),
                           void *arg)
{
    struct simfs *fs = simfs_of(base);
    paramo_err err = alive(fs, path);
    if (!err && !inode_find(fs, path))
        err = not_there(path);
    for (const struct name *name = fs->names; !err && name; name = name->next)
        if (name->now && is_in(name->path, path))
            entry(arg, name->path + strlen(path) + 1);
    return err;
}

/* ---- life ---------------------------------------------------------------------------------------------- */

paramo_err simfs_create(uint64_t seed, struct simfs **out)
{
    static const struct fs_ops ops = {
        .open = sim_open,
        .write = sim_write,
        .read = sim_read,
        .size = sim_size,
        .sync = sim_sync,
        .close = sim_close,
        .rename = sim_rename,
        .unlink = sim_unlink,
        .make_dir = sim_make_dir,
        .new_dir = sim_new_dir,
        .remove_dir = sim_remove_dir,
        .sync_dir = sim_sync_dir,
        .list = sim_list,
    };
    struct simfs *fs = calloc(1, sizeof *fs);
    if (!fs)
        return err_memory(sizeof *fs);
    fs->fs.ops = &ops;
    fs->random = seed;
    *out = fs;
    return PARAMO_OK;
}

void simfs_destroy(struct simfs *fs)
{
    if (!fs)
        return;
    while (fs->changes) {
        struct change *change = fs->changes;
        fs->changes = change->next;
        change_free(change);
    }
    while (fs->names) {
        struct name *name = fs->names;
        fs->names = name->next;
        inode_unref(name->now);
        inode_unref(name->durable);
        free(name);
    }
    free(fs);
}

struct fs *simfs_fs(struct simfs *fs)
{
    return &fs->fs;
}

void simfs_set_sim(struct simfs *fs, struct sim *sim)
{
    fs->sim = sim;
}

uint64_t simfs_steps(const struct simfs *fs)
{
    return fs->steps;
}

void simfs_plan(struct simfs *fs, enum simfs_fault fault, uint64_t at)
{
    fs->fault = fault;
    fs->fault_step = at;
    fs->planned = true;
}

uint64_t simfs_struck(const struct simfs *fs)
{
    return fs->struck;
}

void simfs_lie(struct simfs *fs, unsigned syncs)
{
    fs->lies = syncs;
}

bool simfs_lost(const struct simfs *fs, const char *folder)
{
    size_t len = strlen(folder);
    for (const struct name *name = fs->names; name; name = name->next)
        if (name->lost && strncmp(name->path, folder, len) == 0 &&
            (name->path[len] == '\0' || name->path[len] == '/'))
            return true;
    return false;
}

void simfs_restart(struct simfs *fs)
{
    if (!fs->crashed)
        crash(fs);
    fs->lies = 0;
    fs->crashed = false;
    fs->planned = false;
    fs->starts++;
}

bool simfs_crashed(const struct simfs *fs)
{
    return fs->crashed;
}

bool simfs_flip(struct simfs *fs, const char *path, uint64_t at, unsigned bit)
{
    struct inode *inode = inode_find(fs, path);
    if (!inode || at >= inode->size)
        return false;
    inode->bytes[at] ^= (uint8_t)(1u << bit % 8);
    return true;
}

bool simfs_cut(struct simfs *fs, const char *path, uint64_t size)
{
    struct inode *inode = inode_find(fs, path);
    if (!inode || size > inode->size)
        return false;
    inode->size = (size_t)size;
    inode->durable = inode->durable < inode->size ? inode->durable : inode->size;
    return true;
}
