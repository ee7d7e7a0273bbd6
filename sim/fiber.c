#undef _FORTIFY_SOURCE /* its longjmp() takes a jump to another stack for a mistake */
#include "sim/fiber.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <ucontext.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN
#elif __has_feature(thread_sanitizer)
#define FIBER_TSAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN
#elif defined(__SANITIZE_THREAD__)
#define FIBER_TSAN
#endif
#ifdef FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#elif defined(FIBER_TSAN)
#include <sanitizer/tsan_interface.h>

#endif

enum { STACK = 256 << 10 };

struct fiber {
    ucontext_t own, back;
    jmp_buf own_jump, back_jump;
    bool begun;
    void (*fn)(void *arg);
    void *arg;
    bool over;
    void *stack;
    void *sanitizer, *sanitizer_back; /* the sanitizers' handles of the stacks */
    const void *back_stack;
    size_t back_size;
};

/* Sanitizers must know of each change of stacks. */
static void leave(struct fiber *f, bool into)
{
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(into      ? &f->sanitizer_back
                                   : f->over ? NULL
                                             : &f->sanitizer,
                                   into ? f->stack : f->back_stack, into ? STACK : f->back_size);
#elif defined(FIBER_TSAN)
    __tsan_switch_to_fiber(into ? f->sanitizer : f->sanitizer_back, 0);
#else
    (void)f;
    (void)into;
#endif
}

static void arrive(struct fiber *f, bool into)
{
#ifdef FIBER_ASAN
    if (into)
        __sanitizer_finish_switch_fiber(f->sanitizer, &f->back_stack, &f->back_size);
    else
        __sanitizer_finish_switch_fiber(f->sanitizer_back, NULL, NULL);
#else
    (void)f;
    (void)into;
#endif
}

/* A context begins a fiber. From then on each change of stacks is a jump, because swapcontext() makes two system
 * calls for the signal mask. Sanitizers do not know such jumps. */
static void switch_into(struct fiber *f)
{
#if defined(FIBER_ASAN) || defined(FIBER_TSAN)
    if (swapcontext(&f->back, &f->own))
        abort();
#else
    if (_setjmp(f->back_jump))
        return; /* it has paused, or ended */
    if (f->begun)
        _longjmp(f->own_jump, 1);
    f->begun = true;
    (void)setcontext(&f->own);
    abort();
#endif
}

static void switch_back(struct fiber *f)
{
#if defined(FIBER_ASAN) || defined(FIBER_TSAN)
    if (f->over)
        (void)setcontext(&f->back);
    else if (!swapcontext(&f->own, &f->back))
        return; /* it is resumed */
    abort();
#else
    if (f->over || !_setjmp(f->own_jump))
        _longjmp(f->back_jump, 1);
#endif
}

/* makecontext() passes only ints. */
static void run(unsigned high, unsigned low)
{
    struct fiber *f = (struct fiber *)(uintptr_t)((uint64_t)high << 32 | low);
    arrive(f, true);
    f->fn(f->arg);
    f->over = true;
    leave(f, false);
    switch_back(f);
    abort();
}

struct fiber *fiber_new(void (*fn)(void *arg), void *arg)
{
    struct fiber *f = calloc(1, sizeof *f);
    void *stack = malloc(STACK);
    if (!f || !stack || getcontext(&f->own))
        abort();
    f->fn = fn;
    f->arg = arg;
    f->stack = stack;
    f->own.uc_stack.ss_sp = stack;
    f->own.uc_stack.ss_size = STACK;
    uint64_t at = (uint64_t)(uintptr_t)f;
    makecontext(&f->own, (void (*)(void))(uintptr_t)run, 2, (unsigned)(at >> 32), (unsigned)at);
#ifdef FIBER_TSAN
    f->sanitizer = __tsan_create_fiber(0);
#endif
    return f;
}

bool fiber_resume(struct fiber *f)
{
#ifdef FIBER_TSAN
    f->sanitizer_back = __tsan_get_current_fiber();
#endif
    leave(f, true);
    switch_into(f);
    arrive(f, false);
    return f->over;
}

void fiber_pause(struct fiber *f)
{
    leave(f, false);
    switch_back(f);
    arrive(f, true);
}

void fiber_free(struct fiber *f)
{
#ifdef FIBER_TSAN
    __tsan_destroy_fiber(f->sanitizer);
#endif
    free(f->stack);
    free(f);
}
