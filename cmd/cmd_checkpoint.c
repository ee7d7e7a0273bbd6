/*
 * paramo checkpoint: save and load checkpoints of a live job through its scheduler; list and verify the
 * checkpoints of a folder without a job. Tests: test/e2e/checkpoint.sh.
 */
#include "cmd/admin_json.h"
#include "cmd/admin_target.h"
#include "cmd/exitcode.h"
#include "cmd/options.h"
#include "cmd/verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define VERB "checkpoint"

static int failed(paramo_err err)
{
    return code_fail(VERB, err, paramo_last_error());
}

struct listing {
    json_t *list;            /* NULL: the list is printed as text */
    unsigned damaged, shown; /* checkpoints; damaged: their bases may be missing instead */
};

static void time_of(uint64_t made_at, char text[32])
{
    time_t at = (time_t)made_at;
    struct tm tm;
    if (!gmtime_r(&at, &tm) || !strftime(text, 32, "%Y-%m-%d %H:%M:%S", &tm))
        (void)snprintf(text, 32, "%" PRIu64, made_at);
}

static bool has_manifest(const paramo_checkpoint_info *info)
{
    return info->state == PARAMO_CHECKPOINT_WHOLE || info->state == PARAMO_CHECKPOINT_NO_BASE;
}

static const char *state_name(paramo_checkpoint_state state)
{
    return state == PARAMO_CHECKPOINT_WHOLE        ? "whole"
           : state == PARAMO_CHECKPOINT_NO_BASE    ? "no base"
           : state == PARAMO_CHECKPOINT_UNFINISHED ? "unfinished"
                                                   : "damaged";
}

static void list_json(json_t *list, const paramo_checkpoint_info *info)
{
    json_t *entry =
        json_pack("{s:I, s:s}", "number", (json_int_t)info->number, "state", state_name(info->state));
    if (entry && has_manifest(info))
        (void)json_object_update_new(
            entry, json_pack("{s:s, s:I, s:I, s:I, s:i, s:i, s:I}", "kind", info->base ? "changes" : "full",
                             "base", (json_int_t)info->base, "made_at", (json_int_t)info->made_at, "view",
                             (json_int_t)info->view, "tables", (int)info->tables, "files", (int)info->files,
                             "bytes", (json_int_t)info->bytes));
    else if (entry && info->state == PARAMO_CHECKPOINT_DAMAGED)
        (void)json_object_set_new(entry, "cause", json_string(info->cause));
    (void)json_array_append_new(list, entry);
}

static void list_text(const paramo_checkpoint_info *info)
{
    char at[32], base[24] = "-";
    if (!has_manifest(info)) {
        (void)printf("%6" PRIu64 "  %-10s  %s\n", info->number, state_name(info->state),
                     info->state == PARAMO_CHECKPOINT_DAMAGED ? info->cause : "");
        return;
    }
    time_of(info->made_at, at);
    if (info->base)
        (void)snprintf(base, sizeof base, "%" PRIu64, info->base);
    (void)printf("%6" PRIu64 "  %-10s  %-19s  %-7s  %8s  %6" PRIu32 "  %5" PRIu32 "  %12" PRIu64 "\n",
                 info->number, state_name(info->state), at, info->base ? "changes" : "full", base,
                 info->tables, info->files, info->bytes);
}

static void list_one(void *arg, const paramo_checkpoint_info *info)
{
    struct listing *l = arg;
    l->damaged += info->state == PARAMO_CHECKPOINT_DAMAGED || info->state == PARAMO_CHECKPOINT_NO_BASE;
    if (l->list) {
        list_json(l->list, info);
        return;
    }
    if (!l->shown++)
        (void)printf(
            "number  state       made (UTC)           kind     based on  tables  files         bytes\n");
    list_text(info);
}

static int list(const char *dir, int json)
{
    struct listing l = {.list = json ? json_array() : NULL};
    paramo_err err = paramo_checkpoint_list(dir, list_one, &l);
    if (err) {
        json_decref(l.list);
        return failed(err);
    }
    int code = json ? admin_json_print(VERB, l.list, 0) : CODE_DONE;
    if (!json && !l.shown)
        (void)printf("no checkpoints\n");
    return code == CODE_DONE && l.damaged ? CODE_DATA : code;
}

static int print_verified(const paramo_checkpoint *checkpoint, const paramo_checkpoint_contents *found,
                          int json)
{
    paramo_checkpoint_info info = {.size = sizeof info};
    json_t *chain = json ? json_array() : NULL;
    uint64_t number = 0;
    for (uint32_t link = 0; paramo_checkpoint_info_get(checkpoint, link, &info) == PARAMO_OK; link++) {
        number = link ? number : info.number;
        if (json)
            (void)json_array_append_new(chain, json_integer((json_int_t)info.number));
        else
            (void)printf("%s%" PRIu64,
                         !link       ? "checkpoint "
                         : link == 1 ? ", based on "
                                     : ", on ",
                         info.number);
    }
    if (json)
        return admin_json_print(
            VERB,
            json_pack("{s:I, s:o, s:I, s:I, s:I, s:I, s:I}", "number", (json_int_t)number, "chain", chain,
                      "rows_blocks", (json_int_t)found->rows_blocks, "erased_blocks",
                      (json_int_t)found->erased_blocks, "cleared_blocks", (json_int_t)found->cleared_blocks,
                      "windows_blocks", (json_int_t)found->window_blocks, "bytes", (json_int_t)found->bytes),
            0);
    (void)printf(": whole; %" PRIu64 " blocks of rows, %" PRIu64 " of other things, %" PRIu64
                 " bytes in them\n",
                 found->rows_blocks, found->erased_blocks + found->cleared_blocks + found->window_blocks,
                 found->bytes);
    return CODE_DONE;
}

static int verify(const char *dir, uint64_t number, int json)
{
    paramo_checkpoint *checkpoint;
    paramo_checkpoint_contents found = {.size = sizeof found};
    paramo_err err = paramo_checkpoint_open(dir, number, &checkpoint);
    if (err)
        return failed(err);
    err = paramo_checkpoint_verify(checkpoint, &found);
    int code = err ? failed(err) : print_verified(checkpoint, &found, json);
    paramo_checkpoint_close(checkpoint);
    return code;
}

/* Makes the path absolute, because servers have other working directories. Returns -1, or the exit code. */
static int absolute(const char *dir, char path[PATH_MAX])
{
    char here[PATH_MAX] = "";
    if (*dir != '/' && !getcwd(here, sizeof here))
        return code_fail(VERB, PARAMO_E_IO, strerror(errno));
    if (snprintf(path, PATH_MAX, "%s%s%s", here, *here ? "/" : "", dir) >= PATH_MAX)
        return code_fail(VERB, PARAMO_E_TOO_LARGE, "the path of the folder is too long");
    return -1;
}

static int ask(const struct options *o, bool load)
{
    char path[PATH_MAX];
    paramo_admin *admin = NULL;
    const char *dir = option_text(o, OPT_DIR);
    const uint64_t wait_s = option_number(o, OPT_CHECKPOINT_WAIT);
    const uint32_t wait_ms = (uint32_t)wait_s * 1000;
    const uint32_t flags = option_flag(o, OPT_INCREMENTAL) ? PARAMO_CHECKPOINT_INCREMENTAL : 0;
    uint64_t number = option_number(o, OPT_CHECKPOINT_NUMBER);
    int code = absolute(dir, path);
    if (code < 0)
        code = admin_target_open(o, wait_s, &admin);
    if (code >= 0)
        return code;
    paramo_err err = load ? paramo_admin_checkpoint_load(admin, path, number, wait_ms, &number)
                          : paramo_admin_checkpoint_save(admin, path, flags, wait_ms, &number);
    if (err)
        code = failed(err);
    else if (option_flag(o, OPT_JSON))
        code = admin_json_print(VERB, json_pack("{s:I, s:s}", "number", (json_int_t)number, "dir", path), 0);
    else
        (void)printf("checkpoint %" PRIu64 " %s %s\n", number, load ? "loaded from" : "saved in", dir);
    paramo_admin_close(admin);
    return code < 0 ? CODE_DONE : code;
}

static const char usage[] =
    "usage: paramo checkpoint save|load --scheduler HOST:PORT --dir DIR [options]\n"
    "       paramo checkpoint list DIR [--json]\n"
    "       paramo checkpoint verify DIR [--number N] [--json]\n"
    "\n"
    "save takes a checkpoint of a live job while the job continues. Every server writes its own files into "
    "DIR,\n"
    "a folder that all servers and the scheduler see. With --incremental the checkpoint contains only what "
    "has changed since the last one there. load replaces the contents of the tables by a checkpoint's, on "
    "any number of\n"
    "servers. See also --checkpoint-every and --restore of 'paramo run', 'scheduler' and 'train'.\n"
    "\n"
    "list shows the checkpoints in a folder: whole ones and their bases, unfinished ones, ones with a "
    "damaged\n"
    "manifest, and ones whose base is missing. verify reads and checks every byte of a checkpoint and of "
    "its\n"
    "bases.\n";
static const char more[] = "  paramo checkpoint save --scheduler 10.0.0.1:9000 --dir /data/ckpt\n"
                           "  paramo checkpoint list /data/ckpt\n"
                           "  paramo checkpoint verify /data/ckpt --number 7\n"
                           "\n" CODE_HELP;

static int live(const struct options *o, const char *what, bool load)
{
    const bool named = option_text(o, OPT_ADMIN_SCHEDULER) != NULL;
    if (o->words > 1)
        return options_wrong(o, "%s: --dir DIR is missing", what);
    if (!named || !option_text(o, OPT_DIR))
        return options_wrong(o, "%s: --%s is missing", what, named ? "dir" : "scheduler");
    if (!load && option_given(o, OPT_CHECKPOINT_NUMBER))
        return options_wrong(o, "--number is for load and verify: the scheduler numbers what it saves");
    if (load && option_flag(o, OPT_INCREMENTAL))
        return options_wrong(o, "--incremental is for save");
    return ask(o, load);
}

static int folder(const struct options *o, const char *what, bool verifies)
{
    if (option_given(o, OPT_ADMIN_SCHEDULER) || option_given(o, OPT_DIR) || option_flag(o, OPT_INCREMENTAL))
        return options_wrong(
            o, "%s reads a folder, not a job: --scheduler, --dir and --incremental are for save and load",
            what);
    if (o->words < 2 || !*o->word[1])
        return options_wrong(o, "%s: DIR is missing", what);
    if (verifies)
        return verify(o->word[1], option_number(o, OPT_CHECKPOINT_NUMBER), option_flag(o, OPT_JSON));
    if (option_given(o, OPT_CHECKPOINT_NUMBER))
        return options_wrong(o, "--number is for verify");
    return list(o->word[1], option_flag(o, OPT_JSON));
}

int cmd_checkpoint(int argc, char **argv)
{
    struct options o;
    int code = options_parse(&o, VERB_CHECKPOINT, argc, argv, usage, more);
    if (code >= 0)
        return code;
    if (!o.words)
        return options_wrong(&o, "a subcommand is missing: 'save', 'load', 'list' or 'verify'");
    const char *what = o.word[0];
    const bool save = strcmp(what, "save") == 0, load = strcmp(what, "load") == 0;
    const bool lists = strcmp(what, "list") == 0, verifies = strcmp(what, "verify") == 0;
    if (!save && !load && !lists && !verifies)
        return options_wrong(&o, "unknown subcommand '%s': use 'save', 'load', 'list' or 'verify'", what);
    return save || load ? live(&o, what, load) : folder(&o, what, verifies);
}
