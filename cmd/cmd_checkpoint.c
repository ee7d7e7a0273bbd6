/*
 * paramo checkpoint save, load: of a live job, by way of its scheduler. list, verify: what checkpoints a
 * folder has, and whether every byte of one is as it was written. Like cmd_ring.c it looks inside src/
 * (scripts/layers). Tests: test/e2e/checkpoint.sh.
 */
#include "cmd/admin_request.h"
#include "cmd/args.h"
#include "cmd/exitcode.h"
#include "cmd/verbs.h"

#include "base/err.h"
#include "cluster/checkpoint/ckpt.h"
#include "env/process.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define VERB "checkpoint"

struct listing {
    json_t *list; /* NULL: text */
    unsigned damaged, shown;
    struct whole {
        uint64_t number, id;
    } * whole; /* of those seen: others may be based on them */
    size_t whole_count;
    bool failed;
};

static uint64_t bytes_of(const struct ckpt_manifest *m)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < m->files_count; i++)
        bytes += m->files[i].bytes;
    return bytes;
}

static void time_of(const struct ckpt_manifest *m, char text[32])
{
    time_t at = (time_t)m->made_at;
    struct tm tm;
    if (!gmtime_r(&at, &tm) || !strftime(text, 32, "%Y-%m-%d %H:%M:%S", &tm))
        (void)snprintf(text, 32, "%" PRIu64, m->made_at);
}

/* One whose base is not there is not whole, though its own files are. */
static bool base_is_there(const struct listing *l, const struct ckpt_manifest *m)
{
    bool there = m->base == 0;
    for (size_t i = 0; i < l->whole_count && !there; i++)
        there = l->whole[i].number == m->base && l->whole[i].id == m->base_id;
    return there;
}

static void note_whole(struct listing *l, const struct ckpt_manifest *m)
{
    struct whole *list = realloc(l->whole, (l->whole_count + 1) * sizeof *list);
    l->failed = l->failed || list == NULL;
    if (list == NULL)
        return;
    l->whole = list;
    list[l->whole_count++] = (struct whole){.number = m->number, .id = m->id};
}

static void list_one(void *arg, uint64_t number, paramo_err status, const char *text,
                     const struct ckpt_manifest *m)
{
    struct listing *l = arg;
    const bool based = m && base_is_there(l, m);
    const char *state = based                          ? "whole"
                        : m                            ? "no base"
                        : status == PARAMO_E_NOT_FOUND ? "unfinished"
                                                       : "damaged";
    const char *kind = m && m->base ? "changes" : "full";
    l->damaged += !based && status != PARAMO_E_NOT_FOUND;
    if (based)
        note_whole(l, m);
    if (l->list) {
        json_t *entry = json_pack("{s:I, s:s}", "number", (json_int_t)number, "state", state);
        if (entry && m)
            (void)json_object_update_new(
                entry, json_pack("{s:s, s:I, s:I, s:I, s:i, s:i, s:I}", "kind", kind, "base",
                                 (json_int_t)m->base, "made_at", (json_int_t)m->made_at, "view",
                                 (json_int_t)m->view, "tables", (int)m->tables_count, "files",
                                 (int)m->files_count, "bytes", (json_int_t)bytes_of(m)));
        else if (entry && status != PARAMO_E_NOT_FOUND)
            (void)json_object_set_new(entry, "cause", json_string(text));
        (void)json_array_append_new(l->list, entry);
        return;
    }
    if (!l->shown++)
        (void)printf(
            "number  state       made (UTC)           kind     based on  tables  files         bytes\n");
    if (!m) {
        (void)printf("%6" PRIu64 "  %-10s  %s\n", number, state, status == PARAMO_E_NOT_FOUND ? "" : text);
        return;
    }
    char at[32], base[24] = "-";
    time_of(m, at);
    if (m->base)
        (void)snprintf(base, sizeof base, "%" PRIu64, m->base);
    (void)printf("%6" PRIu64 "  %-10s  %-19s  %-7s  %8s  %6" PRIu32 "  %5" PRIu32 "  %12" PRIu64 "\n", number,
                 state, at, kind, base, m->tables_count, m->files_count, bytes_of(m));
}

static int print_json(json_t *root)
{
    int wrong = root ? json_dumpf(root, stdout, JSON_INDENT(1)) : -1;
    json_decref(root);
    if (wrong)
        return code_fail(VERB, PARAMO_E_MEMORY, "the report could not be written");
    (void)printf("\n");
    return CODE_DONE;
}

static int list(const char *dir, int json)
{
    struct listing l = {.list = json ? json_array() : NULL};
    paramo_err err = ckpt_list(fs_real(), dir, list_one, &l);
    free(l.whole);
    if (err == PARAMO_OK && l.failed)
        err = err_set(PARAMO_E_MEMORY, "out of memory");
    if (err) {
        json_decref(l.list);
        return code_fail(VERB, err, err_text());
    }
    int code = json ? print_json(l.list) : CODE_DONE;
    if (!json && !l.shown)
        (void)printf("no checkpoints\n");
    return code == CODE_DONE && l.damaged ? CODE_DATA : code;
}

struct tally {
    uint64_t blocks[CKPT_KINDS], bytes;
};

static paramo_err count(void *arg, const struct ckpt_block *b)
{
    struct tally *t = arg;
    t->blocks[b->kind]++;
    t->bytes += b->bytes;
    return PARAMO_OK;
}

static int verify(const char *dir, uint64_t number, int json)
{
    struct ckpt *c;
    struct tally t = {0};
    paramo_err err = ckpt_open(fs_real(), dir, number, &c);
    if (err)
        return code_fail(VERB, err, err_text());
    err = ckpt_visit(c, NULL, count, &t);
    int code = CODE_DONE;
    const struct ckpt_manifest *m = ckpt_manifest(c, 0);
    if (err) {
        code = code_fail(VERB, err, err_text());
    } else if (json) {
        json_t *chain = json_array();
        for (unsigned i = 0; i < ckpt_links(c); i++)
            (void)json_array_append_new(chain, json_integer((json_int_t)ckpt_manifest(c, i)->number));
        code = print_json(json_pack("{s:I, s:o, s:I, s:I, s:I, s:I, s:I}", "number", (json_int_t)m->number,
                                    "chain", chain, "rows_blocks", (json_int_t)t.blocks[CKPT_ROWS],
                                    "erased_blocks", (json_int_t)t.blocks[CKPT_ERASED], "cleared_blocks",
                                    (json_int_t)t.blocks[CKPT_CLEARED], "windows_blocks",
                                    (json_int_t)t.blocks[CKPT_WINDOWS], "bytes", (json_int_t)t.bytes));
    } else {
        (void)printf("checkpoint %" PRIu64, m->number);
        for (unsigned i = 1; i < ckpt_links(c); i++)
            (void)printf("%s%" PRIu64, i == 1 ? ", based on " : ", on ", ckpt_manifest(c, i)->number);
        (void)printf(": whole; %" PRIu64 " blocks of rows, %" PRIu64 " of other things, %" PRIu64
                     " bytes in them\n",
                     t.blocks[CKPT_ROWS],
                     t.blocks[CKPT_ERASED] + t.blocks[CKPT_CLEARED] + t.blocks[CKPT_WINDOWS], t.bytes);
    }
    ckpt_close(c);
    return code;
}

struct live {
    struct admin_target where;
    const char *dir;
    uint64_t wait;
    int incremental;
};

static int ask(const struct live *l, bool load, uint64_t number, int json)
{
    char secret[TOKEN_BYTES];
    struct ckpt_order order = {
        .number = number, .timeout_ms = (uint32_t)l->wait * 1000, .changes = l->incremental != 0};
    struct admin_request o = {.wait_s = l->wait + 5, .ckpt = &order, .load = load};
    int code = admin_request_target(VERB, &l->where, secret, &o);
    if (code >= 0)
        return code;
    paramo_err err = process_path(l->dir, order.dir, sizeof order.dir);
    if (!err)
        err = admin_request_run(&o);
    if (err)
        return code_fail(VERB, err, err_text());
    if (json)
        return print_json(json_pack("{s:I, s:s}", "number", (json_int_t)o.number, "dir", order.dir));
    (void)printf("checkpoint %" PRIu64 " %s %s\n", o.number, load ? "loaded from" : "saved in", l->dir);
    return CODE_DONE;
}

static const char usage[] =
    "usage: paramo checkpoint save|load --scheduler HOST:PORT --dir DIR [options]\n"
    "       paramo checkpoint list DIR [--json]\n"
    "       paramo checkpoint verify DIR [--number N] [--json]\n"
    "\n"
    "save takes a checkpoint of a live job, which goes on meanwhile; every server writes its part into DIR, "
    "a\n"
    "folder that all of them and the scheduler see; with --incremental only what has changed since the last "
    "one\n"
    "there. load puts one in the place of what the tables hold, on any number of servers. See also\n"
    "--checkpoint-every and --restore of 'paramo run', 'scheduler' and 'train'.\n"
    "\n"
    "list shows the checkpoints in a folder: those that are whole and what they are based on, attempts that\n"
    "did not end, manifests that are damaged, and those whose base is missing. verify reads every byte of "
    "one, and of those it is based on, and checks it.\n";
static const char more[] = "  paramo checkpoint save --scheduler 10.0.0.1:9000 --dir /data/ckpt\n"
                           "  paramo checkpoint list /data/ckpt\n"
                           "  paramo checkpoint verify /data/ckpt --number 7\n"
                           "\n" CODE_HELP;

int cmd_checkpoint(int argc, char **argv)
{
    uint64_t number = 0;
    int json = 0, number_given = 0;
    struct live live = {.wait = 600};
    const struct arg args[] = {
        {.name = "number",
         .kind = ARG_INT,
         .out = &number,
         .meta = "N",
         .help = "this one (the last that has a manifest)",
         .min = 1,
         .max = INT64_MAX,
         .given = &number_given},
        {.name = "json", .kind = ARG_FLAG, .out = &json, .help = "the report as JSON"},
        {.name = "of a live job", .kind = ARG_SECTION},
        {.name = "incremental",
         .kind = ARG_FLAG,
         .out = &live.incremental,
         .help =
             "save: only what changed since the last one that was saved so, or by\n--checkpoint-every; the "
             "first is a full one"},
        {.name = "dir", .kind = ARG_STRING, .out = &live.dir, .meta = "DIR", .help = "the folder"},
        ADMIN_ARGS(live.where, "the job's scheduler"),
        {.name = "wait",
         .kind = ARG_INT,
         .out = &live.wait,
         .meta = "SECONDS",
         .help = "it is given up then (600)",
         .min = 1,
         .max = 86400},
    };
    const char *what = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
    const char *dir = what && argc > 2 && argv[2][0] != '-' ? argv[2] : NULL;
    const int named = (what != NULL) + (dir != NULL);
    const bool save = what && strcmp(what, "save") == 0, load = what && strcmp(what, "load") == 0;
    if (what && !save && !load && strcmp(what, "list") != 0 && strcmp(what, "verify") != 0)
        return args_wrong(VERB, "unknown subject '%s': there are 'save', 'load', 'list' and 'verify'", what);
    int code = args_parse(VERB, argc - named, argv + named, args, sizeof args / sizeof *args, usage, more);
    if (code >= 0)
        return code;
    if (!what)
        return args_wrong(VERB, "what? There are 'save', 'load', 'list' and 'verify'");
    if (save || load) {
        if (dir)
            return args_wrong(VERB, "%s: the folder is named by --dir", what);
        if (!live.where.scheduler || !live.dir || !*live.dir)
            return args_wrong(VERB, "%s: --%s is missing", what, live.where.scheduler ? "dir" : "scheduler");
        if (save && number_given)
            return args_wrong(VERB, "save: the scheduler gives the number");
        if (load && live.incremental)
            return args_wrong(VERB, "--incremental is for save");
        return ask(&live, load, number, json);
    }
    if (live.where.scheduler || live.dir || live.incremental)
        return args_wrong(VERB, "%s: it looks at a folder, not at a job", what);
    if (!dir || !*dir)
        return args_wrong(VERB, "%s: DIR is missing", what);
    if (strcmp(what, "verify") == 0)
        return verify(dir, number, json);
    if (number_given)
        return args_wrong(VERB, "--number is for verify");
    return list(dir, json);
}
