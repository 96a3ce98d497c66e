// From floats to bytes: the input of an int8 product, and its weights.
#pragma once

#include "products.h"

namespace heedful {
namespace ISA {

// The bits of the largest absolute value in a row; they sort as the values do, with infinity and NaN above all others.
inline uint32_t largest_amount(const float* row, int width) {
    uint32_t found = 0;
#if defined(__AVX512F__)
    const __m512i amount = _mm512_set1_epi32(0x7fffffff);
    __m512i most = _mm512_setzero_si512();
    for (int i = 0; i < width; i += LANES) {
        __m512i bits = _mm512_castps_si512(load_rest(row, i, width).all);
        most = _mm512_max_epi32(most, _mm512_and_si512(bits, amount));
    }
    found = static_cast<uint32_t>(_mm512_reduce_max_epi32(most));
#elif defined(__AVX2__)
    const __m256i amount = _mm256_set1_epi32(0x7fffffff);
    __m256i most = _mm256_setzero_si256();
    for (int i = 0; i < width; i += LANES) {
        Floats x = load_rest(row, i, width);
        most = _mm256_max_epi32(most, _mm256_and_si256(_mm256_castps_si256(x.low), amount));
        most = _mm256_max_epi32(most, _mm256_and_si256(_mm256_castps_si256(x.high), amount));
    }
    int32_t lanes[8];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), most);
    for (int32_t each : lanes) found = static_cast<uint32_t>(each) > found ? static_cast<uint32_t>(each) : found;
#else
    int32_t most[LANES] = {}, bits[LANES];
    for (int i = 0; i < width; i += LANES) {
        Floats x = load_rest(row, i, width);
        memcpy(bits, &x, sizeof bits);
        for (int k = 0; k < LANES; k++) {
            int32_t each = bits[k] & 0x7fffffff;
            most[k] = each > most[k] ? each : most[k];
        }
    }
    for (int32_t each : most) found = static_cast<uint32_t>(each) > found ? static_cast<uint32_t>(each) : found;
#endif
    return found;
}

// Floats near 1.5 * 2^23 have no bits after the point: a number added to ROUNDING is rounded, and the sum's last byte
// is the whole number.
constexpr float ROUNDING = 12582912.0f;

// The last bytes of up to 16 numbers.
inline void store_bytes(uint8_t* to, Floats rounded, int count) {
#if defined(__AVX512F__)
    __m128i sixteen = _mm512_cvtepi32_epi8(_mm512_castps_si512(rounded.all));
    _mm_mask_storeu_epi8(to, static_cast<__mmask16>(count >= LANES ? 0xffff : (1u << count) - 1), sixteen);
#elif defined(__AVX2__)
    const __m256i last_bytes = _mm256_set1_epi32(255);
    const __m256i low = _mm256_and_si256(_mm256_castps_si256(rounded.low), last_bytes);
    const __m256i high = _mm256_and_si256(_mm256_castps_si256(rounded.high), last_bytes);
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
    const __m128i sixteen =
        _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    if (count >= LANES)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to), sixteen);
    else
        memcpy(to, &sixteen, count);
#else
    uint32_t words[LANES];
    memcpy(words, &rounded, sizeof words);
    for (int k = 0; k < LANES && k < count; k++) to[k] = static_cast<uint8_t>(words[k]);
#endif
}

// A row as bytes: each value divided by the largest absolute value, times LARGEST_VALUE, rounded, plus the zero point.
inline void quantize_row(const float* row, int width, uint8_t* bytes, float* scale) {
    uint32_t bits = largest_amount(row, width);
    float most;
    memcpy(&most, &bits, sizeof most);
    // NaN and infinity must not get lost: they make all results NaN.
    *scale = bits >= 0x7f800000u ? NAN : most / LARGEST_VALUE;
    const Floats factor = broadcast(most > 0.0f ? LARGEST_VALUE / most : 0.0f);
    const Floats rounding = broadcast(ROUNDING + (1 << ZERO_POINT_BITS));
    for (int i = 0; i < width; i += LANES) {
        Floats rounded = fma(load_rest(row, i, width), factor, rounding);
        store_bytes(bytes + i, rounded, width - i);
    }
}

// A row of weights: the largest absolute value becomes LARGEST_WEIGHT, and bytes go four by four to their places in the
// panel.
inline void pack_int8_row(Linear& linear, int output, const float* row, float largest) {
    // A row of smaller numbers has no usable scale; it becomes zeros.
    const float scale = largest > 1e-36f ? largest / LARGEST_WEIGHT : 1.0f;
    const Floats divisor = broadcast(scale), rounding = broadcast(ROUNDING);
    Floats total = broadcast(0.0f);
    int8_t* to = linear.bytes + size_t(output / PANEL) * PANEL * linear.byte_stride() + (output % PANEL) * GROUP;
    for (int i = 0; i < linear.inputs; i += LANES) {
        const Floats rounded = load_rest(row, i, linear.inputs) / divisor + rounding;
        total = total + (rounded - rounding);
        uint8_t bytes[LANES];
        store_bytes(bytes, rounded, LANES);
        for (int k = 0; k < LANES && i + k < linear.inputs; k += GROUP)
            memcpy(to + size_t(i + k) * PANEL, bytes + k, GROUP);
    }
    linear.scales[output] = scale;
    linear.weight_sums[output] = static_cast<int32_t>(sum(total));  // exact: at most 2^16 inputs of up to 127
}

}  // namespace ISA
}  // namespace heedful
