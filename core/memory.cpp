#include "memory.h"

namespace heedful {

void* zeros(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > (size_t(1) << 46)) fail("out of memory");
    bytes = rounded_up(bytes + 64, 64);
    void* raw = malloc(bytes + 64);
    if (!raw) fail("out of memory: %zu MB are not to be had", bytes >> 20);
    char* aligned = reinterpret_cast<char*>(rounded_up(reinterpret_cast<size_t>(raw) + 1, 64));
    aligned[-1] = static_cast<char>(aligned - static_cast<char*>(raw));
    memset(aligned, 0, bytes);
    return aligned;
}

void free_zeros(void* memory) {
    if (!memory) return;
    char* aligned = static_cast<char*>(memory);
    free(aligned - static_cast<unsigned char>(aligned[-1]));
}

}  // namespace heedful
