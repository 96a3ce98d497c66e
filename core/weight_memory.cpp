#include "weight_memory.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace heedful {

static const size_t LARGE_PAGE = size_t(1) << 21;

void WeightMemory::open(size_t bytes) {
    const size_t aligned = bytes < LARGE_PAGE ? 64 : LARGE_PAGE;
    raw = static_cast<char*>(calloc(bytes + aligned, 1));
    if (!raw) return;
    next = reinterpret_cast<char*>(rounded_up(reinterpret_cast<size_t>(raw), aligned));
    end = next + bytes;
#if defined(__linux__)
    // Before anything is written to it; a system without large pages uses small ones.
    if (aligned == LARGE_PAGE) madvise(next, bytes, MADV_HUGEPAGE);
#endif
}

void WeightMemory::free() {
    ::free(raw);
    raw = next = end = nullptr;
}

}  // namespace heedful
