/* Copies that turn rows into columns: see turned.py, which includes the functions. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#if defined(__AMX_BF16__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tile_shape.h"
#endif

#include "timed.h"

enum { ALL = 256, DEPTH = 64, MOST = 1 << 22, BLOCKS = 256 };

static char *from, *to;

#define TURN(bytes, type, rows)                                                                    \
    ISAMAP_COPY void loops_##bytes##_##rows(type *restrict packed, const type *restrict matrix)    \
    {                                                                                              \
        for (long n = 0; n < ALL / rows; n++)                                                      \
            for (long k = 0; k < DEPTH; k++)                                                       \
                for (long i = 0; i < rows; i++)                                                    \
                    packed[(n * DEPTH + k) * rows + i] = matrix[(n * rows + i) * DEPTH + k];       \
    }                                                                                              \
    static void all_loops_##bytes##_##rows(void)                                                   \
    {                                                                                              \
        loops_##bytes##_##rows((type *)to, (const type *)from);                                    \
    }                                                                                              \
    static void all_blocks_##bytes##_##rows(void)                                                  \
    {                                                                                              \
        for (long n = 0; n < ALL / rows; n++)                                                      \
            isamap_turn##bytes(to + n * rows * DEPTH * bytes, rows * bytes, rows * bytes, 1,       \
                               from + n * rows * DEPTH * bytes, DEPTH * bytes, rows, DEPTH);       \
    }
#define TURNS(bytes, type)                                                                         \
    TURN(bytes, type, 16) TURN(bytes, type, 24) TURN(bytes, type, 29) TURN(bytes, type, 64)
TURNS(1, uint8_t)
TURNS(2, uint16_t)
TURNS(4, uint32_t)
TURNS(8, uint64_t)

#if defined(__AMX_BF16__)
enum { PITCH = 4 * 528 };
static float aside[4][256] __attribute__((aligned(64)));

/* Blocks of four tiles, each the sum of sixteen products. */
static inline void products(void)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (long k = 0; k < 16; k++) {
        _tile_loadd(4, from + 4096 * k, 64);
        _tile_loadd(5, from + 4096 * k + 1024, 64);
        _tile_dpbf16ps(0, 4, 5);
        _tile_loadd(6, from + 4096 * k + 2048, 64);
        _tile_dpbf16ps(1, 6, 5);
        _tile_loadd(7, from + 4096 * k + 3072, 64);
        _tile_dpbf16ps(2, 4, 7);
        _tile_dpbf16ps(3, 6, 7);
    }
}
#define BLOCK(name, ...)                                                                           \
    static void name(void)                                                                         \
    {                                                                                              \
        for (long n = 0; n < BLOCKS; n++) {                                                        \
            char *const place = to + 32L * PITCH * (n / 16) + 128 * (n % 16);                      \
            products();                                                                            \
            __VA_ARGS__;                                                                           \
            __asm__ volatile("" : : "r"(place) : "memory");                                        \
        }                                                                                          \
    }
#define STORE(t, at) _tile_stored(t, place + at, PITCH)
#define ASIDE(t, at)                                                                               \
    _tile_stored(t, aside[0], 64);                                                                 \
    isamap_turn4(place + at, PITCH, PITCH, 1, (const char *)aside[0], 64, 16, 16)
BLOCK(left, (void)0)
BLOCK(stored, STORE(0, 0); STORE(1, 64); STORE(2, 16 * PITCH); STORE(3, 16 * PITCH + 64))
BLOCK(turned, ASIDE(0, 0); ASIDE(1, 64); ASIDE(2, 16 * PITCH); ASIDE(3, 16 * PITCH + 64))

static void tiles(double clock)
{
    if (syscall(SYS_arch_prctl, 0x1023, 18)) return;
    _tile_loadconfig(&whole_tiles);
    memset(from, 0, 1 << 16);
    const double none = least(left), own = least(stored), other = least(turned);
    _tile_release();
    puts("\n| cycles of a tile of f32 | |\n|---|---|");
    printf("| stored as it is | %.0f |\n", clock * (own - none) / BLOCKS / 4);
    printf("| stored aside, and turned from there | %.0f |\n", clock * (other - none) / BLOCKS / 4);
}
#endif

#define ROW(bytes)                                                                                 \
    {bytes, {all_loops_##bytes##_16, all_loops_##bytes##_24, all_loops_##bytes##_29,               \
             all_loops_##bytes##_64},                                                              \
     {all_blocks_##bytes##_16, all_blocks_##bytes##_24, all_blocks_##bytes##_29,                   \
      all_blocks_##bytes##_64}}

int main(void)
{
    static const struct { int bytes; void (*loops[4])(void), (*blocks[4])(void); } kinds[] = {
        ROW(1), ROW(2), ROW(4), ROW(8)};
    static const int rows[] = {16, 24, 29, 64};
    from = aligned_alloc(4096, MOST);
    to = (char *)aligned_alloc(4096, MOST) + 1088;
    memset(from, 1, MOST);
    memset(to, 1, MOST - 1088);
    const double clock = measured_clock();
    puts("| cycles an element | 16 rows: loops | blocks | 24: loops | blocks | 29: loops | blocks | "
         "64: loops | blocks |");
    puts("|---|---|---|---|---|---|---|---|---|");
    for (int n = 0; n < 4; n++) {
        printf("| %d bytes |", kinds[n].bytes);
        for (int k = 0; k < 4; k++) {
            const double elements = (double)(ALL / rows[k] * rows[k] * DEPTH);
            printf(" %.2f | %.2f |", clock * least(kinds[n].loops[k]) / elements,
                   clock * least(kinds[n].blocks[k]) / elements);
        }
        puts("");
    }
#if defined(__AMX_BF16__)
    tiles(clock);
#endif
    return 0;
}
