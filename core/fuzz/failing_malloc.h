// Read before each file of the core, so that a target decides when memory runs out.
#pragma once

#include <stdlib.h>

extern "C" void* fuzz_malloc(size_t bytes);
#define malloc fuzz_malloc
