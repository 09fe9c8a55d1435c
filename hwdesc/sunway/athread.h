/* The calls of athread by which the management core of a Sunway core group starts the 64 compute cores,
   played by one thread of this machine: each core is a context of its own that runs until it has to wait.
   What is waited for and never comes is told, and the program ends. */
#ifndef ISAMAP_SUNWAY_ATHREAD_H
#define ISAMAP_SUNWAY_ATHREAD_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum {
    SUNWAY_CORES = 64,
    SUNWAY_SIDE = 8,
    SUNWAY_LDM = 64 << 10,    /* bytes of local memory of a core */
    SUNWAY_STACK = 256 << 10, /* of a context here; the frames of this machine are larger */
    SUNWAY_SLOTS = 4,         /* messages of a row or a column that a core holds until it takes them */
    SUNWAY_DMA = 64           /* transfers under way of a core */
};

typedef struct {
    char *ldm, *memory;
    size_t bytes, block, step;
    volatile int *reply;
    int put;
} sunway_transfer;

typedef struct {
    _Alignas(32) char slot[SUNWAY_SLOTS][32];
    int first, count;
} sunway_inbox;

typedef struct {
    ucontext_t context;
    sunway_inbox row, column;
    sunway_transfer transfers[SUNWAY_DMA];
    int under_way;
    size_t taken; /* bytes of local memory */
    int ended;
    unsigned arrived; /* barriers that it has come to */
    _Alignas(64) char ldm[SUNWAY_LDM];
    char stack[SUNWAY_STACK];
} sunway_core;

typedef struct {
    ucontext_t caller;
    sunway_core *cores;
    int now, idle; /* the core that runs, and how often in a row nothing was done */
    unsigned arrived;
    void (*function)(void *);
    void *argument;
} sunway_group;

static sunway_group sunway __attribute__((unused));

static inline __attribute__((unused)) void sunway_fail(const char *what)
{
    fprintf(stderr, "core %d: %s\n", sunway.now, what);
    abort();
}

static inline __attribute__((unused)) sunway_core *sunway_self(void) { return &sunway.cores[sunway.now]; }

/* Lets the others go on until what this core waits for may have come. */
static inline __attribute__((unused)) void sunway_wait(void)
{
    if (++sunway.idle > 2 * SUNWAY_CORES) sunway_fail("every core waits");
    sunway_core *self = sunway_self();
    int next = sunway.now;
    do next = (next + 1) % SUNWAY_CORES;
    while (sunway.cores[next].ended);
    if (next == sunway.now) return;
    sunway.now = next;
    swapcontext(&self->context, &sunway.cores[next].context);
}

static __attribute__((unused)) void sunway_run(void)
{
    sunway.function(sunway.argument);
    sunway_core *self = sunway_self();
    if (self->under_way) sunway_fail("it ends while transfers are under way");
    if (self->row.count || self->column.count) sunway_fail("it ends with messages that it has not taken");
    if (self->taken) sunway_fail("it ends with local memory that it has not given back");
    self->ended = 1;
    sunway.idle = 0;
    for (int n = 1; n < SUNWAY_CORES; ++n) {
        const int next = (sunway.now + n) % SUNWAY_CORES;
        if (sunway.cores[next].ended) continue;
        sunway.now = next;
        setcontext(&sunway.cores[next].context);
    }
    setcontext(&sunway.caller);
}

/* Starts a function on all cores; they run when they are joined. */
static inline __attribute__((unused)) int sunway_spawn(void (*function)(void *), void *argument)
{
    if (sunway.cores == NULL) sunway.cores = aligned_alloc(64, SUNWAY_CORES * sizeof *sunway.cores);
    if (sunway.cores == NULL) sunway_fail("no memory for the cores");
    sunway.function = function;
    sunway.argument = argument;
    sunway.now = sunway.idle = 0;
    sunway.arrived = 0;
    for (int n = 0; n < SUNWAY_CORES; ++n) {
        sunway_core *core = &sunway.cores[n];
        core->row = core->column = (sunway_inbox){.first = 0};
        core->under_way = core->ended = 0;
        core->taken = 0;
        core->arrived = 0;
        memset(core->ldm, 0xff, SUNWAY_LDM); /* what is read before it is written is no number */
        getcontext(&core->context);
        core->context.uc_stack.ss_sp = core->stack;
        core->context.uc_stack.ss_size = SUNWAY_STACK;
        core->context.uc_link = NULL;
        makecontext(&core->context, sunway_run, 0);
    }
    return 0;
}

static inline __attribute__((unused)) int sunway_join(void)
{
    swapcontext(&sunway.caller, &sunway.cores[0].context);
    return 0;
}

#define athread_init() ((void)0)
#define athread_halt() (free(sunway.cores), (void)(sunway.cores = NULL))
#define athread_spawn(function, argument) sunway_spawn((void (*)(void *))(function), (void *)(argument))
#define athread_join() sunway_join()

#endif
