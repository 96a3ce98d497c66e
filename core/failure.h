// How a call ends that cannot go on: a sentence is kept, and control goes back to where the call came in.
#pragma once

#include <setjmp.h>
#include <stddef.h>

namespace heedful {

struct Failure {
    jmp_buf* back;
    char message[256];
};

// That of this thread.
Failure& failure();

[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Runs a function in this thread; 0, or 1 if it failed.
template <typename Function> int guarded(Function&& function) {
    jmp_buf here;
    jmp_buf* before = failure().back;
    failure().back = &here;
    int failed = setjmp(here);
    if (!failed) function();
    failure().back = before;
    return failed;
}

}  // namespace heedful
