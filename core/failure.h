// How a call that cannot continue ends: a message is kept, and control returns to where the call entered.
#pragma once

#include <setjmp.h>
#include <stddef.h>

namespace heedful {

struct Failure {
    jmp_buf* back;
    char message[256];
};

// This thread's failure.
Failure& failure();

[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Continues a failure that `guarded` has stopped, after cleaning up.
[[noreturn]] void fail_again();

// Runs a function in this thread; returns 0, or 1 if it failed. Never inlined: otherwise what the function wrote before
// it failed could be in the caller's registers, which are restored to their state at the start.
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
