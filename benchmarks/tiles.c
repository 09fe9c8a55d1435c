/* Cycles that moves of tiles (AMX), and what follows a product of them, take on this core.
 *
 * A line for each: a name, and cycles of a repetition, one behind the other, operands in the first
 * cache unless it says something else.  A cycle is a third of what a multiplication in a chain of these takes. */
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tile_shape.h"

#define TIMES 1000000
static char from[1 << 16] __attribute__((aligned(64))), to[1 << 16] __attribute__((aligned(64)));
static char many[1 << 19] __attribute__((aligned(64))); /* more than a first cache, less than a second */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * t.tv_sec + t.tv_nsec;
}

static double cycle(void)
{
    uint64_t x = 3;
    const double start = now();
    for (int i = 0; i < TIMES; i++)
        __asm__ volatile("imul %0, %0\n imul %0, %0\n imul %0, %0\n imul %0, %0" : "+r"(x));
    return (now() - start) / TIMES / 4 / 3;
}

#define LOAD(r, m, pitch)                                                                          \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #r : : "r"(m), "r"((int64_t)(pitch)) : "memory")
#define STORE(r, m, pitch)                                                                         \
    __asm__ volatile("tilestored %%tmm" #r ", (%0,%1,1)"                                           \
                     : : "r"(m), "r"((int64_t)(pitch)) : "memory")
#define LOAD_PAST(r, m, pitch)                                                                     \
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm" #r                                             \
                     : : "r"(m), "r"((int64_t)(pitch)) : "memory")
#define MULTIPLY_BY(c, a, b) __asm__ volatile("tdpbf16ps %tmm" #b ", %tmm" #a ", %tmm" #c)
/* Four products of two tiles of a panel of 32 KiB and two of a stream of 512 KiB. */
#define STEP(HOW)                                                                                  \
    const char *const b = many + 2048 * (i % 256), *const a = from + 2048 * (i % 16);              \
    HOW(5, b, 64);                                                                                 \
    HOW(6, b + 1024, 64);                                                                          \
    LOAD(4, a, 64);                                                                                \
    MULTIPLY_BY(0, 4, 5);                                                                          \
    MULTIPLY_BY(1, 4, 6);                                                                          \
    LOAD(7, a + 1024, 64);                                                                         \
    MULTIPLY_BY(2, 7, 5);                                                                          \
    MULTIPLY_BY(3, 7, 6)
#define MULTIPLY(c) __asm__ volatile("tdpbf16ps %tmm6, %tmm7, %tmm" #c)
#define EACH(NAME, ...)                                                                            \
    do {                                                                                           \
        double least = 1e30;                                                                       \
        for (int round = 0; round < 5; round++) {                                                  \
            const double start = now();                                                            \
            for (int i = 0; i < TIMES / 10; i++) {                                                 \
                __VA_ARGS__;                                                                       \
            }                                                                                      \
            const double took = (now() - start) / (TIMES / 10);                                    \
            least = took < least ? took : least;                                                   \
        }                                                                                          \
        printf("%-58s %6.1f\n", NAME, least / one);                                                \
    } while (0)

/* Sixteen rows of a few bytes through a buffer on the stack. */
static inline void part(int64_t bytes)
{
    __m512i rows[16];
    for (int r = 0; r < 16; r++)
        rows[r] = _mm512_maskz_loadu_epi8(_bzhi_u64(~0ull, bytes), from + 128 * r);
    LOAD(1, rows, 64);
}

static inline void rounded(const __m512i *rows)
{
    for (int r = 0; r < 16; r++)
        _mm256_storeu_si256((__m256i *)(to + 64 * r),
                            (__m256i)_mm512_cvtneps_pbh(_mm512_castsi512_ps(rows[r])));
}

static inline void rounded_by_two(const __m512i *rows)
{
    for (int r = 0; r < 16; r += 2) {
        const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(_mm512_castsi512_ps(rows[r + 1]),
                                                          _mm512_castsi512_ps(rows[r]));
        _mm256_storeu_si256((__m256i *)(to + 64 * r), _mm512_castsi512_si256(both));
        _mm256_storeu_si256((__m256i *)(to + 64 * r + 64), _mm512_extracti64x4_epi64(both, 1));
    }
}

int main(void)
{
    if (syscall(SYS_arch_prctl, 0x1023, 18)) {
        puts("none");
        return 0;
    }
    __asm__ volatile("ldtilecfg %0" : : "m"(whole_tiles));
    const double one = cycle();
    static __m512i rows[16], others[16];
    EACH("load a tile whose rows are lines", LOAD(1, from, 64));
    EACH("load a tile whose rows are lines, 1088 bytes apart", LOAD(1, from, 1088));
    for (int i = 0; i < 1 << 19; i++) many[i] = 63;
    for (int i = 0; i < 1 << 16; i++) from[i] = 63;
    EACH("load a tile from the second cache", LOAD(1, many + 1024 * (i % 512), 64));
    EACH("load a tile whose rows lie across lines", LOAD(1, from + 32, 64));
    EACH("load a part of a tile through the stack", part(32));
    EACH("load it and multiply by it", part(32); MULTIPLY(0));
    EACH("store a tile", STORE(0, to, 64));
    EACH("multiply", MULTIPLY(0));
    EACH("four dot products of bf16",
         __asm__ volatile("vdpbf16ps %zmm0, %zmm0, %zmm1\n vdpbf16ps %zmm0, %zmm0, %zmm2\n"
                          "vdpbf16ps %zmm0, %zmm0, %zmm3\n vdpbf16ps %zmm0, %zmm0, %zmm4\n"));
    EACH("round the rows of a tile to bf16, one by one", rounded(rows));
    EACH("round the rows of a tile to bf16, two by two", rounded_by_two(rows));
    EACH("store a tile and round other rows", STORE(0, others, 64); rounded_by_two(rows));
    EACH("store a tile and round its rows", STORE(0, rows, 64); rounded_by_two(rows));
    EACH("four products of a panel of 32 KiB and a stream", STEP(LOAD));
    EACH("four, the stream past the first cache", STEP(LOAD_PAST));
    __asm__ volatile("tilerelease");
    return 0;
}
