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

// Lets a failure that `guarded` has stopped go on, after what had to be done.
[[noreturn]] void fail_again();

// Runs a function in this thread; 0, or 1 if it failed. Never inlined: what the function has written before it failed
// would be in registers of the caller, which are as they were when it began.
template <typename Function> __attribute__((noinline)) int guarded(Function&& function) {
    jmp_buf here;
    jmp_buf* before = failure().back;
    failure().back = &here;
    int failed = setjmp(here);
    if (!failed) function();
    failure().back = before;
    return failed;
}

}  // namespace heedful
