// Whole sequences through a stack of blocks: an encoder's texts, a decoder's prompts and given targets.
#pragma once

#include "attention.h"
#include "decoder.h"

namespace heedful {
namespace ISA {

// A sequence among the rows that go through a stack together, and where its keys and values are kept.
struct Sequence {
    int first_row, length;
    float *keys, *values;    // of all layers, `places` each; null if only needed within a layer
    int places;
    const float *cross_keys, *cross_values;  // of all layers
    int cross_places, cross_length;
    float* record;           // weights of cross-attention are added to these rows
};

// Scratch space on the way through a stack.
struct StackWork : Work {
    Array<float> x, keys, values;
    Array<Visible> visible;
    Array<Sequence> sequences;

    void free() {
        Work::free();
        x.free();
        keys.free();
        values.free();
        visible.free();
        sequences.free();
    }
};

inline void attend_within(StackWork& work, const Stack& stack, const Block& block, int layer, bool causal, Rows queries,
                          Rows context) {
    const int query_row = stack.query_row();
    const size_t key_row = stack.key_row(), value_row = stack.value_row();
    const int window = layer % 2 ? stack.settings.window : 0;
    const Heads heads = {&stack, block.attention.scoring_vector, stack.has_bias(), nullptr, 0};
    for (const Sequence& each : work.sequences) {
        const size_t places = each.keys ? each.places : rounded_up(each.length, LANES);
        if (!each.keys) {
            work.keys.reserve(places * key_row);
            work.values.reserve(places * value_row);
        }
        float* keys = each.keys ? each.keys + layer * places * key_row : work.keys.data;
        float* values = each.values ? each.values + layer * places * value_row : work.values.data;
        work.visible.resize(each.length);
        for (int place = 0; place < each.length; place++) {
            float* row = queries[each.first_row + place];
            if (stack.cosines) rotate(stack, row, stack.settings.heads + stack.settings.key_value_heads, place);
            put_place(stack, row + query_row, keys, values, place);
            const int before = window && place - window + 1 > 0 ? place - window + 1 : 0;
            const int after = window && place + window < each.length ? place + window : each.length;
            work.visible[place] = {before, causal ? place + 1 : after, nullptr, place};
        }
        Rows own = {queries[each.first_row], queries.stride}, output = {context[each.first_row], context.stride};
        attend(work, heads, own, {keys, values, nullptr}, work.visible.data, each.length, output);
    }
}

inline void attend_to_memory(StackWork& work, const Stack& stack, const Block& block, int layer, Rows queries,
                             Rows context) {
    for (const Sequence& each : work.sequences) {
        work.visible.resize(each.length);
        for (int row = 0; row < each.length; row++) work.visible[row] = {0, each.cross_length, nullptr, 0};
        const Heads heads = {&stack, block.cross.scoring_vector, false, each.record, size_t(each.cross_length)};
        const Memory memory = {each.cross_keys + layer * size_t(each.cross_places) * stack.key_row(),
                               each.cross_values + layer * size_t(each.cross_places) * stack.value_row(), nullptr};
        Rows own = {queries[each.first_row], queries.stride}, output = {context[each.first_row], context.stride};
        attend(work, heads, own, memory, work.visible.data, each.length, output);
    }
}

// One sub-layer of attention: project, attend with the given function, project back and add.
template <typename Attend>
inline void attention_sublayer(Work& work, const Stack& stack, const Linear& in, const Linear& out, const Norm& norm,
                               Rows x, int rows, int width, Attend&& attend_rows) {
    Rows input = sublayer_input(work, stack, norm, x, rows, width);
    work.wide.reserve(size_t(rows) * in.outputs);
    work.context.reserve(size_t(rows) * out.inputs);
    Rows queries = {work.wide.data, size_t(in.outputs)}, context = {work.context.data, size_t(out.inputs)};
    apply(work, in, input, rows, queries, Then::STORE);
    attend_rows(queries, context);
    apply(work, out, context, rows, x, Then::ADD);
    end_sublayer(stack, norm, x, rows, width);
}

// All blocks; with `caches_only`, the last one stops once its keys and values are stored.
inline void run_blocks(StackWork& work, const Stack& stack, Rows x, int rows, int width, bool causal, bool caches_only) {
    for (int layer = 0; layer < stack.settings.layers; layer++) {
        const Block& block = stack.blocks[layer];
        attention_sublayer(work, stack, block.attention.query_key_value, block.attention.output, block.attention_norm,
                           x, rows, width, [&](Rows queries, Rows context) {
                               attend_within(work, stack, block, layer, causal, queries, context);
                           });
        if (caches_only && layer + 1 == stack.settings.layers) return;
        if (stack.has_cross)
            attention_sublayer(work, stack, block.cross.query, block.cross.output, block.cross_norm, x, rows, width,
                               [&](Rows queries, Rows context) {
                                   attend_to_memory(work, stack, block, layer, queries, context);
                               });
        feed_forward(work, stack, block, x, rows, width);
    }
    if (stack.final_norm.weight)
        for (int row = 0; row < rows; row++)
            normalise_row(x[row], width, stack.final_norm, stack.settings.norm_epsilon, x[row]);
}

// Adds to each token what it forms with its neighbours, before the first block.
inline void add_neighbourhoods(StackWork& work, const Linear& convolution, Rows x, int width) {
    const int side = convolution.inputs / width / 2;
    for (const Sequence& each : work.sequences) {
        const size_t inputs = convolution.inputs;
        work.wide.resize(0);
        work.wide.resize(each.length * inputs);
        for (int place = 0; place < each.length; place++)
            for (int offset = -side; offset <= side; offset++)
                if (place + offset >= 0 && place + offset < each.length)
                    memcpy(work.wide.data + place * inputs + size_t(offset + side) * width,
                           x[each.first_row + place + offset], width * sizeof(float));
        work.context.reserve(size_t(each.length) * width);
        Rows formed = {work.context.data, size_t(width)};
        apply(work, convolution, {work.wide.data, inputs}, each.length, formed, Then::GELU);
        for (int place = 0; place < each.length; place++)
            for (int i = 0; i < width; i++) x[each.first_row + place][i] += formed[place][i];
    }
}

// Computes the cross-attention keys and values of a memory for all layers, and hands each row to `place_row`.
template <typename Place>
inline void project_memory(StackWork& work, const Stack& decoder, Rows memory, int rows, Place&& place_row) {
    for (int layer = 0; layer < decoder.settings.layers; layer++) {
        const Linear& linear = decoder.blocks[layer].cross.key_value;
        work.wide.reserve(size_t(rows) * linear.outputs);
        Rows key_values = {work.wide.data, size_t(linear.outputs)};
        apply(work, linear, memory, rows, key_values, Then::STORE);
        for (size_t number = 0; number < work.sequences.size; number++) {
            const Sequence& each = work.sequences[number];
            for (int place = 0; place < each.length; place++)
                place_row(number, layer, place, key_values[each.first_row + place]);
        }
    }
}

}  // namespace ISA
}  // namespace heedful
