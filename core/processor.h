// What the processor can do and the system allows. Not every compiler's library has the table that
// __builtin_cpu_supports needs: Zig's does not.
#pragma once

#if defined(HEEDFUL_X86)
#include <cpuid.h>

namespace heedful {

struct Processor {
    bool avx2, avx_vnni, avx512_vnni, polynomials;
};

inline Processor processor() {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return {};
    const bool polynomials = (c >> 1 & 1) && (c >> 19 & 1);
    const bool fma = c >> 12 & 1, avx = c >> 28 & 1, told = c >> 27 & 1;
    if (!told || !avx || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return {false, false, false, polynomials};
    // The registers that the system saves for each thread.
    unsigned kept, high;
    __asm__("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
    const bool halves = (kept & 0x06) == 0x06;
#if defined(__APPLE__)
    const bool whole = halves;  // enabled at their first use
#else
    const bool whole = (kept & 0xe6) == 0xe6;
#endif
    const bool avx2 = fma && (b >> 5 & 1);
    const bool foundation = b >> 16 & 1, dq = b >> 17 & 1, bw = b >> 30 & 1, vl = b >> 31 & 1, vnni = c >> 11 & 1;
    // The leaf's first page says how many more it has.
    const bool short_vnni = a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
    return {halves && avx2, halves && avx2 && short_vnni, whole && avx2 && foundation && dq && bw && vl && vnni,
            polynomials};
}

}  // namespace heedful
#endif
