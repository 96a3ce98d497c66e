// One token of every sentence: prefilling, and running the new tokens through the decoder.
#pragma once

#include "logits.h"

namespace heedful {
namespace ISA {

struct DecodingWork : LogitWork {
    Array<float> masks, window_masks;
    Array<Visible> self_visible, window_visible, cross_visible;

    void free() {
        LogitWork::free();
        for (Array<float>* each : {&masks, &window_masks}) each->free();
        for (Array<Visible>* each : {&self_visible, &window_visible, &cross_visible}) each->free();
    }
};

inline DecodingWork& work_of(Group& group) { return *reinterpret_cast<DecodingWork*>(group.workspace); }

inline size_t cross_places(const Sentence& sentence) { return rounded_up(sentence.source_length, LANES); }

// Encodes sources, and computes the keys and values that the decoder attends to.
inline void prefill_sources(DecodingWork& work, const heedful_model& model, Sentence** sentences, int count) {
    const int width = model.settings.width;
    const Stack &encoder = model.encoder, &decoder = model.decoder;
    const size_t key_row = decoder.key_row(), value_row = decoder.value_row();
    int rows = 0;
    work.sequences.size = 0;
    for (int i = 0; i < count; i++) {
        Sentence& each = *sentences[i];
        each.source_length = static_cast<int>(each.source.size);
        work.sequences.add({rows, each.source_length, nullptr, nullptr, 0, nullptr, nullptr, 0, 0, nullptr});
        rows += each.source_length;
        const size_t places = cross_places(each) * decoder.settings.layers;
        // Zeros: the last block's places after the source have weight 0, but must hold numbers.
        each.cross_keys.size = each.cross_values.size = 0;
        each.cross_keys.resize(places * key_row);
        each.cross_values.resize(places * value_row);
    }
    work.x.reserve(size_t(rows) * width);
    Rows x = {work.x.data, size_t(width)};
    for (int i = 0; i < count; i++)
        for (int place = 0; place < sentences[i]->source_length; place++)
            embed(encoder, width, sentences[i]->source[place], 0, place, x[work.sequences[i].first_row + place]);
    run_blocks(work, encoder, x, rows, width, false, false);
    project_memory(work, decoder, x, rows, [&](size_t number, int layer, int place, const float* key_value) {
        Sentence& each = *sentences[number];
        const size_t places = cross_places(each);
        put_place(decoder, key_value, each.cross_keys.data + layer * places * key_row,
                  each.cross_values.data + layer * places * value_row, place);
    });
}

// The keys and values of prompts without their last token; all rows of a sentence share them.
inline void prefill_prompts(DecodingWork& work, const heedful_model& model, Sentence** sentences, int count) {
    const int width = model.settings.width;
    const Stack& decoder = model.decoder;
    int rows = 0;
    work.sequences.size = 0;
    for (int i = 0; i < count; i++) {
        Sentence& each = *sentences[i];
        const int length = static_cast<int>(each.source.size);
        each.make_room(length + each.beam, decoder.settings.layers, decoder.key_row(), decoder.value_row());
        each.make_path_room(length + 1);
        for (int place = 0; place < length; place++) {
            each.place_positions[place] = place;
            for (int row = 0; row < each.beam; row++) each.paths[size_t(row) * each.path_room + place] = place;
        }
        each.position = each.used = length;
        if (!length) continue;
        work.sequences.add(
            {rows, length, each.keys.data, each.values.data, each.places, nullptr, nullptr, 0, 0, nullptr});
        rows += length;
    }
    if (!rows) return;
    work.x.reserve(size_t(rows) * width);
    Rows x = {work.x.data, size_t(width)};
    for (int i = 0, row = 0; i < count; i++)
        for (size_t place = 0; place < sentences[i]->source.size; place++)
            embed(decoder, width, sentences[i]->source[place], 0, place, x[row++]);
    run_blocks(work, decoder, x, rows, width, true, true);
}

inline void prefill(Group& group, Pool* pool, Sentence** sentences, int count) {
    DecodingWork& work = work_of(group);
    work.pool = pool;
    const heedful_model& model = *group.decoder->model;
    (model.decoder.has_cross ? prefill_sources : prefill_prompts)(work, model, sentences, count);
}

// Gives the new token of every running row a place in the cache: the lowest that no path goes through.
inline void place_nodes(const Stack& stack, Sentence& sentence) {
    sentence.make_room(sentence.used + sentence.beam, stack.settings.layers, stack.key_row(), stack.value_row());
    sentence.make_path_room(sentence.position + 1);
    memset(sentence.taken.data, 0, sentence.places);
    for (int row = 0; row < sentence.beam; row++) {
        if (!sentence.running(row)) continue;
        const int32_t* path = sentence.paths.data + size_t(row) * sentence.path_room;
        for (int position = 0; position < sentence.position; position++) sentence.taken[path[position]] = 1;
    }
    int place = 0;
    for (int row = 0; row < sentence.beam; row++) {
        if (!sentence.running(row)) continue;
        while (sentence.taken[place]) place++;
        sentence.taken[place] = 1;
        sentence.paths[size_t(row) * sentence.path_room + sentence.position] = place;
        sentence.place_positions[place] = sentence.position;
    }
    sentence.used = sentence.places;
    while (!sentence.taken[sentence.used - 1]) sentence.used--;
}

// What each row sees: the places on its path, and in layers with a window the near ones among them.
inline void look_around(DecodingWork& work, const Stack& stack, Group& group) {
    int most = 0;
    for (const StepRow& each : group.rows) most = each.sentence->used > most ? each.sentence->used : most;
    const size_t stride = rounded_up(most, LANES), rows = group.rows.size;
    const int window = stack.settings.window;
    work.masks.reserve(rows * stride);
    work.self_visible.resize(rows);
    work.cross_visible.resize(rows);
    if (window) {
        work.window_masks.reserve(rows * stride);
        work.window_visible.resize(rows);
    }
    for (size_t i = 0; i < rows; i++) {
        const Sentence& sentence = *group.rows[i].sentence;
        const int32_t* path = sentence.paths.data + size_t(group.rows[i].row) * sentence.path_room;
        float *mask = work.masks.data + i * stride, *near = window ? work.window_masks.data + i * stride : nullptr;
        for (size_t place = 0; place < rounded_up(sentence.used, LANES); place++) mask[place] = -INFINITY;
        for (int position = 0; position <= sentence.position; position++) mask[path[position]] = 0.0f;
        if (near) {
            memcpy(near, mask, rounded_up(sentence.used, LANES) * sizeof(float));
            for (int position = 0; position <= sentence.position - window; position++) near[path[position]] = -INFINITY;
            work.window_visible[i] = {0, sentence.used, near, sentence.position};
        }
        work.self_visible[i] = {0, sentence.used, mask, sentence.position};
        work.cross_visible[i] = {0, sentence.source_length, nullptr, 0};
    }
}

inline void step_blocks(DecodingWork& work, const Stack& stack, Group& group, Rows x, int width) {
    const int rows = static_cast<int>(group.rows.size), query_row = stack.query_row();
    const size_t key_row = stack.key_row(), value_row = stack.value_row();
    for (int layer = 0; layer < stack.settings.layers; layer++) {
        const Block& block = stack.blocks[layer];
        auto attend_to_past = [&](Rows queries, Rows context) {
            const Heads heads = {&stack, block.attention.scoring_vector, stack.has_bias(), nullptr, 0};
            const bool near = layer % 2 && stack.settings.window;
            const Visible* visible = (near ? work.window_visible : work.self_visible).data;
            for_each_sentence(group, [&](Sentence& sentence, size_t first, int count) {
                float* keys = sentence.keys.data + layer * size_t(sentence.places) * key_row;
                float* values = sentence.values.data + layer * size_t(sentence.places) * value_row;
                for (int i = 0; i < count; i++) {
                    float* row = queries[first + i];
                    if (stack.cosines)
                        rotate(stack, row, stack.settings.heads + stack.settings.key_value_heads, sentence.position);
                    const int32_t* path =
                        sentence.paths.data + size_t(group.rows[first + i].row) * sentence.path_room;
                    put_place(stack, row + query_row, keys, values, path[sentence.position]);
                }
                attend(work, heads, {queries[first], queries.stride}, {keys, values, sentence.place_positions.data},
                       visible + first, count, {context[first], context.stride});
            });
        };
        auto attend_to_source = [&](Rows queries, Rows context) {
            const Heads heads = {&stack, block.cross.scoring_vector, false, nullptr, 0};
            for_each_sentence(group, [&](Sentence& sentence, size_t first, int count) {
                const size_t places = cross_places(sentence);
                attend(work, heads, {queries[first], queries.stride},
                       {sentence.cross_keys.data + layer * places * key_row,
                        sentence.cross_values.data + layer * places * value_row, nullptr},
                       work.cross_visible.data + first, count, {context[first], context.stride});
            });
        };
        attention_sublayer(work, stack, block.attention.query_key_value, block.attention.output, block.attention_norm,
                           x, rows, width, attend_to_past);
        if (stack.has_cross)
            attention_sublayer(work, stack, block.cross.query, block.cross.output, block.cross_norm, x, rows, width,
                               attend_to_source);
        feed_forward(work, stack, block, x, rows, width);
    }
    if (stack.final_norm.weight)
        for (int row = 0; row < rows; row++)
            normalise_row(x[row], width, stack.final_norm, stack.settings.norm_epsilon, x[row]);
}

inline void step(Group& group, Pool* pool) {
    DecodingWork& work = work_of(group);
    work.pool = pool;
    const heedful_model& model = *group.decoder->model;
    const Stack& stack = model.decoder;
    const int width = model.settings.width;
    group.rows.size = 0;
    for (Sentence* sentence : group.running) {
        place_nodes(stack, *sentence);
        const bool forced = size_t(sentence->length) < sentence->prefix.size;
        const int wanted = forced ? sentence->prefix[sentence->length] : -1;
        for (int row = 0; row < sentence->beam; row++)
            if (sentence->running(row)) group.rows.add({sentence, row, wanted, 0.0f, 0.0f, 0.0f, 0});
    }
    work.x.reserve(group.rows.size * width);
    Rows x = {work.x.data, size_t(width)};
    for (size_t i = 0; i < group.rows.size; i++) {
        const StepRow& each = group.rows[i];
        embed(stack, width, each.sentence->tokens[each.row], 0, each.sentence->position, x[i]);
    }
    look_around(work, stack, group);
    step_blocks(work, stack, group, x, width);
    find_candidates(work, group, model, x);
}

}  // namespace ISA
}  // namespace heedful
