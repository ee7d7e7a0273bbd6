/*
 * The calls of user tasks that the application has made, and what has run of each: types, and where they are kept. It
 * must never judge. Tests: test/sim/test_play.c.
 */
#ifndef SIM_TASK_CALLS_H
#define SIM_TASK_CALLS_H

#include "paramo/task.h"
#include "sim/fault.h"

struct world;
struct machine;

enum {
    TASK_CALLS = 1024, /* of a job */
    TASK_AFTER = 3,    /* the most calls that a call comes after */
    TASK_WORDS = 40,   /* of a payload, at most: several chunks */
    TASK_ANSWER = 2,   /* words of an answer: the call, and the node */
    TASK_RECENT = 8    /* a call comes after some of the last calls, of this many */
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
    uint64_t over_at;        /* when it had returned and no subtask was left; 0: not yet */
    struct task_run *next;   /* of its machine's, until then */
};

struct task_call {
    uint32_t index;
    struct machine *machine; /* the caller */
    uint64_t caller;         /* its incarnation */
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

/* Only a share of the schedules has tasks. */
void task_calls_make(struct world *w);
void task_calls_free(struct world *w);
/* All processes have died, and another job begins. */
void task_calls_forget(struct world *w);

/* A new call; NULL: there were too many. */
struct task_call *task_calls_add(struct machine *m, unsigned customer, struct task_run *parent);
uint64_t task_calls_word(const struct task_call *call, unsigned i);
/* The call that a node has, by its payload. NULL: no call has it. */
struct task_call *task_calls_find(const struct world *w, const paramo_task_info *info);

static inline bool task_run_over(const struct task_run *run)
{
    return run->over_at != 0;
}

#endif
