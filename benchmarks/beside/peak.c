/* What a core can do at most: register-only multiply-adds, reads, and copies.
 *
 *   peak f32|dot_bf16|dot_u8s8|tile_bf16|tile_u8s8     1e9 operations a second
 *   peak read BYTES                                    1e9 bytes a second, the same ones again
 *   peak copy BYTES                                    as many, read and written together
 *
 * For each line with a number of seconds, which is how long it works, it prints the rate; "none"
 * where the CPU has no such instruction. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#define IN_REGISTER "+v"
#elif defined(__aarch64__)
#define IN_REGISTER "+w"
#else
#define IN_REGISTER "+m"
#endif

#if defined(__AVX512F__)
#define WIDTH 64
#elif defined(__AVX__)
#define WIDTH 32
#else
#define WIDTH 16
#endif
typedef float vector __attribute__((vector_size(WIDTH)));

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* As many chains as latency times ports needs and 16 registers hold with the factors; the empty
 * statements keep each one in its register. */
#define CHAINS 14
#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13)
#define BEGIN(i) , c##i = x
#define STEP(i) c##i = DOT(c##i); __asm__ volatile("" : IN_REGISTER(c##i), IN_REGISTER(x));
#define CHAINS_OF(TYPE, ZERO)                                                                      \
    TYPE x = ZERO;                                                                                 \
    __asm__ volatile("" : IN_REGISTER(x));                                                         \
    TYPE zero = ZERO EACH(BEGIN);                                                                  \
    for (long n = 0; n < loops; n++) {                                                             \
        EACH(STEP)                                                                                 \
    }                                                                                              \
    (void)zero;

static double f32(long loops)
{
#define DOT(c) x * x + c
    CHAINS_OF(vector, (vector){0})
#undef DOT
    return 2.0 * (WIDTH / 4) * CHAINS;
}

#if defined(__AVX512BF16__)
#define HAS_DOT_BF16
static double dot_bf16(long loops)
{
#define DOT(c) _mm512_dpbf16_ps(c, (__m512bh)x, (__m512bh)x)
    CHAINS_OF(__m512, _mm512_setzero_ps())
#undef DOT
    return 64.0 * CHAINS;
}
#endif

#if defined(__AVX512VNNI__)
#define HAS_DOT_U8S8
static double dot_u8s8(long loops)
{
#define DOT(c) _mm512_dpbusd_epi32(c, x, x)
    CHAINS_OF(__m512i, _mm512_setzero_si512())
#undef DOT
    return 128.0 * CHAINS;
}
#elif defined(__AVXVNNI__)
#define HAS_DOT_U8S8
static double dot_u8s8(long loops)
{
#define DOT(c) _mm256_dpbusd_avx_epi32(c, x, x)
    CHAINS_OF(__m256i, _mm256_setzero_si256())
#undef DOT
    return 64.0 * CHAINS;
}
#endif

#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AMX_INT8__)
#define HAS_TILES
static int tiles(void)
{
    struct { unsigned char palette, start, none[14]; unsigned short bytes[16]; unsigned char rows[16]; }
        shape = {.palette = 1};
    if (syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18 /* tile data */))
        return 0;
    for (int i = 0; i < 8; i++)
        shape.bytes[i] = 64, shape.rows[i] = 16;
    _tile_loadconfig(&shape);
    _tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3);
    _tile_zero(4); _tile_zero(5); _tile_zero(6); _tile_zero(7);
    return 1;
}

static double tile_bf16(long loops)
{
    for (long n = 0; n < loops; n++) {
        _tile_dpbf16ps(0, 4, 6); _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6); _tile_dpbf16ps(3, 5, 7);
    }
    return 4 * 2.0 * 16 * 16 * 32;
}

static double tile_u8s8(long loops)
{
    for (long n = 0; n < loops; n++) {
        _tile_dpbusd(0, 4, 6); _tile_dpbusd(1, 4, 7);
        _tile_dpbusd(2, 5, 6); _tile_dpbusd(3, 5, 7);
    }
    return 4 * 2.0 * 16 * 16 * 64;
}
#endif

static size_t bytes;
static char *from, *to;

static double copy(long loops)
{
    for (long n = 0; n < loops; n++) {
        for (size_t i = 0; i < bytes; i += WIDTH)
            *(vector *)(to + i) = *(const vector *)(from + i);
        __asm__ volatile("" ::: "memory");
    }
    return 2.0 * bytes;
}

/* Four stretches side by side, lines asked for ahead: more of them are on their way than if one
 * stretch is read, or if hardware alone looks ahead. */
#define AHEAD 2048
static double read_all(long loops)
{
    const size_t part = bytes / 4 / (2 * WIDTH) * (2 * WIDTH);
    vector sum[8] = {{0}};
    for (long n = 0; n < loops; n++) {
        for (size_t i = 0; i < part; i += 2 * WIDTH)
            for (int k = 0; k < 4; k++) {
                const char *at = from + k * part + i;
                __builtin_prefetch(at + AHEAD);
                __builtin_prefetch(at + AHEAD + WIDTH);
                sum[2 * k] += *(const vector *)at;
                sum[2 * k + 1] += *(const vector *)(at + WIDTH);
            }
        for (size_t i = 4 * part; i < bytes; i += WIDTH)
            sum[0] += *(const vector *)(from + i);
        __asm__ volatile("" : "+m"(sum) : : "memory");
    }
    return (double)bytes;
}

/* Seconds of work before each measurement; those of calls are in worker.py. */
#define WARM 0.002

static char *room(void)
{
    char *made = aligned_alloc(4096, bytes / 4096 * 4096 + 4096);
    if (made)
        memset(made, 0, bytes);
    return made;
}

int main(int count, char **words)
{
    double (*work)(long) = NULL, seconds, taken, rate;
    const char *kind = count > 1 ? words[1] : "";
    if (!strcmp(kind, "f32"))
        work = f32;
#ifdef HAS_DOT_BF16
    if (!strcmp(kind, "dot_bf16"))
        work = dot_bf16;
#endif
#ifdef HAS_DOT_U8S8
    if (!strcmp(kind, "dot_u8s8"))
        work = dot_u8s8;
#endif
#ifdef HAS_TILES
    if (!strncmp(kind, "tile_", 5) && tiles())
        work = !strcmp(kind, "tile_bf16") ? tile_bf16 : tile_u8s8;
#endif
    if (count > 2 && (!strcmp(kind, "copy") || !strcmp(kind, "read"))) {
        work = !strcmp(kind, "copy") ? copy : read_all;
        bytes = (size_t)atol(words[2]) / (work == copy ? 2 : 1) / WIDTH * WIDTH;
        if (!bytes || !(from = room()) || !(to = work == copy ? room() : from))
            return 1;
    }
    long loops = 1;
    while (scanf("%lf", &seconds) == 1) {
        /* Others had the caches and the clock meanwhile, as with what is compared with this. */
        for (const double begun = now(); work && now() - begun < WARM;)
            work(1);
        do {
            double start = now(), own = work ? work(loops) : 0;
            taken = now() - start;
            rate = own * loops / taken * 1e-9;
            loops *= taken < seconds / 2 ? 2 : 1;
        } while (work && taken < seconds / 2);
        if (work)
            printf("%.4f\n", rate);
        else
            puts("none");
        fflush(stdout);
    }
    return 0;
}
