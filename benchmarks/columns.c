/* Lines that are stored down columns: see columns.py. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef float line __attribute__((vector_size(64), aligned(64)));
#define STORE(place) (*(volatile line *)(place) = (line){1})

enum { LINE = 64, COLUMNS = 48, ROWS = 128, ROUNDS = 300, MOST = 1 << 21 };

static unsigned char *to;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* Stores so many lines side by side, row after row, then the next ones. */
__attribute__((noinline)) static void columns(long pitch, int beside)
{
    for (int c = 0; c < COLUMNS; c += beside)
        for (int r = 0; r < ROWS; r++)
            for (int b = 0; b < beside; b++) STORE(to + r * pitch + LINE * (c + b));
}

static double timed(long pitch, int beside)
{
    double least = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = now();
        columns(pitch, beside);
        const double taken = now() - start;
        least = taken < least ? taken : least;
    }
    return least / (ROWS * COLUMNS);
}

int main(void)
{
    to = aligned_alloc(MOST, MOST);
    memset(to, 1, MOST);
    static const long pitches[] = {3072, 3136, 4096, 4160};
    static const int sides[] = {1, 2, 4, 8, 16};
    puts("| rows that lie | along rows |   1 line |  2 lines |  4 lines |  8 lines | 16 lines |");
    puts("|---|---|---|---|---|---|---|");
    for (int n = 0; n < 4; n++) {
        printf("| %ld bytes apart | %8.2f |", pitches[n], timed(pitches[n], COLUMNS));
        for (int k = 0; k < 5; k++) printf(" %8.2f |", timed(pitches[n], sides[k]));
        puts("");
    }
    return 0;
}
