// Included before each file of the core, so that a target decides when memory runs out.
#pragma once

#include <stdlib.h>

extern "C" void* fuzz_malloc(size_t bytes);
extern "C" void* fuzz_calloc(size_t count, size_t size);
#define malloc fuzz_malloc
#define calloc fuzz_calloc
