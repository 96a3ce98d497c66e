// Matrix products, int8 and fp32: rows of values times packed weights; the bias and the activation or sum that follow
// are done while the results are in registers.
//
// A result is a sum over the inputs in order, however many rows or columns are computed beside it.
#pragma once

#include "int8_sums.h"

namespace heedful {
namespace ISA {

// What happens to a product.
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

// One panel of one row; the last panel of a matrix may not be full.
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

// Rows and panels per tile, by the available registers.
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

}  // namespace ISA
}  // namespace heedful
