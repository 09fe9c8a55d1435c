/* Panels of rows that are read from the second cache: see rows.py. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef float line __attribute__((vector_size(64), aligned(64)));
#define LOAD(place) (*(volatile line *)(place))

enum { LINE = 64, WIDE = 8, ROUNDS = 2000, MOST = 1 << 21 };

static unsigned char *from;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* Reads panels of so many lines of each row, one panel after the other. */
__attribute__((noinline)) static void panels(long pitch, long rows, int beside)
{
    for (int c = 0; c < WIDE; c += beside)
        for (long r = 0; r < rows; r++)
            for (int b = 0; b < beside; b++) (void)LOAD(from + r * pitch + LINE * (c + b));
}

static double timed(long pitch, long rows, int beside)
{
    double least = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = now();
        panels(pitch, rows, beside);
        const double taken = now() - start;
        least = taken < least ? taken : least;
    }
    return least / (double)(rows * WIDE);
}

int main(void)
{
    from = aligned_alloc(MOST, MOST);
    memset(from, 0, MOST);
    static const long pitches[] = {576, 1088, 1024, 2048, 2112, 3136, 4160};
    const double one = timed(WIDE * LINE, 448, WIDE);
    puts("| rows that lie | of a panel | 1 line | 2 lines | 4 lines | 8 lines |");
    puts("|---|---|---|---|---|---|");
    for (unsigned n = 0; n < sizeof pitches / sizeof *pitches; n++) {
        /* As many rows as fill a good part of the second cache with the lines that are read. */
        const long rows = MOST / pitches[n] < 448 ? MOST / pitches[n] : 448;
        printf("| %ld bytes apart | %ld rows |", pitches[n], rows);
        for (int b = 1; b <= WIDE; b *= 2) printf(" %6.2f |", timed(pitches[n], rows, b) / one);
        puts("");
    }
    return 0;
}
