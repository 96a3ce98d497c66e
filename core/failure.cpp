#include "failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

namespace heedful {

static thread_local Failure own_failure;

Failure& failure() { return own_failure; }

void fail(const char* format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(own_failure.message, sizeof own_failure.message, format, values);
    va_end(values);
    fail_again();
}

void fail_again() {
    if (!own_failure.back) abort();
    longjmp(*own_failure.back, 1);
}

}  // namespace heedful
