// The memory of all weights of a model, in one piece, so that the system can map it with large pages: getting thousands
// of small ones takes as long as packing the weights.
#pragma once

#include "memory.h"
#include "threads.h"

namespace heedful {

struct WeightMemory {
    Mutex mutex;
    char *raw, *next, *end;  // null before the first weights come

    // Zeros, each given out only once; `size_of_all` is called at the first call, from whichever thread.
    template <typename T, typename Size> INLINED T* take(size_t count, Size&& size_of_all) {
        lock(&mutex);
        if (!raw) open(size_of_all());
        char* taken = raw ? next : nullptr;
        const size_t bytes = room_for(count, sizeof(T)), left = raw ? static_cast<size_t>(end - next) : 0;
        if (bytes <= left) next += bytes;
        unlock(&mutex);
        if (!taken || bytes > left) fail("out of memory: the weights do not fit");
        return reinterpret_cast<T*>(taken);
    }
    void free();

    // The bytes for so many numbers: whole vectors, and room for one more.
    INLINED static size_t room_for(size_t count, size_t size) { return rounded_up(count * size + 64, 64); }

  private:
    void open(size_t bytes);
};

}  // namespace heedful
