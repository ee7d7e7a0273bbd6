#include "node/settings.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/checkpoint/ckpt.h"
#include "cluster/view/view.h"
#include "env/log_file.h"
#include "env/process.h"
#include "ring/place.h"
#include "van/van.h"

enum { WEEK_S = 7 * 24 * 3600 };

/* How a value gets into its field. */
enum store {
    STORE_NONE, /* no field: config_env.c has the variable's meaning */
    STORE_NUMBER,
    STORE_TEXT
};

struct setting {
    paramo_option option;
    enum store store;
    size_t at, bytes; /* of the field */
    uint32_t scale;   /* the field is the value times this; 0: the value */
    uint32_t not_for; /* roles for which the variable does not count */
};

/* clang-format off */
#define NO_FIELD     STORE_NONE, 0, 0
#define NUMBER_AT(f) STORE_NUMBER, offsetof(paramo_config, f), sizeof(((paramo_config *)0)->f)
#define TEXT_AT(f)   STORE_TEXT, offsetof(paramo_config, f), sizeof(((paramo_config *)0)->f)
#define FLAG         PARAMO_OPTION_FLAG, 0, 1
#define TEXT         PARAMO_OPTION_TEXT, 0, 0
#define WORD         PARAMO_OPTION_WORD, 0, 0
#define NUMBER       PARAMO_OPTION_NUMBER

#define VAN_WORD(name) "|" #name
#define VAN_WORDS      "auto" VANS(VAN_WORD)

/* Option, variable, type with limits, meta, default, help; field; scale; roles that do not read the variable.
 * A setting has two lines where its option and its variable have different units or limits. */
static const struct setting settings[] = {
    {{NULL, "DMLC_ROLE", WORD, "scheduler|server|worker", NULL, "role of this process"}, NO_FIELD, 0, 0},
    {{NULL, "DMLC_PS_ROOT_URI", TEXT, "HOST", NULL, "host of the scheduler"}, NO_FIELD, 0, 0},
    {{NULL, "DMLC_PS_ROOT_PORT", NUMBER, 1, 65535, "PORT", NULL, "port of the scheduler"}, NO_FIELD, 0, 0},
    /* not for a scheduler: its own address is in DMLC_PS_ROOT_URI, also where several share a --meta */
    {{"scheduler", "PARAMO_SCHEDULER", TEXT, "ADDRESS", NULL,
      "the scheduler's host:port or [v6]:port, or a list with commas of the schedulers that share a --meta"},
     TEXT_AT(scheduler), 0, PARAMO_ROLE_SCHEDULER},
    {{"port", NULL, NUMBER, 1, 65535, "PORT", NULL, "port to listen on (a server: any free one)"},
     NUMBER_AT(port), 0, 0},
    {{"servers", NULL, NUMBER, 1, 1024, "S", NULL, "number of servers of the job"}, NUMBER_AT(num_servers), 0, 0},
    {{NULL, "DMLC_NUM_SERVER", NUMBER, 0, VIEW_NODES_MAX, "S", "1", "number of servers of the job"},
     NUMBER_AT(num_servers), 0, 0},
    {{"workers", NULL, NUMBER, 1, 4096, "W", NULL,
      "number of workers that the job starts with; more may join later"}, NUMBER_AT(num_workers), 0, 0},
    {{NULL, "DMLC_NUM_WORKER", NUMBER, 0, VIEW_NODES_MAX, "W", "1", "number of workers that the job starts with"},
     NUMBER_AT(num_workers), 0, 0},
    {{"replicas", "PARAMO_REPLICAS", NUMBER, 0, RING_REPLICAS_MAX, "K", "0",
      "copies of every key beside its owner's, 0 to 3: the job survives K dead servers"}, NUMBER_AT(replicas), 0, 0},
    {{"listen", "PARAMO_LISTEN", TEXT, "HOST", NULL,
      "address to listen on (127.0.0.1 if the scheduler is on this machine's loopback, otherwise the address "
      "from which it is reached)"}, TEXT_AT(listen), 0, 0},
    {{"advertise", NULL, TEXT, "HOST", NULL, "address by which others reach this server"}, TEXT_AT(advertise), 0, 0},
    {{NULL, "DMLC_NODE_HOST", TEXT, "HOST", NULL, "address on which a server or worker listens and is reached"},
     NO_FIELD, 0, 0},
    {{NULL, "DMLC_INTERFACE", TEXT, "NAME", NULL, "network interface of that address, if DMLC_NODE_HOST is not set"},
     NO_FIELD, 0, 0},
    {{NULL, "DMLC_LOCAL", NUMBER, 0, 1, "0|1", NULL, "1: all nodes are on this machine; listen on 127.0.0.1"},
     NO_FIELD, 0, 0},
    {{NULL, "PORT", NUMBER, 0, 65535, "PORT", NULL, "port on which a server or worker listens"}, NO_FIELD, 0, 0},
    {{NULL, "DMLC_PORT", NUMBER, 0, 65535, "PORT", NULL, "the same; it overrides PORT"}, NO_FIELD, 0, 0},
    {{"shards", "PARAMO_SHARDS", NUMBER, 1, 256, "N", "1", "shards (threads) of a server"}, NUMBER_AT(shards), 0, 0},
    {{"weight", "PARAMO_WEIGHT", NUMBER, 1, RING_WEIGHT_MAX, "N", "1",
      "share of the keys for each shard of this server, relative to others"}, NUMBER_AT(weight), 0, 0},
    {{"domain", "PARAMO_DOMAIN", TEXT, "NAME", NULL, "failure domain of this server, such as a rack (its host)"},
     TEXT_AT(domain), 0, 0},
    {{"rank", NULL, NUMBER, 0, 65534, "N", NULL, "wanted rank"}, NUMBER_AT(rank), 0, 0},
    {{NULL, "DMLC_RANK", NUMBER, 0, VIEW_NODES_MAX, "N", NULL, "rank that this server or worker wants"},
     NUMBER_AT(rank), 0, 0},
    {{"name", "PARAMO_NAME", TEXT, "NAME", NULL, "node name: a restarted node of this name gets its rank back"},
     TEXT_AT(name), 0, 0},
    {{"state", "PARAMO_STATE", TEXT, "DIR", NULL,
      "keep the job's state in DIR: a scheduler that was killed continues the job when it is started again. "
      "Without it the job ends with its scheduler"}, TEXT_AT(state), 0, PARAMO_ROLE_SERVER | PARAMO_ROLE_WORKER},
    {{"meta", "PARAMO_META", TEXT, "etcd://HOST:PORT[,HOST:PORT...][/JOB]", NULL,
      "keep the state in etcd, under the name JOB (job). Of several schedulers with the same --meta one leads and "
      "the others stand by"}, TEXT_AT(meta), 0, PARAMO_ROLE_SERVER | PARAMO_ROLE_WORKER},
    {{"scheduler-wait", NULL, NUMBER, 0, 86400, "SECONDS", "1",
      "how long the other nodes wait for a scheduler that died; set it longer if something restarts the scheduler. "
      "A scheduler that is only silent has at least 10 s"}, NUMBER_AT(scheduler_wait_ms), 1000, 0},
    {{NULL, "PARAMO_SCHEDULER_WAIT_MS", NUMBER, 0, WEEK_S * 1000u, "MILLISECONDS", NULL,
      "how long a node waits for a scheduler that died (1000); ten minutes if the scheduler keeps its state"},
     NUMBER_AT(scheduler_wait_ms), 0, 0},
    {{"checkpoint-dir", "PARAMO_CHECKPOINT_DIR", TEXT, "DIR", NULL,
      "folder for checkpoints, which the scheduler and all servers see"}, TEXT_AT(checkpoint_dir), 0, 0},
    {{"checkpoint-every", "PARAMO_CHECKPOINT_EVERY", NUMBER, 1, WEEK_S, "SECONDS", NULL,
      "take a checkpoint into --checkpoint-dir this often"}, NUMBER_AT(checkpoint_every_s), 0, 0},
    {{"checkpoint-full-every", "PARAMO_CHECKPOINT_FULL_EVERY", NUMBER, 1, CKPT_CHAIN_MAX, "N", "10",
      "every N-th of these checkpoints is full, the others are incremental"}, NUMBER_AT(checkpoint_full_every), 0, 0},
    {{"checkpoint-keep", "PARAMO_CHECKPOINT_KEEP", NUMBER, 0, INT32_MAX, "N", "3",
      "keep the last N of these checkpoints and their bases; 0: all"}, NUMBER_AT(checkpoint_keep), 0, 0},
    {{"checkpoint-allow", "PARAMO_CHECKPOINT_ALLOW", TEXT, "DIR[:DIR...]", NULL,
      "other folders in or below which 'paramo checkpoint' may save and load. Without this and --checkpoint-dir: "
      "any folder that is new, empty, or contains nothing but checkpoints"}, TEXT_AT(checkpoint_allow), 0, 0},
    {{"restore", "PARAMO_RESTORE", TEXT, "DIR", NULL, "begin with the last whole checkpoint of DIR"},
     TEXT_AT(restore_dir), 0, 0},
    {{"on-loss", "PARAMO_ON_LOSS", WORD, "end|restore", "end",
      "when the last server with some rows dies: end the job, or restore those rows from the last checkpoint in "
      "--checkpoint-dir"}, NUMBER_AT(on_loss), 0, 0},
    {{NULL, "PARAMO_RECOVERY_MS", NUMBER, 0, WEEK_S * 1000u, "MILLISECONDS", "0",
      "how long a scheduler waits for a restarted worker when no worker is left and some have died; 0: the job "
      "ends at once"}, NUMBER_AT(recovery_ms), 0, 0},
    {{"token", "PARAMO_TOKEN", TEXT, "TOKEN", NULL,
      "the job's secret, the same on every node; others can see an option in the process list: better in "
      "PARAMO_TOKEN or a file. Without a token a node listens on loopback only"}, TEXT_AT(token), 0, 0},
    {{"wait", NULL, NUMBER, 1, 86400, "SECONDS", "60",
      "how long to wait for the scheduler and for the job to be complete"}, NUMBER_AT(connect_timeout_ms), 1000, 0},
    {{NULL, "PARAMO_CONNECT_TIMEOUT_MS", NUMBER, 1, WEEK_S * 1000u, "MILLISECONDS", NULL,
      "how long to wait for the scheduler and for the job to be complete (60000)"},
     NUMBER_AT(connect_timeout_ms), 0, 0},
    {{NULL, "PARAMO_REQUEST_TIMEOUT_MS", NUMBER, 1, WEEK_S * 1000u, "MILLISECONDS", "60000",
      "how long to wait for the answer to a request"}, NUMBER_AT(request_timeout_ms), 0, 0},
    {{"van", NULL, WORD, VAN_WORDS, "auto",
      "auto: UCX between processes of one host and user, and over a trusted fabric; tcp otherwise"},
     TEXT_AT(van), 0, 0},
    {{NULL, "PARAMO_VAN", WORD, VAN_WORDS "|inproc", NULL, "as --van; inproc is for embedded nodes"},
     TEXT_AT(van), 0, 0},
    {{NULL, "DMLC_PS_VAN_TYPE", TEXT, "NAME", NULL,
      "ps-lite's name of a transport: tcp and ucx are those of PARAMO_VAN, the others mean auto"}, NO_FIELD, 0, 0},
    {{"trusted-fabric", "PARAMO_TRUSTED_FABRIC", FLAG, NULL, NULL,
      "tables may go to other hosts by UCX, which does not check or hide them"}, NUMBER_AT(trusted_fabric), 0, 0},
    {{NULL, "PS_RESEND", NUMBER, 0, 1, "0|1", NULL, "checked only: lost messages are always sent again"},
     NO_FIELD, 0, 0},
    {{NULL, "PS_RESEND_TIMEOUT", NUMBER, 0, WEEK_S * 1000u, "MILLISECONDS", "0",
      "time without an answer after which a request is probed, and sent again if it did not arrive; 0: measured, "
      "from 20 ms to 4 s"}, NUMBER_AT(retry_ms), 0, 0},
    {{NULL, "PS_HEARTBEAT_INTERVAL", NUMBER, 0, WEEK_S, "SECONDS", "1", "time between heartbeats; 0: 1"},
     NUMBER_AT(heartbeat_ms), 1000, 0},
    {{NULL, "PS_HEARTBEAT_TIMEOUT", NUMBER, 0, WEEK_S, "SECONDS", "10",
      "silence after which a node counts as dead; 0: 10"}, NUMBER_AT(heartbeat_timeout_ms), 1000, 0},
    {{NULL, "PS_VERBOSE", NUMBER, 0, 1000, "N", NULL, "1 logs the progress of the cluster, 2 each message"},
     NO_FIELD, 0, 0},
    {{NULL, "PARAMO_LOG_FILE", TEXT, "FILE", NULL,
      "add errors, warnings and the progress of the cluster to FILE, with times; the file is made if it is missing"},
     NO_FIELD, 0, 0},
    {{NULL, "PARAMO_LOG_FORMAT", WORD, LOG_FORMAT_WORDS, NULL,
      "lines of that file: text (the default), or a JSON object each with time, level, pid and message"},
     NO_FIELD, 0, 0},
    {{NULL, "PS_DROP_MSG", NUMBER, 0, 90, "PERCENT", "0", "drop this share of received data messages, for tests"},
     NUMBER_AT(drop_percent), 0, 0},
    {{NULL, "PARAMO_FILTER", TEXT, "push=CHAIN[;pull=CHAIN]", NULL,
      "filters of what a worker sends and receives, for all tables that they fit, such as "
      "push=keycache,lz4;pull=keycache,lz4"}, TEXT_AT(filter), 0, 0},
    {{"plugin", "PARAMO_PLUGIN", TEXT, "FILE[:FILE...]", NULL,
      "load these shared objects, which add functions, filters and tasks; each server and worker needs the same"},
     TEXT_AT(plugin), 0, 0},
    {{NULL, "PARAMO_CPU", WORD, "base|avx2|avx512|auto", NULL,
      "the widest vector instructions to use; results are the same bits. 'paramo --version' prints those in use"},
     NO_FIELD, 0, 0},
    {{NULL, "PARAMO_POLL", NUMBER, 0, 1, "0|1", NULL,
      "0: a waiting thread sleeps at once. Otherwise it polls for some microseconds first, where cores are free"},
     NO_FIELD, 0, 0},
    {{NULL, "PARAMO_NOTIFY_FD", NUMBER, 0, INT32_MAX, "FD", NULL,
      "a socket to which the scheduler writes a line 'listening', and 'complete' when all nodes have joined"},
     NUMBER_AT(notify_fd), 0, 0},
    /* fields without an option or a variable */
    {{NULL, NULL, NUMBER, 1 << 20, UINT64_C(1) << 40, "BYTES", "1073741824", "longest frame; a longer one is refused"},
     NUMBER_AT(max_message_bytes), 0, 0},
    {{NULL, NULL, NUMBER, 0, UINT32_MAX, "MILLISECONDS", "10000", "how long a request waits for its handler"},
     NUMBER_AT(handler_wait_ms), 0, 0},
};
/* clang-format on */
enum { SETTINGS = sizeof settings / sizeof *settings };

/* ---- reading a value ---------------------------------------------------------------------------------- */

static paramo_err wrong(const paramo_option *option, paramo_option_source source, const char *text,
                        const char *why)
{
    if (source == PARAMO_FROM_ENVIRONMENT)
        return err_set(PARAMO_E_INVALID, "%s=%s in the environment: %s", option->variable, text, why);
    return err_set(PARAMO_E_INVALID, "--%s '%s' %s: %s", option->name, text,
                   source == PARAMO_FROM_COMMAND_LINE ? "on the command line" : "by default", why);
}

static bool read_word(const char *words, const char *text, paramo_option_value *value)
{
    const size_t len = strlen(text);
    uint64_t which = 0;
    for (const char *word = words; len; which++) {
        const size_t word_len = strcspn(word, "|");
        if (word_len == len && memcmp(word, text, len) == 0) {
            value->number = which;
            value->text = text;
            return true;
        }
        if (!word[word_len])
            break;
        word += word_len + 1;
    }
    return false;
}

static bool read_number(const char *text, uint64_t min, uint64_t max, paramo_option_value *value)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || number < min || number > max)
        return false;
    value->number = number;
    return true;
}

static bool read_real(const char *text, bool positive, paramo_option_value *value)
{
    char *end;
    double real = strtod(text, &end);
    if (!*text || isspace((unsigned char)*text) || *end || !isfinite((float)real) || real < 0 ||
        (positive && !((float)real > 0)))
        return false;
    value->real = real;
    return true;
}

paramo_err paramo_option_read(const paramo_option *option, paramo_option_source source, const char *text,
                              paramo_option_value *value)
{
    char why[160] = "";
    paramo_option_value read = {0};
    bool right = false;
    switch (option->type) {
    case PARAMO_OPTION_FLAG:
        right = read_number(text, 0, 1, &read);
        (void)snprintf(why, sizeof why, "not 0 or 1");
        break;
    case PARAMO_OPTION_TEXT:
    case PARAMO_OPTION_LIST:
        right = *text != '\0';
        read.text = text;
        (void)snprintf(why, sizeof why, "it is empty");
        break;
    case PARAMO_OPTION_WORD:
        right = read_word(option->meta, text, &read);
        (void)snprintf(why, sizeof why, "not one of %s", option->meta);
        break;
    case PARAMO_OPTION_NUMBER:
        right = read_number(text, option->min, option->max, &read);
        (void)snprintf(why, sizeof why, "not a whole number from %llu to %llu",
                       (unsigned long long)option->min, (unsigned long long)option->max);
        break;
    case PARAMO_OPTION_POSITIVE:
    case PARAMO_OPTION_NATURAL:
        right = read_real(text, option->type == PARAMO_OPTION_POSITIVE, &read);
        (void)snprintf(why, sizeof why,
                       option->type == PARAMO_OPTION_POSITIVE ? "not a number above 0"
                                                              : "not a number of 0 or more");
        break;
    }
    if (!right)
        return wrong(option, source, text, why);
    *value = read;
    return PARAMO_OK;
}

/* ---- the fields --------------------------------------------------------------------------------------- */

paramo_err settings_keep(const char *text, const char **field)
{
    const char *kept = process_keep(text);
    if (!kept)
        return err_memory(strlen(text) + 1);
    *field = kept;
    return PARAMO_OK;
}

static void *field_of(paramo_config *config, const struct setting *s)
{
    return (char *)config + s->at;
}

static void put_number(paramo_config *config, const struct setting *s, uint64_t number)
{
    number *= s->scale ? s->scale : 1;
    if (s->bytes == sizeof(uint16_t))
        *(uint16_t *)field_of(config, s) = (uint16_t)number;
    else if (s->bytes == sizeof(uint32_t))
        *(uint32_t *)field_of(config, s) = (uint32_t)number;
    else
        *(uint64_t *)field_of(config, s) = number;
}

static paramo_err put(paramo_config *config, const struct setting *s, const paramo_option_value *value)
{
    if (s->store == STORE_TEXT)
        return settings_keep(value->text, field_of(config, s));
    if (s->store == STORE_NUMBER)
        put_number(config, s, value->number);
    return PARAMO_OK;
}

void settings_preset(paramo_config *config)
{
    for (unsigned i = 0; i < SETTINGS; i++) {
        const struct setting *s = &settings[i];
        paramo_option_value value;
        if (!s->option.preset ||
            paramo_option_read(&s->option, PARAMO_FROM_DEFAULT, s->option.preset, &value))
            continue;
        if (s->store == STORE_TEXT)
            *(const char **)field_of(config, s) = value.text;
        else
            put_number(config, s, value.number);
    }
}

paramo_err settings_variable(const char *name, paramo_option_value *value, bool *given)
{
    const char *text = process_variable(name);
    *given = text != NULL;
    if (!text)
        return PARAMO_OK;
    for (unsigned i = 0; i < SETTINGS; i++)
        if (settings[i].option.variable && strcmp(settings[i].option.variable, name) == 0)
            return paramo_option_read(&settings[i].option, PARAMO_FROM_ENVIRONMENT, text, value);
    return err_set(PARAMO_E_INTERNAL, "the table of settings has no variable %s", name);
}

paramo_err settings_environment(paramo_config *config)
{
    for (unsigned i = 0; i < SETTINGS; i++) {
        const struct setting *s = &settings[i];
        const char *text = s->option.variable ? process_variable(s->option.variable) : NULL;
        if (!text || s->store == STORE_NONE || (config->roles & s->not_for))
            continue;
        paramo_option_value value;
        paramo_err err = paramo_option_read(&s->option, PARAMO_FROM_ENVIRONMENT, text, &value);
        if (!err)
            err = put(config, s, &value);
        if (err)
            return err;
    }
    return PARAMO_OK;
}

const char **settings_text(paramo_config *config, unsigned i)
{
    for (unsigned at = 0; at < SETTINGS; at++) {
        bool again = settings[at].store != STORE_TEXT;
        for (unsigned k = 0; k < at && !again; k++)
            again = settings[k].store == STORE_TEXT && settings[k].at == settings[at].at;
        if (!again && i-- == 0)
            return field_of(config, &settings[at]);
    }
    return NULL;
}

const paramo_option *paramo_config_option(size_t i)
{
    return i < SETTINGS ? &settings[i].option : NULL;
}

paramo_err paramo_config_set(paramo_config *config, const char *name, const char *text)
{
    for (unsigned i = 0; i < SETTINGS; i++) {
        const struct setting *s = &settings[i];
        if (!s->option.name || strcmp(s->option.name, name) != 0)
            continue;
        paramo_option_value value;
        paramo_err err = paramo_option_read(&s->option, PARAMO_FROM_COMMAND_LINE,
                                            s->option.type == PARAMO_OPTION_FLAG ? "1" : text, &value);
        return err ? err : put(config, s, &value);
    }
    return err_set(PARAMO_E_INVALID, "there is no setting '%s'", name);
}
