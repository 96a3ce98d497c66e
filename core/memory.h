// Memory that is aligned for vectors and filled with zeros, and arrays that grow and never shrink.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"

namespace heedful {

inline size_t rounded_up(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Zeros, for numbers that are read as whole vectors: there is room for one more after the last.
template <typename T> T* new_zeros(size_t count) {
    size_t bytes;
    if (__builtin_mul_overflow(count, sizeof(T), &bytes) || bytes > (size_t(1) << 46)) fail("out of memory");
    bytes = rounded_up(bytes + 64, 64);
    void* raw = malloc(bytes + 64);
    if (!raw) fail("out of memory: %zu MB are not to be had", bytes >> 20);
    char* aligned = reinterpret_cast<char*>(rounded_up(reinterpret_cast<size_t>(raw) + 1, 64));
    aligned[-1] = static_cast<char>(aligned - static_cast<char*>(raw));
    memset(aligned, 0, bytes);
    return reinterpret_cast<T*>(aligned);
}

inline void free_zeros(void* memory) {
    if (!memory) return;
    char* aligned = static_cast<char*>(memory);
    free(aligned - static_cast<unsigned char>(aligned[-1]));
}

// Numbers or plain structures; what is new is zero.
template <typename T> struct Array {
    T* data = nullptr;
    size_t size = 0, room = 0;

    T& operator[](size_t place) { return data[place]; }
    const T& operator[](size_t place) const { return data[place]; }
    T* begin() { return data; }
    T* end() { return data + size; }

    // Room for so many at least.
    void reserve(size_t count) {
        if (count <= room) return;
        size_t more = count > 2 * room ? count : 2 * room;
        T* moved = new_zeros<T>(more);
        if (size) memcpy(static_cast<void*>(moved), data, size * sizeof(T));
        free_zeros(data);
        data = moved;
        room = more;
    }
    void resize(size_t count) {
        reserve(count);
        if (count > size) memset(static_cast<void*>(data + size), 0, (count - size) * sizeof(T));
        size = count;
    }
    T& add(const T& value) {
        reserve(size + 1);
        data[size] = value;
        return data[size++];
    }
    void free() {
        free_zeros(data);
        data = nullptr;
        size = room = 0;
    }
};

}  // namespace heedful
