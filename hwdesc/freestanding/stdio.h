/* What a program of isamap needs of <stdio.h>, where there is no C library. */
#pragma once
#include <stddef.h>

typedef struct isamap_file { int number; } FILE;
extern FILE *const stdin, *const stdout;
size_t fread(void *to, size_t width, size_t count, FILE *file);
size_t fwrite(const void *from, size_t width, size_t count, FILE *file);
int fflush(FILE *file);
