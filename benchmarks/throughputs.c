/* Reciprocal throughputs of vector instructions: see throughputs.py. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LOOPS = 4000, ROUNDS = 400, UNROLLED = 12 };

static unsigned char from[4096] __attribute__((aligned(4096)));

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* A loop of twelve instructions, each on a register of its own (%%ymm0 to 11), of constants. */
#define TWELVE(I)                                                                                  \
    I("0") I("1") I("2") I("3") I("4") I("5") I("6") I("7") I("8") I("9") I("10") I("11")
#define CLOBBERED                                                                                  \
    "ymm0", "ymm1", "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8", "ymm9", "ymm10",       \
        "ymm11", "ymm12", "ymm13", "ymm14", "ymm15", "memory", "cc"
#define LOOP(NAME, BODY)                                                                           \
    __attribute__((noinline)) static void NAME(void)                                               \
    {                                                                                              \
        long n = LOOPS;                                                                            \
        __asm__ volatile("vzeroall\n1:\n" BODY "dec %0\njnz 1b\n" : "+r"(n) : "r"(from) : CLOBBERED); \
    }

#define FMA(R) "vfmadd231ps %%ymm12, %%ymm13, %%ymm" R "\n"
#define FADD(R) "vaddps %%ymm12, %%ymm13, %%ymm" R "\n"
#define FMUL(R) "vmulps %%ymm12, %%ymm13, %%ymm" R "\n"
#define FMAX(R) "vmaxps %%ymm12, %%ymm13, %%ymm" R "\n"
#define FCMP(R) "vcmpps $1, %%ymm12, %%ymm13, %%ymm" R "\n"
#define CVT(R) "vcvtdq2ps %%ymm12, %%ymm" R "\n"
#define CVTPH(R) "vcvtph2ps %%xmm12, %%ymm" R "\n"
#define ROUND(R) "vroundps $0, %%ymm12, %%ymm" R "\n"
#define MADDWD(R) "vpmaddwd %%ymm12, %%ymm13, %%ymm" R "\n"
#define MADDUBSW(R) "vpmaddubsw %%ymm12, %%ymm13, %%ymm" R "\n"
#define MULLD(R) "vpmulld %%ymm12, %%ymm13, %%ymm" R "\n"
#define MULLW(R) "vpmullw %%ymm12, %%ymm13, %%ymm" R "\n"
#define PADDD(R) "vpaddd %%ymm12, %%ymm13, %%ymm" R "\n"
#define PAND(R) "vpand %%ymm12, %%ymm13, %%ymm" R "\n"
#define PMAXSD(R) "vpmaxsd %%ymm12, %%ymm13, %%ymm" R "\n"
#define PCMPGTD(R) "vpcmpgtd %%ymm12, %%ymm13, %%ymm" R "\n"
#define SHIFT(R) "vpslld $16, %%ymm12, %%ymm" R "\n"
#define BLENDV(R) "vblendvps %%ymm12, %%ymm13, %%ymm14, %%ymm" R "\n"
#define UNPACK(R) "vpunpcklbw %%ymm12, %%ymm13, %%ymm" R "\n"
#define PERMQ(R) "vpermq $216, %%ymm12, %%ymm" R "\n"
#define PACK(R) "vpackssdw %%ymm12, %%ymm13, %%ymm" R "\n"
#define WIDEN(R) "vpmovzxbw %%xmm12, %%ymm" R "\n"
#define LOAD(R) "vmovups (%1), %%ymm" R "\n"
#define BROADCAST(R) "vbroadcastss (%1), %%ymm" R "\n"
#define WIDENED(R) "vpmovzxbw (%1), %%ymm" R "\n"
#define WIDENED_BD(R) "vpmovzxbd (%1), %%ymm" R "\n"
#define BROADCAST_B(R) "vpbroadcastb (%1), %%ymm" R "\n"
#define MASKED(R) "vmaskmovps (%1), %%ymm12, %%ymm" R "\n"
#define STORE(R) "vmovups %%ymm" R ", (%1)\n"
#define STORE_X(R) "vmovups %%xmm" R ", (%1)\n"
#define DIV(R) "vdivps %%ymm12, %%ymm13, %%ymm" R "\n"
#define SQRT(R) "vsqrtps %%ymm12, %%ymm" R "\n"
#define ADD(R) "add $1, %%rax\n"

#define ALL(DO)                                                                                    \
    DO(FMA) DO(FADD) DO(FMUL) DO(FMAX) DO(FCMP) DO(CVT) DO(CVTPH) DO(ROUND) DO(DIV) DO(SQRT)       \
    DO(MADDWD) DO(MADDUBSW) DO(MULLD) DO(MULLW) DO(PADDD) DO(PAND) DO(PMAXSD) DO(PCMPGTD)          \
    DO(SHIFT) DO(BLENDV) DO(UNPACK) DO(PERMQ) DO(PACK) DO(WIDEN)                                   \
    DO(LOAD) DO(BROADCAST) DO(WIDENED) DO(WIDENED_BD) DO(BROADCAST_B) DO(MASKED)                   \
    DO(STORE) DO(STORE_X)
#define PAIRS(DO)                                                                                  \
    DO(FMA, FADD) DO(FMA, PADDD) DO(FADD, PADDD) DO(FMA, MADDWD) DO(MADDWD, PADDD)                 \
    DO(PADDD, UNPACK) DO(FADD, UNPACK) DO(FMA, LOAD) DO(FMA, WIDENED) DO(LOAD, STORE)              \
    DO(CVT, FADD) DO(CVT, PADDD) DO(FMAX, FMA)

#define ALONE(I) LOOP(loop_##I, TWELVE(I))
#define BOTH(I, J) LOOP(loop_##I##_##J, TWELVE(I) TWELVE(J))
ALL(ALONE)
PAIRS(BOTH)

__attribute__((noinline)) static void chain(void)
{
    long n = LOOPS;
    __asm__ volatile("1:\n" TWELVE(ADD) "dec %0\njnz 1b\n" : "+r"(n) : "r"(from) : "rax", "cc");
}

static double timed(void (*loop)(void))
{
    double least = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = now();
        loop();
        const double taken = now() - start;
        least = taken < least ? taken : least;
    }
    return least / ((double)LOOPS * UNROLLED);
}

int main(void)
{
    memset(from, 0, sizeof from);
    const double cycle = timed(chain);
    puts("| instruction | cycles |\n|---|---|");
#define TELL(I) printf("| %s | %.2f |\n", #I, timed(loop_##I) / cycle);
    ALL(TELL)
#define TELL_BOTH(I, J) printf("| %s and %s | %.2f |\n", #I, #J, timed(loop_##I##_##J) / cycle);
    PAIRS(TELL_BOTH)
    return 0;
}
