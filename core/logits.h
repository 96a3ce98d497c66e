// The logits of a step, tile by tile: what the softmax and the search need is taken while a tile is in the cache.
//
// Columns stand for the tokens of the vocabulary, or, with a shortlist, for the frequent tokens and then, in separate
// tiles, for those of the row's sentence.
#pragma once

#include "decoder.h"
#include "stacks.h"

namespace heedful {
namespace ISA {

// Columns of logits computed at a time, for all rows.
constexpr int LOGIT_TILE = 256;

struct LogitWork : StackWork {
    Array<float> tile, tile_peaks, tile_sums;
    Array<Candidate> part_candidates;
    Array<int> part_counts;

    void free() {
        StackWork::free();
        for (Array<float>* each : {&tile, &tile_peaks, &tile_sums}) each->free();
        part_candidates.free();
        part_counts.free();
    }
};

// The rows of each sentence, one sentence after another.
template <typename Function> inline void for_each_sentence(Group& group, Function&& function) {
    for (size_t first = 0, last; first < group.rows.size; first = last) {
        Sentence& sentence = *group.rows[first].sentence;
        for (last = first; last < group.rows.size && group.rows[last].sentence == &sentence;) last++;
        function(sentence, first, static_cast<int>(last - first));
    }
}

// Keeps the largest logits; among equals the first column comes first.
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
    LogitWork* work;
    Group* group;
    const heedful_settings* settings;
    const Linear* common;  // the columns that all rows share
    Quantized bytes;
    Rows x;
    int rows, common_tiles, tiles, parts, beam;
    size_t stride, room;  // from one row to the next; for the rows of a tile
    bool shortlisted, keep, collects;  // all logits; the candidates
};

// Special tokens except the end are never chosen, nor is the end before the shortest length. With a shortlist, the end
// is the first column, and there is no other special token.
inline void forbid(const LogitTiles& all, const StepRow& row, float* logits, int first, int columns) {
    const heedful_settings& s = *all.settings;
    const bool early = row.sentence->length < row.sentence->shortest;
    if (all.shortlisted) {
        if (early && !first) logits[0] = -INFINITY;
        return;
    }
    for (int32_t id : {s.pad, s.start, s.mask, early ? s.end : -1})
        if (id >= first && id < first + columns && (id != s.end || early)) logits[id - first] = -INFINITY;
}

// Some columns of a layer, from the start of a panel, for some rows.
inline void multiply_tile(const LogitTiles& all, const Linear& output, size_t first_row, int rows, int first, int columns,
                          float* logits) {
    const int panel = first / PANEL, last = panel + (columns + PANEL - 1) / PANEL;
    const Output to = {logits, all.stride, Then::STORE};
    if (output.bytes) {
        const Quantized own = {all.bytes.bytes + first_row * output.byte_stride(), all.bytes.scales + first_row};
        int8_panels(output, own, rows, panel, last, to);
    } else {
        fp32_panels(output, all.x[first_row], all.x.stride, rows, panel, last, to);
    }
}

// Takes what is needed from a row's part of a tile, whose first column is `first` in the whole row.
inline void take_in(const LogitTiles& all, int part, int tile, size_t row, int first, int columns, float* logits) {
    const size_t place = row * all.tiles + tile;
    softmax_part(logits, columns, all.work->tile_peaks.data + place, all.work->tile_sums.data + place);
    StepRow& each = all.group->rows[row];
    if (each.wanted >= first && each.wanted < first + columns) each.wanted_logit = logits[each.wanted - first];
    forbid(all, each, logits, first, columns);
    if (!all.collects) return;
    const size_t own = size_t(part) * all.rows + row;
    collect(logits, first, columns, all.work->part_candidates.data + own * all.beam, all.work->part_counts[own], all.beam);
}

inline int columns_from(const Linear& output, int first) {
    return output.outputs - first < LOGIT_TILE ? output.outputs - first : LOGIT_TILE;
}

inline void common_tile(const LogitTiles& all, int part, int tile) {
    const int first = tile * LOGIT_TILE, columns = columns_from(*all.common, first);
    float* logits = all.keep ? all.group->logits.data + first : all.work->tile.data + part * all.room;
    multiply_tile(all, *all.common, 0, all.rows, first, columns, logits);
    for (int row = 0; row < all.rows; row++) take_in(all, part, tile, row, first, columns, logits + row * all.stride);
}

// The columns that only one sentence's rows have; other sentences may have fewer.
inline void own_tile(const LogitTiles& all, int part, int tile) {
    const int first = (tile - all.common_tiles) * LOGIT_TILE, column = all.common->outputs + first;
    float* logits = all.keep ? all.group->logits.data + column : all.work->tile.data + part * all.room;
    for_each_sentence(*all.group, [&](Sentence& sentence, size_t first_row, int count) {
        const Linear& own = sentence.own_output.linear;
        const int columns = columns_from(own, first);
        if (columns > 0) multiply_tile(all, own, first_row, count, first, columns, logits + first_row * all.stride);
        for (size_t row = first_row; row < first_row + count; row++) {
            if (columns > 0) {
                take_in(all, part, tile, row, column, columns, logits + row * all.stride);
            } else {
                all.work->tile_peaks[row * all.tiles + tile] = -INFINITY;
                all.work->tile_sums[row * all.tiles + tile] = 0.0f;
            }
        }
    });
}

inline void logit_tiles(void* all_tiles, int part) {
    const LogitTiles& all = *static_cast<LogitTiles*>(all_tiles);
    const int first = all.tiles * part / all.parts, last = all.tiles * (part + 1) / all.parts;
    for (int tile = first; tile < last; tile++) (tile < all.common_tiles ? common_tile : own_tile)(all, part, tile);
}

// Joins what the parts found: the softmax in the order of the tiles, candidates in the order of columns.
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
        // A logit that is NaN or infinite makes the sum NaN.
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

inline int tiles_of(size_t columns) { return static_cast<int>((columns + LOGIT_TILE - 1) / LOGIT_TILE); }

inline LogitTiles tiles_of_step(LogitWork& work, Group& group, const heedful_model& model, Rows x) {
    const heedful_options& options = group.decoder->options;
    LogitTiles all = {};
    all.work = &work;
    all.group = &group;
    all.settings = &model.settings;
    all.x = x;
    all.rows = static_cast<int>(group.rows.size);
    all.shortlisted = model.shortlist.used();
    all.common = all.shortlisted ? &model.shortlist.output.linear : &model.output;
    all.common_tiles = tiles_of(all.common->outputs);
    size_t own = 0;
    for (const StepRow& each : group.rows) own = each.sentence->own_tokens.size > own ? each.sentence->own_tokens.size : own;
    all.tiles = all.common_tiles + tiles_of(own);
    all.beam = options.beam;
    all.collects = chooses_by_candidates(options);
    all.keep = !all.collects || options.keep_logits;
    all.stride = all.keep ? all.common->outputs + own : LOGIT_TILE;
    all.room = size_t(all.rows) * LOGIT_TILE;
    const bool divided = work.pool && all.common->weight_bytes() >= WORTH_DIVIDING;
    all.parts = divided ? (2 * work.threads() < all.tiles ? 2 * work.threads() : all.tiles) : 1;
    return all;
}

inline void find_candidates(LogitWork& work, Group& group, const heedful_model& model, Rows x) {
    LogitTiles all = tiles_of_step(work, group, model, x);
    if (all.common->bytes) all.bytes = quantized(work, *all.common, x, all.rows);
    work.tile_peaks.reserve(size_t(all.rows) * all.tiles);
    work.tile_sums.reserve(size_t(all.rows) * all.tiles);
    if (all.keep) {
        group.logits.reserve(all.rows * all.stride);
        group.logit_stride = all.stride;
    } else {
        work.tile.reserve(all.parts * all.room);
    }
    if (all.collects) {
        work.part_candidates.reserve(size_t(all.parts) * all.rows * all.beam);
        work.part_counts.size = 0;
        work.part_counts.resize(size_t(all.parts) * all.rows);
        group.candidates.reserve(size_t(all.rows) * all.beam);
    }
    if (all.parts > 1)
        work.pool->run(logit_tiles, &all, all.parts);
    else
        logit_tiles(&all, 0);
    join_parts(all);
}

}  // namespace ISA
}  // namespace heedful
