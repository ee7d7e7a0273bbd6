/*
 * The model of user tasks: which calls were made, what has run on which node, and how a call may end. It must never call or
 * run anything. Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_TASK_JUDGE_H
#define SIM_TASK_JUDGE_H

#include "paramo/task.h"
#include "sim/fault.h"

struct world;
struct machine;
struct customer;
struct task_call;

enum {
    TASK_CALLS = 1024, /* of a job */
    TASK_AFTER = 3,    /* calls that one comes after, at most */
    TASK_WORDS = 40,   /* of a payload, at most: several chunks */
    TASK_ANSWER = 2,   /* words of an answer: the call, and the node */
    TASK_RECENT = 8    /* a call comes after some of that many */
};

/* What a function does. */
enum task_work {
    TASK_ANSWERS,      /* sets its answer and returns */
    TASK_FAILS,        /* returns an error */
    TASK_PUSHES,       /* one or two pushes, both at once */
    TASK_PUSHES_PULLS, /* a push; its callback pulls; the callback of that sets the answer */
    TASK_CALLS_OTHER,  /* calls a task of another node, or of all servers, and answers when that has */
    TASK_FAILS_LATE,   /* a push; its callback makes the task fail */
    TASK_WORKS
};

/* A call at one node. */
struct task_run {
    struct task_call *call;
    struct machine *machine;
    uint32_t node;
    uint64_t incarnation;
    bool returned, answered; /* the function; the caller has the answer */
    bool pulls;              /* its push has ended, and its pull was issued */
    unsigned open;           /* subtasks whose callbacks have not returned */
    paramo_err status;       /* the first error */
};

struct task_call {
    uint32_t index;
    struct machine *machine; /* the caller */
    unsigned customer;
    struct task_run *parent; /* it is a subtask of this; NULL: the application's */
    paramo_task *parent_task;
    enum task_work work;
    uint32_t to;
    uint64_t targets[SCHEDULE_NODES_MAX]; /* incarnations of those nodes, as the caller's view had them */
    unsigned targets_count;
    bool unknown;   /* no node has the function */
    bool unwatched; /* the caller takes no answers */
    bool ordered;
    paramo_task_name name;
    struct task_call *after[TASK_AFTER];
    unsigned after_n;
    uint64_t ts, from, issued_at, deadline; /* by the caller's clock */
    bool patient;                           /* its deadline is not a short one */
    bool open, cancelled;
    bool must_fail; /* another call was cancelled because this one has failed */
    paramo_err status;
    uint64_t payload[TASK_WORDS];
    unsigned words;
    struct task_run run[SCHEDULE_NODES_MAX];
    unsigned runs, answers;
};

/* Of a world. */
struct user_tasks {
    struct dice dice;
    struct task_call *calls[TASK_CALLS];
    uint32_t count;
    uint32_t answers; /* to calls and subtasks, which do not count as steps (play.c) */
};

/* In a share of the schedules. */
void task_judge_make(struct world *w);
void task_judge_free(struct world *w);
/* All processes have died, and another job begins. */
void task_judge_forget(struct world *w);

/* A new call; NULL: there were too many. */
struct task_call *task_judge_call(struct machine *m, unsigned customer, struct task_run *parent);
uint64_t task_judge_word(const struct task_call *call, unsigned i);
/* A function runs. NULL: it must not, or what it is given is wrong. */
struct task_run *task_judge_begins(struct machine *m, const paramo_task_info *info);
void task_judge_fails(struct task_run *run, paramo_err status);
void task_judge_answered(struct task_call *call, uint32_t node, const void *answer, size_t bytes);
void task_judge_ended(struct task_call *call, paramo_err status);
/* Has the customer a call in flight that was issued up to this timestamp? */
bool task_judge_in_flight(const struct world *w, const struct customer *c, uint64_t ts);
/* After each event: what the customer of the machine's tasks keeps. */
void task_judge_check(const struct machine *m);

static inline bool task_run_over(const struct task_run *run)
{
    return run->returned && !run->open;
}

#endif
