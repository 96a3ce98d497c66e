// Sums of products of int8, a few rows times a few panels, for the instruction set that this file is compiled for.
//
// Weights become whole numbers up to LARGEST_WEIGHT, and values up to LARGEST_VALUE, to which a zero point is added to
// make them unsigned bytes. Sums are exact, whatever the order.
#pragma once

#include "linear.h"
#include "vectors.h"

namespace heedful {
namespace ISA {

#if defined(__AVX2__)
inline __m256i four_values(const uint8_t* values) {
    int32_t four;
    memcpy(&four, values, GROUP);
    return _mm256_set1_epi32(four);
}
#endif

#if defined(__AVX512VNNI__)
constexpr int LARGEST_WEIGHT = 127, LARGEST_VALUE = 127, ZERO_POINT_BITS = 7;
constexpr int INT8_PANELS = 4;

template <int ROWS, int PANELS>
inline void int8_sums(const uint8_t* values, size_t stride, const int8_t* weights, int groups,
                      int32_t (*found)[ROWS][PANEL]) {
    __m512i sums[PANELS][ROWS];
    UNROLLED for (int p = 0; p < PANELS; p++) UNROLLED for (int row = 0; row < ROWS; row++) sums[p][row] =
        _mm512_setzero_si512();
    for (int group = 0; group < groups; group++) {
        __m512i columns[PANELS];
        UNROLLED for (int p = 0; p < PANELS; p++) columns[p] =
            _mm512_loadu_si512(weights + (size_t(p) * groups + group) * PANEL * GROUP);
        UNROLLED for (int row = 0; row < ROWS; row++) {
            int32_t four;
            memcpy(&four, values + row * stride + group * GROUP, GROUP);
            const __m512i value = _mm512_set1_epi32(four);
            UNROLLED for (int p = 0; p < PANELS; p++) sums[p][row] =
                _mm512_dpbusd_epi32(sums[p][row], value, columns[p]);
        }
    }
    // Through memory: if loops that are not unrolled indexed the sums, these would not stay in registers.
    UNROLLED for (int p = 0; p < PANELS; p++) UNROLLED for (int row = 0; row < ROWS; row++)
        _mm512_storeu_si512(found[p][row], sums[p][row]);
}
#elif defined(__AVXVNNI__)
constexpr int LARGEST_WEIGHT = 127, LARGEST_VALUE = 127, ZERO_POINT_BITS = 7;
constexpr int INT8_PANELS = 1;

// A panel takes two registers per row: with six rows, twelve of sixteen.
template <int ROWS, int PANELS>
inline void int8_sums(const uint8_t* values, size_t stride, const int8_t* weights, int groups,
                      int32_t (*found)[ROWS][PANEL]) {
    static_assert(PANELS == 1, "one panel takes all registers");
    const __m256i* columns = reinterpret_cast<const __m256i*>(weights);
    __m256i low[ROWS], high[ROWS];
    UNROLLED for (int row = 0; row < ROWS; row++) low[row] = high[row] = _mm256_setzero_si256();
    for (int group = 0; group < groups; group++) {
        const __m256i first = _mm256_loadu_si256(columns + 2 * group), second = _mm256_loadu_si256(columns + 2 * group + 1);
        UNROLLED for (int row = 0; row < ROWS; row++) {
            const __m256i value = four_values(values + row * stride + group * GROUP);
            low[row] = _mm256_dpbusd_avx_epi32(low[row], value, first);
            high[row] = _mm256_dpbusd_avx_epi32(high[row], value, second);
        }
    }
    UNROLLED for (int row = 0; row < ROWS; row++) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(found[0][row]), low[row]);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(found[0][row]) + 1, high[row]);
    }
}
#elif defined(__AVX2__)
// Without a special instruction, products are added in 16 bits, at most four of them: 4 x 127 x 63 still fits.
constexpr int LARGEST_WEIGHT = 63, LARGEST_VALUE = 63, ZERO_POINT_BITS = 6;
constexpr int INT8_PANELS = 1;

template <int ROWS, int PANELS>
inline void int8_sums(const uint8_t* values, size_t stride, const int8_t* weights, int groups,
                      int32_t (*found)[ROWS][PANEL]) {
    static_assert(PANELS == 1, "half a panel takes all registers");
    const __m256i ones = _mm256_set1_epi16(1);
    for (int half = 0; half < 2; half++) {
        const __m256i* columns = reinterpret_cast<const __m256i*>(weights) + half;
        __m256i sums[ROWS];
        UNROLLED for (int row = 0; row < ROWS; row++) sums[row] = _mm256_setzero_si256();
        int group = 0;
        for (; group + 2 <= groups; group += 2) {
            const __m256i first = _mm256_loadu_si256(columns + 2 * group);
            const __m256i second = _mm256_loadu_si256(columns + 2 * group + 2);
            UNROLLED for (int row = 0; row < ROWS; row++) {
                const uint8_t* from = values + row * stride + group * GROUP;
                __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(four_values(from), first),
                                                 _mm256_maddubs_epi16(four_values(from + GROUP), second));
                sums[row] = _mm256_add_epi32(sums[row], _mm256_madd_epi16(pairs, ones));
            }
        }
        if (group < groups)
            UNROLLED for (int row = 0; row < ROWS; row++) {
                __m256i pairs = _mm256_maddubs_epi16(four_values(values + row * stride + group * GROUP),
                                                     _mm256_loadu_si256(columns + 2 * group));
                sums[row] = _mm256_add_epi32(sums[row], _mm256_madd_epi16(pairs, ones));
            }
        UNROLLED for (int row = 0; row < ROWS; row++)
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(found[0][row]) + half, sums[row]);
    }
}
#else
constexpr int LARGEST_WEIGHT = 127, LARGEST_VALUE = 127, ZERO_POINT_BITS = 7;
constexpr int INT8_PANELS = 1;

template <int ROWS, int PANELS>
inline void int8_sums(const uint8_t* values, size_t stride, const int8_t* weights, int groups,
                      int32_t (*found)[ROWS][PANEL]) {
    memset(found, 0, sizeof(int32_t) * PANELS * ROWS * PANEL);
    for (int group = 0; group < groups; group++) {
        // As 16 bits, the four inputs of an output side by side: compilers can vectorise this.
        int16_t columns[PANEL * GROUP];
        for (int i = 0; i < PANEL * GROUP; i++) columns[i] = weights[size_t(group) * PANEL * GROUP + i];
        for (int row = 0; row < ROWS; row++) {
            const uint8_t* four = values + row * stride + group * GROUP;
            const int16_t a = four[0], b = four[1], c = four[2], d = four[3];
            for (int i = 0; i < PANEL; i++)
                found[0][row][i] += a * columns[4 * i] + b * columns[4 * i + 1] + c * columns[4 * i + 2] +
                                    d * columns[4 * i + 3];
        }
    }
}
#endif

}  // namespace ISA
}  // namespace heedful
