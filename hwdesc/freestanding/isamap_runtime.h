/* The C library of a program that has none, put after the program's text.

   Before it stands what differs from machine to machine: isamap_read(to, bytes) and
   isamap_write(from, bytes), which return the bytes moved or a number below 1; isamap_end(status);
   and the entry of the program, which calls isamap_main(). */
#pragma once
#include <isamap_math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ISAMAP_HEAP
#define ISAMAP_HEAP (1 << 26) /* bytes of all that malloc gives */
#endif

static FILE isamap_in = {0}, isamap_out = {1};
FILE *const stdin = &isamap_in, *const stdout = &isamap_out;

/* No division: 32-bit machines call a library for that of 64 bits. */
static size_t isamap_whole(size_t bytes, size_t width)
{
    size_t count = 0;
    for (; bytes >= width; bytes -= width) ++count;
    return count;
}

size_t fread(void *to, size_t width, size_t count, FILE *file)
{
    size_t done = 0;
    (void)file;
    while (done < width * count) {
        const long more = isamap_read((char *)to + done, width * count - done);
        if (more < 1) return isamap_whole(done, width);
        done += (size_t)more;
    }
    return count;
}

size_t fwrite(const void *from, size_t width, size_t count, FILE *file)
{
    size_t done = 0;
    (void)file;
    while (done < width * count) {
        const long more = isamap_write((const char *)from + done, width * count - done);
        if (more < 1) return isamap_whole(done, width);
        done += (size_t)more;
    }
    return count;
}

int fflush(FILE *file)
{
    (void)file;
    return 0;
}

_Noreturn void exit(int status)
{
    for (;;) isamap_end(status);
}

static char isamap_heap[ISAMAP_HEAP] __attribute__((aligned(64)));
static size_t isamap_taken;

void *malloc(size_t bytes)
{
    const size_t room = (bytes + 63) & ~(size_t)63;
    if (room < bytes || room > sizeof isamap_heap - isamap_taken) return NULL;
    void *const found = isamap_heap + isamap_taken;
    isamap_taken += room;
    return found;
}

void free(void *place)
{
    (void)place;
}

#undef memcpy
#undef memset

/* A compiler must not make calls of these functions out of their own loops. */
#define ISAMAP_PLAIN __attribute__((used, noinline))
#if defined(__clang__)
#define ISAMAP_LOOP _Pragma("clang loop vectorize(disable) unroll(disable)")
#else
#define ISAMAP_LOOP
#endif

ISAMAP_PLAIN void *(memcpy)(void *restrict to, const void *restrict from, size_t bytes)
{
    volatile char *target = to;
    const char *source = from;
    ISAMAP_LOOP for (; bytes > 0; --bytes) *target++ = *source++;
    return to;
}

ISAMAP_PLAIN void *(memmove)(void *to, const void *from, size_t bytes)
{
    volatile char *target = to;
    const char *source = from;
    if ((uintptr_t)to <= (uintptr_t)from) return (memcpy)(to, from, bytes);
    ISAMAP_LOOP while (bytes > 0) --bytes, target[bytes] = source[bytes];
    return to;
}

ISAMAP_PLAIN void *(memset)(void *to, int byte, size_t bytes)
{
    volatile char *target = to;
    ISAMAP_LOOP for (; bytes > 0; --bytes) *target++ = (char)byte;
    return to;
}

ISAMAP_PLAIN int memcmp(const void *one, const void *other, size_t bytes)
{
    const unsigned char *a = one, *b = other;
    for (; bytes > 0; --bytes, ++a, ++b)
        if (*a != *b) return *a < *b ? -1 : 1;
    return 0;
}

int main(void);

__attribute__((used)) _Noreturn void isamap_main(void)
{
    exit(main());
}
