// Whole texts at once: the scores of given targets, and an encoder's output for texts.
#pragma once

#include "decoding_step.h"

namespace heedful {
namespace ISA {

// Tokens that go through a stack at a time.
constexpr int TOKENS_AT_A_TIME = 2048;

// The log-probability of one token of each row, from its logits.
inline void token_scores(DecodingWork& work, const heedful_model& model, Rows x, int rows, const int32_t* tokens,
                         float* scores) {
    const int vocabulary = model.settings.vocabulary, at_a_time = 64;
    work.tile.reserve(size_t(at_a_time) * vocabulary);
    for (int first = 0; first < rows; first += at_a_time) {
        const int count = rows - first < at_a_time ? rows - first : at_a_time;
        Rows logits = {work.tile.data, size_t(vocabulary)};
        apply(work, model.output, {x[first], x.stride}, count, logits, Then::STORE);
        for (int row = 0; row < count; row++) {
            // By tiles, as in decoding.
            float peak = -INFINITY, total = 0.0f;
            for (int pass = 0; pass < 2; pass++)
                for (int column = 0; column < vocabulary; column += LOGIT_TILE) {
                    const int columns = vocabulary - column < LOGIT_TILE ? vocabulary - column : LOGIT_TILE;
                    float own_peak, own_total;
                    softmax_part(logits[row] + column, columns, &own_peak, &own_total);
                    if (pass)
                        total += own_total * expf(own_peak - peak);
                    else
                        peak = own_peak > peak ? own_peak : peak;
                }
            scores[first + row] = (logits[row][tokens[first + row]] - peak) - logf(total);
            if (!isfinite(scores[first + row])) fail("the model's scores are not numbers");
        }
    }
}

struct Pairs {
    const int32_t *sources, *source_lengths, *targets, *target_lengths;
    float *scores, *alignment;
};

// Scratch space for pairs that are scored together.
struct ScoringWork : DecodingWork {
    Array<float> cross_keys, cross_values;
    Array<size_t> starts;
    Array<int32_t> read, wanted;

    void free() {
        DecodingWork::free();
        for (Array<float>* each : {&cross_keys, &cross_values}) each->free();
        for (Array<int32_t>* each : {&read, &wanted}) each->free();
        starts.free();
    }
};

// Calls a function with a workspace that is freed even if it fails.
template <typename Space, typename Function> inline void with_work(Pool* pool, Function&& function) {
    Space work = {};
    work.pool = pool;
    int failed = guarded([&] { function(work); });
    work.free();
    if (failed) fail_again();
}

// Scores a few pairs; a model without an encoder scores only the targets, each after the first token of its source.
inline void score_pairs(ScoringWork& work, const heedful_model& model, int count, const Pairs& pairs) {
    const int width = model.settings.width;
    const Stack &encoder = model.encoder, &decoder = model.decoder;
    const size_t key_row = decoder.key_row(), value_row = decoder.value_row();
    const bool translates = decoder.has_cross;
    Array<float>&cross_keys = work.cross_keys, &cross_values = work.cross_values;
    Array<size_t>& starts = work.starts;
    Array<int32_t>&read = work.read, &wanted = work.wanted;
    cross_keys.size = cross_values.size = starts.size = read.size = wanted.size = 0;
    int rows = 0;
    if (translates) {
        work.sequences.size = 0;
        size_t places = 0;
        for (int i = 0; i < count; i++) {
            work.sequences.add({rows, pairs.source_lengths[i], nullptr, nullptr, 0, nullptr, nullptr, 0, 0, nullptr});
            rows += pairs.source_lengths[i];
            starts.add(places);
            places += rounded_up(pairs.source_lengths[i], LANES) * decoder.settings.layers;
        }
        cross_keys.resize(places * key_row);
        cross_values.resize(places * value_row);
        work.x.reserve(size_t(rows) * width);
        Rows x = {work.x.data, size_t(width)};
        const int32_t* source = pairs.sources;
        for (const Sequence& each : work.sequences)
            for (int place = 0; place < each.length; place++)
                embed(encoder, width, *source++, 0, place, x[each.first_row + place]);
        run_blocks(work, encoder, x, rows, width, false, false);
        project_memory(work, decoder, x, rows, [&](size_t number, int layer, int place, const float* key_value) {
            const size_t own = rounded_up(pairs.source_lengths[number], LANES);
            put_place(decoder, key_value, cross_keys.data + (starts[number] + layer * own) * key_row,
                      cross_values.data + (starts[number] + layer * own) * value_row, place);
        });
    }
    rows = 0;
    work.sequences.size = 0;
    const int32_t *source = pairs.sources, *target = pairs.targets;
    float* record = pairs.alignment;
    for (int i = 0; i < count; i++) {
        const int length = pairs.target_lengths[i] + translates, own = pairs.source_lengths[i];
        Sequence each = {rows, length, nullptr, nullptr, 0, nullptr, nullptr, 0, own, record};
        if (translates) {
            each.cross_places = static_cast<int>(rounded_up(own, LANES));
            each.cross_keys = cross_keys.data + starts[i] * key_row;
            each.cross_values = cross_values.data + starts[i] * value_row;
        }
        if (record) record += size_t(length) * own;
        work.sequences.add(each);
        read.add(translates ? model.settings.start : *source);
        for (int place = 0; place < pairs.target_lengths[i]; place++) {
            wanted.add(target[place]);
            if (place + 1 < length) read.add(target[place]);
        }
        if (translates) wanted.add(model.settings.end);
        source += own;
        target += pairs.target_lengths[i];
        rows += length;
    }
    work.x.reserve(size_t(rows) * width);
    Rows x = {work.x.data, size_t(width)};
    for (const Sequence& each : work.sequences)
        for (int place = 0; place < each.length; place++)
            embed(decoder, width, read[each.first_row + place], 0, place, x[each.first_row + place]);
    run_blocks(work, decoder, x, rows, width, true, false);
    token_scores(work, model, x, rows, wanted.data, pairs.scores);
}

inline void score(heedful_model& model, Pool* pool, int count, const int32_t* sources, const int32_t* source_lengths,
                  const int32_t* targets, const int32_t* target_lengths, float* scores, float* alignment) {
    const bool translates = model.decoder.has_cross;
    with_work<ScoringWork>(pool, [&](ScoringWork& work) {
        for (int first = 0, last; first < count; first = last) {
            Pairs pairs = {sources, source_lengths + first, targets, target_lengths + first, scores, alignment};
            int tokens = 0;
            for (last = first; last < count && (last == first || tokens < TOKENS_AT_A_TIME); last++) {
                const int rows = target_lengths[last] + translates;
                tokens += source_lengths[last] + rows;
                sources += source_lengths[last];
                targets += target_lengths[last];
                scores += rows;
                if (alignment) alignment += size_t(rows) * source_lengths[last];
            }
            score_pairs(work, model, last - first, pairs);
        }
    });
}

// An encoder's output for texts: every token's vector, or one vector per text (pooling 1: the first token's, 2: the
// mean); with a head, its answers for those.
inline void encode_texts(StackWork& work, const heedful_model& model, int count, const int32_t* ids,
                         const int32_t* segments, const int32_t* lengths, int pooling, int head, float* output) {
    const int width = model.settings.width, outputs = head ? model.output.outputs : width;
    for (int first = 0, last; first < count; first = last) {
        int rows = 0;
        work.sequences.size = 0;
        for (last = first; last < count && (last == first || rows < TOKENS_AT_A_TIME); last++) {
            work.sequences.add({rows, lengths[last], nullptr, nullptr, 0, nullptr, nullptr, 0, 0, nullptr});
            rows += lengths[last];
        }
        work.x.reserve(size_t(rows) * width);
        Rows x = {work.x.data, size_t(width)};
        for (const Sequence& each : work.sequences)
            for (int place = 0; place < each.length; place++)
                embed(model.encoder, width, *ids++, segments ? *segments++ : 0, place, x[each.first_row + place]);
        if (model.settings.convolution) add_neighbourhoods(work, model.convolution, x, width);
        run_blocks(work, model.encoder, x, rows, width, false, false);
        if (pooling) {
            for (size_t i = 0; i < work.sequences.size; i++) {
                const Sequence& each = work.sequences[i];
                if (pooling == 1) {
                    memmove(x[i], x[each.first_row], width * sizeof(float));
                    continue;
                }
                for (int k = 0; k < width; k++) {
                    float total = 0.0f;
                    for (int place = 0; place < each.length; place++) total += x[each.first_row + place][k];
                    x[i][k] = total / static_cast<float>(each.length);
                }
            }
            rows = static_cast<int>(work.sequences.size);
        }
        if (head) {
            work.normalised.reserve(size_t(rows) * width);
            Rows y = {work.normalised.data, size_t(width)};
            if (model.pooler.outputs) {
                apply(work, model.pooler, x, rows, y, Then::STORE);
                for (int row = 0; row < rows; row++)
                    for (int k = 0; k < width; k++) x[row][k] = tanhf(y[row][k]);
            }
            if (model.transform.outputs) {
                apply(work, model.transform, x, rows, y, Then::GELU);
                for (int row = 0; row < rows; row++)
                    normalise_row(y[row], width, model.transform_norm, model.encoder.settings.norm_epsilon, x[row]);
            }
            apply(work, model.output, x, rows, {output, size_t(outputs)}, Then::STORE);
        } else {
            memcpy(output, x.data, size_t(rows) * width * sizeof(float));
        }
        output += size_t(rows) * outputs;
    }
}

inline void encode(heedful_model& model, Pool* pool, int count, const int32_t* ids, const int32_t* segments,
                   const int32_t* lengths, int pooling, int head, float* output) {
    with_work<StackWork>(pool, [&](StackWork& work) {
        encode_texts(work, model, count, ids, segments, lengths, pooling, head, output);
    });
}

}  // namespace ISA
}  // namespace heedful
