// What a block has besides products and attention: norms, whole linear layers, the feed-forward network.
#pragma once

#include <initializer_list>

#include "memory.h"
#include "model.h"
#include "quantizing.h"
#include "threads.h"

namespace heedful {
namespace ISA {

// A product is worth dividing if its weights have this many bytes: smaller ones are read faster than threads
// synchronise.
constexpr size_t WORTH_DIVIDING = 200 * 1000;

// y = (x - mean) / deviation * weight + bias, or x / root of the mean square * weight; x and y may be the same.
inline void normalise_row(const float* x, int width, const Norm& norm, float epsilon, float* y) {
    const bool centred = norm.bias;
    float mean = 0.0f;
    if (centred) {
        Floats total = broadcast(0.0f);
        for (int i = 0; i < width; i += LANES) total = total + load_rest(x, i, width);
        mean = sum(total) / static_cast<float>(width);
    }
    Floats squares = broadcast(0.0f);
    for (int i = 0; i < width; i += LANES) {
        int left = width - i;
        Floats distance = load_rest(x, i, width) - (left >= LANES ? broadcast(mean) : broadcast_first(mean, left));
        squares = fma(distance, distance, squares);
    }
    const float variance = sum(squares) / static_cast<float>(width);
    // A variance too large for a float makes the row NaN, which is reported: otherwise the result would be plausible,
    // but wrong.
    const float overflow = variance - variance;
    const Floats factor = broadcast(1.0f / sqrtf(variance + epsilon + overflow)), shift = broadcast(mean);
    for (int i = 0; i < width; i += LANES) {
        Floats scaled = (load_rest(x, i, width) - shift) * factor;
        Floats weight = load_rest(norm.weight, i, width);
        Floats result = centred ? fma(scaled, weight, load_rest(norm.bias, i, width)) : scaled * weight;
        store_rest(y, result, i, width);
    }
}

// Rows of numbers in memory; `stride` may be larger than a row has numbers.
struct Rows {
    float* data;
    size_t stride;
    float* operator[](size_t row) const { return data + row * stride; }
};

// Where a linear layer puts its input as bytes, and the threads that may help it.
struct Work {
    Pool* pool = nullptr;  // null if every thread has its own work
    Array<uint8_t> bytes;
    Array<float> scales, normalised, wide, context, scores;

    int threads() const { return pool ? pool->size() : 1; }
    void free() {
        bytes.free();
        for (Array<float>* each : {&scales, &normalised, &wide, &context, &scores}) each->free();
    }
};

// The input of an int8 product, as bytes.
inline Quantized quantized(Work& work, const Linear& linear, Rows x, int rows) {
    const size_t stride = linear.byte_stride();
    work.bytes.reserve(rows * stride + 64);
    work.scales.reserve(rows);
    for (int row = 0; row < rows; row++)
        quantize_row(x[row], linear.inputs, work.bytes.data + row * stride, work.scales.data + row);
    return {work.bytes.data, work.scales.data};
}

struct PanelRange {
    const Linear* linear;
    Rows x;
    Quantized bytes;
    int rows, parts;
    Output output;
};

inline void multiply_panels(void* work, int part) {
    const PanelRange& all = *static_cast<PanelRange*>(work);
    const Linear& linear = *all.linear;
    // Whole tiles of panels, as evenly as possible for all parts.
    const int unit = linear.bytes ? INT8_PANELS : FP32_PANELS, units = (linear.panels() + unit - 1) / unit;
    const int first = units * part / all.parts * unit;
    int last = units * (part + 1) / all.parts * unit;
    last = last < linear.panels() ? last : linear.panels();
    Output output = all.output;
    output.rows += first * PANEL;
    if (linear.bytes)
        int8_panels(linear, all.bytes, all.rows, first, last, output);
    else
        fp32_panels(linear, all.x.data, all.x.stride, all.rows, first, last, output);
}

// y = x W + b, added to y or followed by an activation if `then` says so.
inline void apply(Work& work, const Linear& linear, Rows x, int rows, Rows y, Then then) {
    PanelRange all = {&linear, x, {}, rows, 1, {y.data, y.stride, then}};
    if (linear.bytes) all.bytes = quantized(work, linear, x, rows);
    if (work.pool && linear.weight_bytes() >= WORTH_DIVIDING) {
        all.parts = 2 * work.threads();
        work.pool->run(multiply_panels, &all, all.parts);
    } else {
        multiply_panels(&all, 0);
    }
}

// The input of a sub-layer: x itself, or, where norms come first, x normalised.
inline Rows sublayer_input(Work& work, const Stack& stack, const Norm& norm, Rows x, int rows, int width) {
    if (!stack.settings.pre_norm) return x;
    work.normalised.reserve(size_t(rows) * width);
    Rows y = {work.normalised.data, size_t(width)};
    for (int row = 0; row < rows; row++) normalise_row(x[row], width, norm, stack.settings.norm_epsilon, y[row]);
    return y;
}

// The end of a sub-layer, whose output has been added to x.
inline void end_sublayer(const Stack& stack, const Norm& norm, Rows x, int rows, int width) {
    if (stack.settings.pre_norm) return;
    for (int row = 0; row < rows; row++) normalise_row(x[row], width, norm, stack.settings.norm_epsilon, x[row]);
}

inline void feed_forward(Work& work, const Stack& stack, const Block& block, Rows x, int rows, int width) {
    static const Then ACTIVATIONS[] = {Then::RELU, Then::GELU, Then::GELU_TANH, Then::SILU, Then::STORE};
    const int inner = stack.settings.inner_width, projected = stack.projected_width();
    Rows input = sublayer_input(work, stack, block.feed_forward_norm, x, rows, width);
    work.wide.reserve(size_t(rows) * projected);
    Rows hidden = {work.wide.data, size_t(projected)};
    apply(work, block.inner, input, rows, hidden, ACTIVATIONS[stack.settings.activation]);
    if (projected != inner) {
        // SiLU of the first half, times the second half.
        for (int row = 0; row < rows; row++)
            for (int i = 0; i < inner; i += LANES) {
                Floats gate = activated(load_rest(hidden[row], i, inner), Then::SILU);
                store_rest(hidden[row], gate * load_rest(hidden[row] + inner, i, inner), i, inner);
            }
    }
    apply(work, block.outer, hidden, rows, x, Then::ADD);
    end_sublayer(stack, block.feed_forward_norm, x, rows, width);
}

}  // namespace ISA
}  // namespace heedful
