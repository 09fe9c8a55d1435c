/* Copies that pack operands: see copies.py. */
#define _GNU_SOURCE 1
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timed.h"

enum { PITCH = 576, VECTOR = 16, TILES = 4, PANELS = 8, DEPTH = 64, MOST = 1 << 20 };

static unsigned char *from, *to;

/* Pieces of DEPTH rows, of which so many are woven. */
#define COPY(type, rows)                                                                      \
    __attribute__((noinline)) static void copy_##type##_##rows(type *restrict packed,         \
                                                               const type *restrict matrix)   \
    {                                                                                         \
        for (long k = 0; k < DEPTH / rows; k++)                                               \
            for (long t = 0; t < TILES; t++)                                                  \
                for (long n = 0; n < VECTOR; n++)                                             \
                    for (long i = 0; i < rows; i++)                                           \
                        packed[((k * TILES + t) * VECTOR + n) * rows + i] =                   \
                            matrix[(k * rows + i) * PITCH + t * VECTOR + n];                  \
    }                                                                                         \
    static void all_##type##_##rows(void)                                                     \
    {                                                                                         \
        for (long p = 0; p < PANELS; p++)                                                     \
            copy_##type##_##rows((type *)to, (const type *)from + p * TILES * VECTOR);        \
    }
#define COPIES(type) COPY(type, 1) COPY(type, 2) COPY(type, 4) COPY(type, 8) COPY(type, 16)
COPIES(int8_t)
COPIES(int16_t)
COPIES(float)

#define ROW(type)                                                                             \
    {#type, sizeof(type), {all_##type##_1, all_##type##_2, all_##type##_4, all_##type##_8,    \
                           all_##type##_16}}

int main(void)
{
    static const struct { const char *name; double size; void (*work[5])(void); } rows[] = {
        ROW(int8_t), ROW(int16_t), ROW(float)};
    from = aligned_alloc(4096, MOST);
    to = aligned_alloc(4096, MOST);
    memset(from, 1, MOST);
    memset(to, 1, MOST);
    const double clock = measured_clock();
    puts("| bytes a cycle |   copied |   2 rows |   4 rows |   8 rows |  16 rows |");
    puts("|---|---|---|---|---|---|");
    for (int n = 0; n < 3; n++) {
        printf("| %s |", rows[n].name);
        for (int k = 0; k < 5; k++) {
            const double bytes = rows[n].size * DEPTH * PANELS * TILES * VECTOR;
            printf(" %8.1f |", bytes / (clock * least(rows[n].work[k])));
        }
        puts("");
    }
    return 0;
}
