/* What a program of isamap needs of <stdlib.h>, where there is no C library. */
#pragma once
#include <stddef.h>

_Noreturn void exit(int status);
void *malloc(size_t bytes);
void free(void *place);
