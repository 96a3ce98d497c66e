// Matrix products, int8 and fp32: rows of values times packed weights, with the bias, the activation or the sum that
// follows them done while the results are in registers.
//
// A result is a sum over the inputs in their order, whatever the number of rows or columns computed beside it.
#pragma once

#include "int8_sums.h"

namespace heedful {
namespace ISA {

// What becomes of a product.
enum class Then { STORE, ADD, RELU, GELU, GELU_TANH, SILU };

inline Floats activated(Floats x, Then then) {
    const Floats one = broadcast(1.0f), half = broadcast(0.5f);
    switch (then) {
        case Then::RELU: return largest(broadcast(0.0f), x);
        case Then::GELU: return x * half * (one + error_function(x * broadcast(0.70710678f)));
        case Then::GELU_TANH: {
            Floats cubic = x * x * x;
            return x * half * (one + hyperbolic_tangent(broadcast(0.79788456f) * fma(broadcast(0.044715f), cubic, x)));
        }
        case Then::SILU: return x / (one + exponential(broadcast(0.0f) - x));
        default: return x;
    }
}

struct Output {
    float* rows;
    size_t stride;
    Then then;
};

// One panel of one row: the last columns of a matrix may be fewer than a panel has.
inline void finish(const Linear& linear, const Output& output, int row, int panel, Floats y) {
    int column = panel * PANEL, count = linear.outputs - column;
    float* to = output.rows + row * output.stride + column;
    if (output.then == Then::ADD) {
        Floats sum = (count >= PANEL ? load(to) : load_first(to, count)) + y;
        return count >= PANEL ? store(to, sum) : store_first(to, sum, count);
    }
    y = activated(y, output.then);
    count >= PANEL ? store(to, y) : store_first(to, y, count);
}

inline Floats whole_as_floats(const int32_t* whole) {
#if defined(__AVX512F__)
    return {_mm512_cvtepi32_ps(_mm512_loadu_si512(whole))};
#elif defined(__AVX2__)
    const __m256i* from = reinterpret_cast<const __m256i*>(whole);
    return {_mm256_cvtepi32_ps(_mm256_loadu_si256(from)), _mm256_cvtepi32_ps(_mm256_loadu_si256(from + 1))};
#else
    Floats x;
    for (int i = 0; i < LANES; i++) x.lane[i] = static_cast<float>(whole[i]);
    return x;
#endif
}

// A few rows times a few panels.
template <int ROWS, int PANELS>
inline void int8_tile(const Linear& linear, const uint8_t* values, const float* row_scales, int first_row, int panel,
                      const Output& output) {
    const size_t stride = linear.byte_stride();
    int32_t found[PANELS][ROWS][PANEL];
    int8_sums<ROWS, PANELS>(values + first_row * stride, stride, linear.bytes + size_t(panel) * PANEL * stride,
                            linear.groups(), found);
    for (int p = 0; p < PANELS; p++) {
        const int column = (panel + p) * PANEL;
        const int32_t* weight_sums = linear.weight_sums + column;
        const Floats scale = load(linear.scales + column);
        const Floats bias = linear.bias ? load(linear.bias + column) : broadcast(0.0f);
        for (int row = 0; row < ROWS; row++) {
            int32_t* whole = found[p][row];
            for (int i = 0; i < PANEL; i++) whole[i] -= weight_sums[i] * (1 << ZERO_POINT_BITS);
            Floats y = fma(whole_as_floats(whole) * scale, broadcast(row_scales[first_row + row]), bias);
            finish(linear, output, first_row + row, panel + p, y);
        }
    }
}

template <int ROWS, int PANELS>
inline void fp32_tile(const Linear& linear, const float* values, size_t value_stride, int first_row, int panel,
                      const Output& output) {
    const int inputs = linear.inputs;
    const float* weights = linear.numbers + size_t(panel) * PANEL * inputs;
    Floats sums[ROWS][PANELS];
    UNROLLED for (int row = 0; row < ROWS; row++) UNROLLED for (int p = 0; p < PANELS; p++) sums[row][p] =
        broadcast(0.0f);
    const float* rows = values + first_row * value_stride;
    for (int k = 0; k < inputs; k++) {
        Floats columns[PANELS];
        UNROLLED for (int p = 0; p < PANELS; p++) columns[p] = load(weights + (size_t(p) * inputs + k) * PANEL);
        UNROLLED for (int row = 0; row < ROWS; row++) {
            Floats value = broadcast(rows[row * value_stride + k]);
            UNROLLED for (int p = 0; p < PANELS; p++) sums[row][p] = fma(value, columns[p], sums[row][p]);
        }
    }
    for (int p = 0; p < PANELS; p++) {
        const Floats bias = linear.bias ? load(linear.bias + (panel + p) * PANEL) : broadcast(0.0f);
        for (int row = 0; row < ROWS; row++)
            finish(linear, output, first_row + row, panel + p, sums[row][p] + bias);
    }
}

// Rows of a tile, by the registers that there are.
#if defined(__AVX512F__)
constexpr int TILE_ROWS = 6, FP32_PANELS = 4;
#elif defined(__AVX2__)
constexpr int TILE_ROWS = 6, FP32_PANELS = 1;
#else
constexpr int TILE_ROWS = 4, FP32_PANELS = 1;
#endif

template <int PANELS>
inline void int8_rows(const Linear& linear, const uint8_t* values, const float* scales, int rows, int panel,
                      const Output& output) {
    int row = 0;
    for (; rows - row >= TILE_ROWS; row += TILE_ROWS)
        int8_tile<TILE_ROWS, PANELS>(linear, values, scales, row, panel, output);
    switch (rows - row) {
        case 5: return int8_tile<(5 < TILE_ROWS ? 5 : 1), PANELS>(linear, values, scales, row, panel, output);
        case 4: return int8_tile<(4 < TILE_ROWS ? 4 : 1), PANELS>(linear, values, scales, row, panel, output);
        case 3: return int8_tile<3, PANELS>(linear, values, scales, row, panel, output);
        case 2: return int8_tile<2, PANELS>(linear, values, scales, row, panel, output);
        case 1: return int8_tile<1, PANELS>(linear, values, scales, row, panel, output);
    }
}

template <int PANELS>
inline void fp32_rows(const Linear& linear, const float* values, size_t stride, int rows, int panel,
                      const Output& output) {
    int row = 0;
    for (; rows - row >= TILE_ROWS; row += TILE_ROWS)
        fp32_tile<TILE_ROWS, PANELS>(linear, values, stride, row, panel, output);
    switch (rows - row) {
        case 5: return fp32_tile<(5 < TILE_ROWS ? 5 : 1), PANELS>(linear, values, stride, row, panel, output);
        case 4: return fp32_tile<(4 < TILE_ROWS ? 4 : 1), PANELS>(linear, values, stride, row, panel, output);
        case 3: return fp32_tile<3, PANELS>(linear, values, stride, row, panel, output);
        case 2: return fp32_tile<2, PANELS>(linear, values, stride, row, panel, output);
        case 1: return fp32_tile<1, PANELS>(linear, values, stride, row, panel, output);
    }
}

// Values as bytes, with a scale per row.
struct Quantized {
    uint8_t* bytes;
    float* scales;
};

// The panels from `first` up to `last` of a product of rows; `output` has the first of these panels at its start.
inline void int8_panels(const Linear& linear, const Quantized& values, int rows, int first, int last, Output output) {
    output.rows -= first * PANEL;
    int panel = first;
    for (; last - panel >= INT8_PANELS; panel += INT8_PANELS)
        int8_rows<INT8_PANELS>(linear, values.bytes, values.scales, rows, panel, output);
    for (; panel < last; panel++) int8_rows<1>(linear, values.bytes, values.scales, rows, panel, output);
}

inline void fp32_panels(const Linear& linear, const float* values, size_t stride, int rows, int first, int last,
                        Output output) {
    output.rows -= first * PANEL;
    int panel = first;
    for (; last - panel >= FP32_PANELS; panel += FP32_PANELS)
        fp32_rows<FP32_PANELS>(linear, values, stride, rows, panel, output);
    for (; panel < last; panel++) fp32_rows<1>(linear, values, stride, rows, panel, output);
}

// The bits of the largest amount in a row; they sort as the numbers do, with infinity and NaN above all others.
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

// A row as bytes: each value over the largest amount, times LARGEST_VALUE, rounded, plus the zero point.
inline void quantize_row(const float* row, int width, uint8_t* bytes, float* scale) {
    uint32_t bits = largest_amount(row, width);
    float most;
    memcpy(&most, &bits, sizeof most);
    // What is not a number must not be lost: it makes NaN of all results.
    *scale = bits >= 0x7f800000u ? NAN : most / LARGEST_VALUE;
    const Floats factor = broadcast(most > 0.0f ? LARGEST_VALUE / most : 0.0f);
    // Floats near 1.5 * 2^23 have no bits after the point: what is added is rounded, and the last byte is the result.
    const Floats rounding = broadcast(12582912.0f + (1 << ZERO_POINT_BITS));
    for (int i = 0; i < width; i += LANES) {
        Floats rounded = fma(load_rest(row, i, width), factor, rounding);
#if defined(__AVX512F__)
        __m128i sixteen = _mm512_cvtepi32_epi8(_mm512_castps_si512(rounded.all));
        int count = width - i >= LANES ? LANES : width - i;
        _mm_mask_storeu_epi8(bytes + i, static_cast<__mmask16>((1u << count) - 1), sixteen);
#elif defined(__AVX2__)
        const __m256i last_bytes = _mm256_set1_epi32(255);
        const __m256i low = _mm256_and_si256(_mm256_castps_si256(rounded.low), last_bytes);
        const __m256i high = _mm256_and_si256(_mm256_castps_si256(rounded.high), last_bytes);
        const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
        const __m128i sixteen =
            _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
        if (width - i >= LANES)
            _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes + i), sixteen);
        else
            memcpy(bytes + i, &sixteen, width - i);
#else
        uint32_t words[LANES];
        memcpy(words, &rounded, sizeof words);
        for (int k = 0; k < LANES && i + k < width; k++) bytes[i + k] = static_cast<uint8_t>(words[k]);
#endif
    }
}

}  // namespace ISA
}  // namespace heedful
