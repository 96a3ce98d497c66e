// One token of every sentence: prefilling, the way of the new tokens through the decoder, and the candidates.
#pragma once

#include "stacks.h"

namespace heedful {
namespace ISA {

// Columns of logits that are computed at a time, for all rows.
constexpr int LOGIT_TILE = 256;

struct DecodingWork : StackWork {
    Array<float> masks, window_masks;
    Array<Visible> self_visible, window_visible, cross_visible;
    Array<float> tile, tile_peaks, tile_sums;
    Array<Candidate> part_candidates;
    Array<int> part_counts;

    void free() {
        StackWork::free();
        for (Array<float>* each : {&masks, &window_masks, &tile, &tile_peaks, &tile_sums}) each->free();
        for (Array<Visible>* each : {&self_visible, &window_visible, &cross_visible}) each->free();
        part_candidates.free();
        part_counts.free();
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
        // Zeros: what is in the last block after the source has weight 0, and must be a number.
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

// The keys and values of prompts, all but their last token, which all rows of a sentence share.
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

// What each row sees: the places on its path, and in layers with a window those that are near.
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

// The rows of each sentence, one sentence after another.
template <typename Function> inline void for_each_sentence(Group& group, Function&& function) {
    for (size_t first = 0, last; first < group.rows.size; first = last) {
        Sentence& sentence = *group.rows[first].sentence;
        for (last = first; last < group.rows.size && group.rows[last].sentence == &sentence;) last++;
        function(sentence, first, static_cast<int>(last - first));
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

// Keeps the largest logits, the lower token first among equals.
inline void insert(Candidate* best, int& count, int most, Candidate found) {
    int place = count < most ? count++ : most - 1;
    for (; place > 0 && best[place - 1].logit < found.logit; place--) best[place] = best[place - 1];
    best[place] = found;
}

// The largest logits of a part of a row, whose first column has the number `first`.
inline void collect(const float* logits, int first, int columns, Candidate* best, int& count, int most) {
    for (int i = 0; i < columns; i += LANES) {
        const float limit = count < most ? -INFINITY : best[most - 1].logit;
        Floats x = load_rest(logits, i, columns);
        uint32_t found = above(x, broadcast(limit));
        if (columns - i < LANES) found &= (1u << (columns - i)) - 1;
        for (; found; found &= found - 1) {
            const int place = i + __builtin_ctz(found);
            if (count == most && !(logits[place] > best[most - 1].logit)) continue;
            insert(best, count, most, {logits[place], first + place});
        }
    }
}

// The largest of some logits, and the sum of exp(logit - largest).
inline void softmax_part(const float* logits, int columns, float* peak, float* total) {
    Floats most = broadcast(-INFINITY), sums = broadcast(0.0f);
    int i = 0;
    for (; i + LANES <= columns; i += LANES) most = largest(most, load(logits + i));
    float top = largest(most);
    for (int k = i; k < columns; k++) top = logits[k] > top ? logits[k] : top;
    const Floats shift = broadcast(top);
    for (i = 0; i + LANES <= columns; i += LANES) sums = sums + exponential(load(logits + i) - shift);
    float rest = 0.0f;
    for (int k = i; k < columns; k++) rest += expf(logits[k] - top);
    *peak = top;
    *total = sum(sums) + rest;
}

// Tiles of logits that one thread computes, one after another.
struct LogitTiles {
    DecodingWork* work;
    Group* group;
    const heedful_model* model;
    Quantized bytes;
    Rows x;
    int rows, tiles, parts, beam;
    size_t room;  // of tile rows
    bool keep, collects;  // all logits; the candidates
};

// Special tokens but the end are never chosen, nor is the end before the shortest length.
inline void forbid(const heedful_settings& s, const StepRow& row, float* logits, int first, int columns) {
    const bool early = row.sentence->length < row.sentence->shortest;
    for (int32_t id : {s.pad, s.start, s.mask, early ? s.end : -1})
        if (id >= first && id < first + columns && (id != s.end || early)) logits[id - first] = -INFINITY;
}

inline void logit_tiles(void* all_tiles, int part) {
    const LogitTiles& all = *static_cast<LogitTiles*>(all_tiles);
    const heedful_settings& s = all.model->settings;
    const Linear& output = all.model->output;
    const int first_tile = all.tiles * part / all.parts, last_tile = all.tiles * (part + 1) / all.parts;
    const size_t stride = all.keep ? size_t(s.vocabulary) : LOGIT_TILE;
    for (int tile = first_tile; tile < last_tile; tile++) {
        const int first = tile * LOGIT_TILE, columns = s.vocabulary - first < LOGIT_TILE ? s.vocabulary - first : LOGIT_TILE;
        float* logits = all.keep ? all.group->logits.data + first : all.work->tile.data + part * all.room;
        const int panel = first / PANEL, last_panel = panel + (columns + PANEL - 1) / PANEL;
        if (output.bytes)
            int8_panels(output, all.bytes, all.rows, panel, last_panel, {logits, stride, Then::STORE});
        else
            fp32_panels(output, all.x.data, all.x.stride, all.rows, panel, last_panel, {logits, stride, Then::STORE});
        for (int row = 0; row < all.rows; row++) {
            float* own = logits + row * stride;
            softmax_part(own, columns, all.work->tile_peaks.data + size_t(row) * all.tiles + tile,
                         all.work->tile_sums.data + size_t(row) * all.tiles + tile);
            StepRow& each = all.group->rows[row];
            if (each.wanted >= first && each.wanted < first + columns) each.wanted_logit = own[each.wanted - first];
            forbid(s, each, own, first, columns);
            if (!all.collects) continue;
            const size_t place = size_t(part) * all.rows + row;
            collect(own, first, columns, all.work->part_candidates.data + place * all.beam,
                    all.work->part_counts[place], all.beam);
        }
    }
}

// Joins what the parts found: the softmax in the order of the tiles, candidates in the order of tokens.
inline void join_parts(const LogitTiles& all) {
    Group& group = *all.group;
    for (int row = 0; row < all.rows; row++) {
        StepRow& each = group.rows[row];
        const float* peaks = all.work->tile_peaks.data + size_t(row) * all.tiles;
        const float* sums = all.work->tile_sums.data + size_t(row) * all.tiles;
        each.peak = peaks[0];
        for (int tile = 1; tile < all.tiles; tile++) each.peak = peaks[tile] > each.peak ? peaks[tile] : each.peak;
        float total = 0.0f;
        for (int tile = 0; tile < all.tiles; tile++) total += sums[tile] * expf(peaks[tile] - each.peak);
        each.log_sum = logf(total);
        each.num_candidates = 0;
        // A logit that is NaN or infinite makes NaN of the sum.
        if (!isfinite(each.log_sum)) fail("the model's scores are not numbers");
        if (!all.collects) continue;
        Candidate* best = group.candidates.data + size_t(row) * all.beam;
        for (int part = 0; part < all.parts; part++) {
            const size_t place = size_t(part) * all.rows + row;
            for (int i = 0; i < all.work->part_counts[place]; i++) {
                const Candidate& found = all.work->part_candidates[place * all.beam + i];
                if (each.num_candidates == all.beam && !(found.logit > best[all.beam - 1].logit)) break;
                insert(best, each.num_candidates, all.beam, found);
            }
        }
    }
}

inline void find_candidates(DecodingWork& work, Group& group, const heedful_model& model, Rows x) {
    const heedful_options& options = group.decoder->options;
    LogitTiles all = {};
    all.work = &work;
    all.group = &group;
    all.model = &model;
    all.x = x;
    all.rows = static_cast<int>(group.rows.size);
    all.tiles = (model.settings.vocabulary + LOGIT_TILE - 1) / LOGIT_TILE;
    all.beam = options.beam;
    all.collects = chooses_by_candidates(options);
    all.keep = !all.collects || options.keep_logits;
    const bool divided = work.pool && model.output.weight_bytes() >= WORTH_DIVIDING;
    all.parts = divided ? (2 * work.threads() < all.tiles ? 2 * work.threads() : all.tiles) : 1;
    all.room = size_t(all.rows) * LOGIT_TILE;
    if (model.output.bytes) all.bytes = quantized(work, model.output, x, all.rows);
    work.tile_peaks.reserve(size_t(all.rows) * all.tiles);
    work.tile_sums.reserve(size_t(all.rows) * all.tiles);
    if (all.keep)
        group.logits.reserve(size_t(all.rows) * model.settings.vocabulary);
    else
        work.tile.reserve(all.parts * all.room);
    if (all.collects) {
        work.part_candidates.reserve(size_t(all.parts) * all.rows * all.beam);
        work.part_counts.size = 0;
        work.part_counts.resize(size_t(all.parts) * all.rows);
        group.candidates.reserve(size_t(all.rows) * all.beam);
    }
    if (divided)
        work.pool->run(logit_tiles, &all, all.parts);
    else
        logit_tiles(&all, 0);
    join_parts(all);
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
