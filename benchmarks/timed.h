/* The least of many times, in nanoseconds, and the clock beside them. */
#include <stdint.h>
#include <time.h>

enum { ROUNDS = 400 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static double least(void (*work)(void))
{
    double best = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = now();
        work();
        const double taken = now() - start;
        best = taken < best ? taken : best;
    }
    return best;
}

static void multiply(void)
{
    uint64_t x = 1;
    for (int n = 0; n < 100000; n++) __asm__ volatile("imul %0, %0" : "+r"(x));
}

/* Cycles of a nanosecond: each multiplication waits three cycles for the one before. */
static double measured_clock(void)
{
    return 300000 / least(multiply);
}
