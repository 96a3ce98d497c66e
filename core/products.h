// Matrix products, int8 and fp32: rows of values times packed weights, with the bias, the activation or the sum that
// follows them done while the results are in registers.
//
// A result is a sum over the inputs in their order, whatever the number of rows or columns computed beside it.
#pragma once

#include "linear.h"
#include "vectors.h"

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

#if defined(__AVX512VNNI__)
constexpr int INT8_PANELS = 4;
typedef __m512i Sums;
inline Sums no_sums() { return _mm512_setzero_si512(); }
inline Sums load_group(const int8_t* weights) { return _mm512_loadu_si512(weights); }
inline Sums load_values(const uint8_t* values) {
    int32_t four;
    memcpy(&four, values, 4);
    return _mm512_set1_epi32(four);
}
inline Sums add_products(Sums sums, Sums values, Sums weights) { return _mm512_dpbusd_epi32(sums, values, weights); }
inline Floats as_floats(Sums sums, const int32_t* offsets) {
    return {_mm512_cvtepi32_ps(_mm512_sub_epi32(sums, _mm512_loadu_si512(offsets)))};
}
#elif defined(__AVX2__)
constexpr int INT8_PANELS = 1;
struct Sums {
    __m256i low, high;
};
inline Sums no_sums() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
inline Sums load_group(const int8_t* weights) {
    const __m256i* from = reinterpret_cast<const __m256i*>(weights);
    return {_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1)};
}
inline Sums load_values(const uint8_t* values) {
    int32_t four;
    memcpy(&four, values, 4);
    return {_mm256_set1_epi32(four), _mm256_set1_epi32(four)};
}
inline __m256i pairs_added(__m256i sums, __m256i values, __m256i weights) {
    __m256i pairs = _mm256_maddubs_epi16(values, weights);
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
inline Sums add_products(Sums sums, Sums values, Sums weights) {
    return {pairs_added(sums.low, values.low, weights.low), pairs_added(sums.high, values.high, weights.high)};
}
inline Floats as_floats(Sums sums, const int32_t* offsets) {
    const __m256i* from = reinterpret_cast<const __m256i*>(offsets);
    return {_mm256_cvtepi32_ps(_mm256_sub_epi32(sums.low, _mm256_loadu_si256(from))),
            _mm256_cvtepi32_ps(_mm256_sub_epi32(sums.high, _mm256_loadu_si256(from + 1)))};
}
#else
constexpr int INT8_PANELS = 1;
struct Sums {
    int32_t lane[LANES];
};
struct Weights {
    int8_t each[LANES * GROUP];
};
struct Values {
    int32_t each[GROUP];
};
inline Sums no_sums() { return {}; }
inline Weights load_group(const int8_t* weights) {
    Weights group;
    memcpy(group.each, weights, sizeof group.each);
    return group;
}
inline Values load_values(const uint8_t* values) { return {{values[0], values[1], values[2], values[3]}}; }
inline Sums add_products(Sums sums, const Values& values, const Weights& weights) {
    for (int i = 0; i < LANES; i++)
        for (int k = 0; k < GROUP; k++) sums.lane[i] += values.each[k] * weights.each[i * GROUP + k];
    return sums;
}
inline Floats as_floats(const Sums& sums, const int32_t* offsets) {
    Floats x;
    for (int i = 0; i < LANES; i++) x.lane[i] = static_cast<float>(sums.lane[i] - offsets[i]);
    return x;
}
#endif

// Writes to memory that the compiler must not take for registers.
inline void put(Sums* to, Sums from) { memcpy(to, &from, sizeof from); }

// A few rows times a few panels.
template <int ROWS, int PANELS>
inline void int8_tile(const Linear& linear, const uint8_t* values, const float* row_scales, int first_row, int panel,
                      const Output& output) {
    const size_t stride = linear.byte_stride();
    const int groups = linear.groups();
    const int8_t* weights = linear.bytes + size_t(panel) * PANEL * stride;
    Sums sums[ROWS][PANELS];
    UNROLLED for (int row = 0; row < ROWS; row++) UNROLLED for (int p = 0; p < PANELS; p++) sums[row][p] = no_sums();
    for (int group = 0; group < groups; group++) {
        decltype(load_group(weights)) columns[PANELS];
        UNROLLED for (int p = 0; p < PANELS; p++) columns[p] =
            load_group(weights + (size_t(p) * groups + group) * PANEL * GROUP);
        UNROLLED for (int row = 0; row < ROWS; row++) {
            auto four = load_values(values + (first_row + row) * stride + group * GROUP);
            UNROLLED for (int p = 0; p < PANELS; p++) sums[row][p] = add_products(sums[row][p], four, columns[p]);
        }
    }
    // By way of memory: were the sums indexed by loops that are not unrolled, they would not stay in registers before.
    Sums found[PANELS][ROWS];
    UNROLLED for (int p = 0; p < PANELS; p++) UNROLLED for (int row = 0; row < ROWS; row++) put(&found[p][row], sums[row][p]);
    for (int p = 0; p < PANELS; p++) {
        const int column = (panel + p) * PANEL;
        const Floats scale = load(linear.scales + column);
        const Floats bias = linear.bias ? load(linear.bias + column) : broadcast(0.0f);
        for (int row = 0; row < ROWS; row++) {
            Floats y = as_floats(found[p][row], linear.offsets + column) * scale;
            y = fma(y, broadcast(row_scales[first_row + row]), bias);
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

// A row as bytes: each value over the largest amount, times 127, rounded to the nearest, plus 128.
inline void quantize_row(const float* row, int width, uint8_t* bytes, float* scale) {
    uint32_t bits = largest_amount(row, width);
    float most;
    memcpy(&most, &bits, sizeof most);
    // What is not a number must not be lost: it makes NaN of all results.
    *scale = bits >= 0x7f800000u ? NAN : most / LARGEST_VALUE;
    const Floats factor = broadcast(most > 0.0f ? LARGEST_VALUE / most : 0.0f);
    // Floats near 1.5 * 2^23 have no bits after the point: what is added is rounded, and the last byte is the result.
    const Floats rounding = broadcast(12582912.0f + ZERO_POINT);
    for (int i = 0; i < width; i += LANES) {
        Floats rounded = fma(load_rest(row, i, width), factor, rounding);
#if defined(__AVX512F__)
        __m128i sixteen = _mm512_cvtepi32_epi8(_mm512_castps_si512(rounded.all));
        int count = width - i >= LANES ? LANES : width - i;
        _mm_mask_storeu_epi8(bytes + i, static_cast<__mmask16>((1u << count) - 1), sixteen);
#else
        uint32_t words[LANES];
        memcpy(words, &rounded, sizeof words);
        for (int k = 0; k < LANES && i + k < width; k++) bytes[i + k] = static_cast<uint8_t>(words[k]);
#endif
    }
}

}  // namespace ISA
}  // namespace heedful
