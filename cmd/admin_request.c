#include "cmd/admin_request.h"

#include "env/lane.h"

#include <stdatomic.h>
#include <stdlib.h>

struct visit {
    struct lane_task task;
    struct admin_query_config config;
    struct lane *lane;
    struct admin_request *o;
    paramo_err status;
    char text[ERR_TEXT_MAX];
    atomic_bool over;
};

static void visit_over(void *arg, paramo_err status, struct admin_query_result *result)
{
    struct visit *v = arg;
    v->status = status;
    err_text_copy(v->text);
    v->o->view = result->view;
    v->o->status = result->status;
    v->o->number = result->number;
    *result = (struct admin_query_result){0}; /* they are the caller's */
    struct lane *lane = v->lane;
    atomic_store(&v->over, true);
    lane_notify(lane);
}

static void visit_begin(struct lane_task *task)
{
    struct visit *v = container_of(task, struct visit, task);
    struct admin_query *admin_query;
    paramo_err err = admin_query_start(&v->config, &admin_query);
    if (err)
        visit_over(v, err, &(struct admin_query_result){0});
}

static bool visit_is_over(void *arg)
{
    return atomic_load(&((struct visit *)arg)->over);
}

int admin_request_target(const char *verb, const struct admin_target *where, char secret[TOKEN_BYTES],
                         struct admin_request *o)
{
    const char *token = where->token ? where->token : getenv("PARAMO_TOKEN");
    if (where->token_file) {
        int code = token_read(verb, where->token_file, secret);
        if (code)
            return code;
        token = secret;
    }
    o->scheduler = where->scheduler;
    o->token = token ? token : "";
    return -1;
}

paramo_err admin_request_run(struct admin_request *o)
{
    struct van *van;
    struct env *env = env_real();
    struct visit v = {.task.run = visit_begin, .o = o};
    paramo_err err = van_tcp_create(env, &van);
    if (err)
        return err;
    err = lane_create(env, "pm-admin client", LANE_NO_SPIN, &v.lane);
    if (!err) {
        v.config = (struct admin_query_config){.van = van,
                                               .lane = v.lane,
                                               .scheduler = o->scheduler,
                                               .token = o->token,
                                               .incarnation = env_random(env) | 1,
                                               .deadline = env_now(env) + o->wait_s * ENV_SEC,
                                               .ckpt = o->ckpt,
                                               .load = o->load,
                                               .drain = o->drain,
                                               .status = o->want_status,
                                               .done = visit_over,
                                               .arg = &v};
        lane_post(v.lane, &v.task);
        err = lane_wait(v.lane, visit_is_over, &v, UINT64_MAX);
        lane_destroy(v.lane);
        if (!err && v.status)
            err = err_set(v.status, "%s", v.text);
    }
    van_destroy(van);
    return err;
}
