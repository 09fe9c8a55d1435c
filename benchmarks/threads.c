/* What two cores hand over to each other: see threads.py. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINE = 64, ROUNDS = 60, SKIPPED = 5, MEETINGS = 200, MOST = 1 << 28 };

static int here, core[2];
static unsigned turn;
static unsigned char *buffer[2];
static double result;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void meet(void)
{
    const unsigned seen = __atomic_load_n(&turn, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&here, 1, __ATOMIC_ACQ_REL) == 2) {
        __atomic_store_n(&here, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&turn, seen + 1, __ATOMIC_RELEASE);
        return;
    }
    while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) == seen) continue;
}

/* One element of each line: what counts is that lines come. */
static void take(unsigned char *p, long size)
{
    uint64_t a = 0, b = 0, c = 0, d = 0;
    for (long n = 0; n < size; n += 4 * LINE) {
        a += *(volatile uint64_t *)(p + n);
        b += *(volatile uint64_t *)(p + n + LINE);
        c += *(volatile uint64_t *)(p + n + 2 * LINE);
        d += *(volatile uint64_t *)(p + n + 3 * LINE);
    }
    volatile uint64_t sum = a + b + c + d;
    (void)sum;
}

static void give(unsigned char *p, long size)
{
    for (long n = 0; n < size; n += 8) *(volatile uint64_t *)(p + n) = (uint64_t)n;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum { BOTH, ALONE, READ_WRITTEN, WRITE_READ, WRITE_OWN, MEET };
static int what;
static long size;

/* What is not timed; then, once both are ready, what is. */
static void *one(void *number)
{
    const int me = (int)(intptr_t)number;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core[me], &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    static double times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        if (me == 1 && what == READ_WRITTEN) give(buffer[0], size);
        if (me == 1 && what == WRITE_READ) take(buffer[0], size);
        meet();
        const double start = now();
        if (what == BOTH || (me == 0 && (what == ALONE || what == READ_WRITTEN)))
            take(buffer[me], size);
        if (me == 0 && (what == WRITE_READ || what == WRITE_OWN)) give(buffer[0], size);
        for (int n = 0; what == MEET && n < MEETINGS; n++) meet();
        if (me == 0) times[round] = now() - start;
        meet();
    }
    if (me == 0) {
        qsort(times + SKIPPED, ROUNDS - SKIPPED, sizeof *times, by_value);
        result = times[SKIPPED + (ROUNDS - SKIPPED) / 2];
    }
    return NULL;
}

static double timed(int kind, long bytes)
{
    what = kind;
    size = bytes;
    pthread_t other;
    pthread_create(&other, NULL, one, (void *)1);
    one((void *)0);
    pthread_join(other, NULL);
    return result;
}

int main(int count, char **names)
{
    if (count != 3) return 1;
    for (int n = 0; n < 2; n++) {
        core[n] = atoi(names[n + 1]);
        buffer[n] = aligned_alloc(1 << 21, MOST);
        memset(buffer[n], 1, MOST);
    }
    printf("a meeting of two threads: %.0f ns\n\n", timed(MEET, 0) / MEETINGS);
    static const char *const title[] = {"reads its own while the other core does", "reads its own",
                                        "reads what the other core wrote",
                                        "writes what the other core read", "writes its own"};
    puts("| GB/s of a core that |   64 KiB |  256 KiB |    1 MiB |    4 MiB |   32 MiB |  256 MiB |");
    puts("|---|---|---|---|---|---|---|");
    for (int kind = BOTH; kind <= WRITE_OWN; kind++) {
        printf("| %s |", title[kind]);
        static const long sizes[] = {1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 25, MOST};
        for (int n = 0; n < 6; n++) printf(" %8.1f |", (double)sizes[n] / timed(kind, sizes[n]));
        puts("");
    }
    return 0;
}
