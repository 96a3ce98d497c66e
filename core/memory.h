// Memory that is aligned for vectors and filled with zeros, and arrays that grow and never shrink.
//
// Each file inlines all of this: if several files had the same function, the linker would keep one of them, perhaps one
// with instructions that the processor does not have.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"

#define INLINED __attribute__((always_inline)) inline

namespace heedful {

INLINED size_t rounded_up(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Zeros, for numbers that are read as whole vectors: there is room for one more vector after the last number.
void* zeros(size_t count, size_t size);
void free_zeros(void* memory);

template <typename T> INLINED T* new_zeros(size_t count) { return static_cast<T*>(zeros(count, sizeof(T))); }

// Numbers or plain structures; new ones are zero.
template <typename T> struct Array {
    T* data = nullptr;
    size_t size = 0, room = 0;

    INLINED T& operator[](size_t place) { return data[place]; }
    INLINED const T& operator[](size_t place) const { return data[place]; }
    INLINED T* begin() { return data; }
    INLINED T* end() { return data + size; }

    // Makes room for at least so many.
    INLINED void reserve(size_t count) {
        if (count <= room) return;
        size_t more = count > 2 * room ? count : 2 * room;
        T* moved = new_zeros<T>(more);
        if (size) memcpy(static_cast<void*>(moved), data, size * sizeof(T));
        free_zeros(data);
        data = moved;
        room = more;
    }
    INLINED void resize(size_t count) {
        reserve(count);
        if (count > size) memset(static_cast<void*>(data + size), 0, (count - size) * sizeof(T));
        size = count;
    }
    INLINED T& add(const T& value) {
        reserve(size + 1);
        data[size] = value;
        return data[size++];
    }
    INLINED void free() {
        free_zeros(data);
        data = nullptr;
        size = room = 0;
    }
};

}  // namespace heedful
