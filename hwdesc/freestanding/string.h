/* What a program of isamap, or a compiler on its own account, needs of <string.h>, where there is no
   C library. */
#pragma once
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
int memcmp(const void *one, const void *other, size_t bytes);

/* Without a C library a compiler takes these for functions like any other: by these names it makes a
   load of a copy of four bytes. */
#define memcpy(to, from, bytes) __builtin_memcpy(to, from, bytes)
#define memmove(to, from, bytes) __builtin_memmove(to, from, bytes)
#define memset(to, byte, bytes) __builtin_memset(to, byte, bytes)
