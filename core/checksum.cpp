// The CRC-32 of weight files: at the speed of the cache if the processor multiplies polynomials, and for parts that
// several threads have summed up.
#include "interface.h"

#include <string.h>

#include "processor.h"

#if defined(HEEDFUL_X86)
#include <immintrin.h>

#define WITH_POLYNOMIALS __attribute__((target("pclmul,sse4.1")))

namespace heedful {

static uint32_t add_bytes(uint32_t state, const uint8_t* bytes, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        state ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) state = state >> 1 ^ (state & 1 ? 0xedb88320u : 0);
    }
    return state;
}

// `sum` moved on by some bits, given the `powers` of x for them, with the 16 bytes at that place added.
WITH_POLYNOMIALS static inline __m128i moved(__m128i sum, __m128i powers, __m128i bytes) {
    const __m128i low = _mm_clmulepi64_si128(sum, powers, 0x00), high = _mm_clmulepi64_si128(sum, powers, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), bytes);
}

WITH_POLYNOMIALS static inline __m128i sixteen(const uint8_t* bytes) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
}

// Four sums side by side, each over every fourth 16 bytes; `count` is a multiple of 64. The powers are from
// "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ" (Gopal et al., Intel, 2009), bits reflected.
WITH_POLYNOMIALS static uint32_t add_blocks(uint32_t state, const uint8_t* bytes, uint64_t count) {
    const __m128i by_512 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4), by_128 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    __m128i sums[4];
    for (int i = 0; i < 4; i++) sums[i] = sixteen(bytes + 16 * i);
    sums[0] = _mm_xor_si128(sums[0], _mm_cvtsi32_si128(static_cast<int>(state)));
    for (uint64_t done = 64; done < count; done += 64)
        for (int i = 0; i < 4; i++) sums[i] = moved(sums[i], by_512, sixteen(bytes + done + 16 * i));
    for (int i = 1; i < 4; i++) sums[i] = moved(sums[i - 1], by_128, sums[i]);
    uint8_t rest[16];
    memcpy(rest, &sums[3], sizeof rest);
    return add_bytes(0, rest, sizeof rest);
}

}  // namespace heedful
#endif

int heedful_checksum(const void* data, uint64_t count, uint32_t* sum) {
#if defined(HEEDFUL_X86)
    using namespace heedful;
    if (!processor().polynomials) return 1;
    const uint8_t* bytes = static_cast<const uint8_t*>(data);
    const uint64_t blocks = count / 64 * 64;
    uint32_t state = ~*sum;
    if (blocks) state = add_blocks(state, bytes, blocks);
    *sum = ~add_bytes(state, bytes + blocks, count - blocks);
    return 0;
#else
    (void)data, (void)count, (void)sum;
    return 1;
#endif
}

// The product of two polynomials modulo that of CRC-32, bits reflected: the highest bit stands for x^0.
static uint32_t product(uint32_t one, uint32_t other) {
    uint32_t sum = 0;
    for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
        if (one & bit) sum ^= other;
        other = other >> 1 ^ (other & 1 ? 0xedb88320u : 0);
    }
    return sum;
}

uint32_t heedful_checksum_joined(uint32_t first, uint32_t second, uint64_t count) {
    // Each byte of the second part moves the first one's sum on by x^8.
    uint32_t moved = first;
    for (uint32_t power = 1u << 23; count; count >>= 1, power = product(power, power))
        if (count & 1) moved = product(moved, power);
    return moved ^ second;
}
