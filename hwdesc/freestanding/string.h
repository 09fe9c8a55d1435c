/* What a program of isamap, or a compiler on its own account, needs of <string.h>, where there is no
   C library. */
#pragma once
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
int memcmp(const void *one, const void *other, size_t bytes);

/* Without a library a compiler does not take the names for its own functions, which are made in line. */
#define memcpy(to, from, bytes) __builtin_memcpy(to, from, bytes)
#define memset(to, byte, bytes) __builtin_memset(to, byte, bytes)
