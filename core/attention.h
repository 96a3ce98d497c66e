// Attention from the rows of one sentence to its keys and values, head by head (paper, 3.2).
//
// Keys are stored in blocks of 16 places, so that the scores of 16 places are one vector: [block][head and
// element][16]. Values are stored place by place: [place][head and element]. A place that a row does not see has the
// weight 0 in its sums.
#pragma once

#include "layers.h"

namespace heedful {
namespace ISA {

#if defined(__AVX512F__)
constexpr int QUERY_TILE = 6, VALUE_TILE = 4;
#else
constexpr int QUERY_TILE = 4, VALUE_TILE = 1;
#endif

// What one query may see: the places from `begin` up to `end`, where the mask, if there is one, is 0 and not -inf.
struct Visible {
    int begin, end;
    const float* mask;
    int position;  // the query's, for biases by distance
};

struct Memory {
    const float* keys;
    const float* values;
    const int32_t* positions;  // the places' positions; null if each place is its own position
};

struct Heads {
    const Stack* stack;
    const float* scoring_vector;  // additive scores, if not null
    bool biased;                  // whether positions add to the scores
    float* record;                // if not null, rows of weights are added to it
    size_t record_stride;
};

inline float distance_bias(const Stack& stack, int head, int64_t distance) {
    if (stack.slopes) return -stack.slopes[head] * static_cast<float>(distance < 0 ? -distance : distance);
    const int64_t farthest = stack.farthest;
    distance = distance < -farthest ? -farthest : distance > farthest ? farthest : distance;
    return stack.distance_bias[size_t(head) * (2 * farthest + 1) + distance + farthest];
}

// The scores of a few queries in one head, before scaling and masking.
template <int ROWS, bool ADDITIVE>
inline void score_blocks(const float* const* queries, const float* keys, size_t block_stride, const float* vector,
                         int key_width, int first_block, int last_block, float* scores, size_t stride) {
    for (int block = first_block; block < last_block; block++) {
        const float* from = keys + block * block_stride;
        Floats sums[ROWS];
        UNROLLED for (int row = 0; row < ROWS; row++) sums[row] = broadcast(0.0f);
        for (int k = 0; k < key_width; k++) {
            Floats key = load(from + k * LANES);
            UNROLLED for (int row = 0; row < ROWS; row++) {
                Floats query = broadcast(queries[row][k]);
                sums[row] = ADDITIVE ? fma(broadcast(vector[k]), hyperbolic_tangent(query + key), sums[row])
                                     : fma(query, key, sums[row]);
            }
        }
        UNROLLED for (int row = 0; row < ROWS; row++) store(scores + row * stride + block * LANES, sums[row]);
    }
}

// Turns scores into weights; returns 1 over their sum.
inline float softmax_row(float* scores, int first, int last, const Visible& visible, const Heads& heads, int head,
                         const int32_t* positions, float scale) {
    const Floats factor = broadcast(scale), nothing = broadcast(-INFINITY);
    Floats most = nothing;
    for (int place = first; place < last; place += LANES) {
        Floats x = load(scores + place) * factor;
        if (visible.mask) x = x + load(visible.mask + place);
        store(scores + place, x);
        if (!heads.biased && place >= visible.begin && place + LANES <= visible.end) most = largest(most, x);
    }
    if (heads.biased)
        for (int place = visible.begin; place < visible.end; place++)
            scores[place] += distance_bias(*heads.stack, head, (positions ? positions[place] : place) - visible.position);
    for (int place = first; place < visible.begin; place++) scores[place] = -INFINITY;
    for (int place = visible.end; place < last; place++) scores[place] = -INFINITY;
    for (int place = first; place < last; place += LANES)
        if (heads.biased || place < visible.begin || place + LANES > visible.end)
            most = largest(most, load(scores + place));
    const Floats peak = broadcast(largest(most));
    Floats total = broadcast(0.0f);
    for (int place = first; place < last; place += LANES) {
        Floats weight = exponential(load(scores + place) - peak);
        store(scores + place, weight);
        total = total + weight;
    }
    return 1.0f / sum(total);
}

// Weighted sums of values for a few rows of one head.
template <int ROWS, int VECTORS>
inline void mix_values(const float* weights, size_t stride, const float* values, size_t value_stride, int begin,
                       int end, int width, const float* factors, float* const* outputs) {
    Floats sums[ROWS][VECTORS];
    UNROLLED for (int row = 0; row < ROWS; row++) UNROLLED for (int v = 0; v < VECTORS; v++) sums[row][v] =
        broadcast(0.0f);
    const int last = width - (VECTORS - 1) * LANES;
    for (int place = begin; place < end; place++) {
        const float* from = values + place * value_stride;
        Floats value[VECTORS];
        UNROLLED for (int v = 0; v < VECTORS; v++) value[v] =
            v + 1 < VECTORS || last >= LANES ? load(from + v * LANES) : load_first(from + v * LANES, last);
        UNROLLED for (int row = 0; row < ROWS; row++) {
            Floats weight = broadcast(weights[row * stride + place]);
            UNROLLED for (int v = 0; v < VECTORS; v++) sums[row][v] = fma(weight, value[v], sums[row][v]);
        }
    }
    for (int row = 0; row < ROWS; row++)
        UNROLLED for (int v = 0; v < VECTORS; v++)
            store_rest(outputs[row], sums[row][v] * broadcast(factors[row]), v * LANES, width);
}

template <int ROWS>
inline void attend_tile(Work& work, const Heads& heads, const float* const* queries, const Memory& memory,
                        const Visible* visible, int first_row, float* const* outputs) {
    const Stack& stack = *heads.stack;
    const heedful_stack& s = stack.settings;
    int begin = visible[0].begin, end = visible[0].end;
    for (int row = 1; row < ROWS; row++) {
        begin = visible[row].begin < begin ? visible[row].begin : begin;
        end = visible[row].end > end ? visible[row].end : end;
    }
    const int first_block = begin / LANES, last_block = (end + LANES - 1) / LANES;
    const size_t stride = size_t(last_block) * LANES, key_row = stack.key_row(), value_row = stack.value_row();
    work.scores.reserve(QUERY_TILE * stride);
    float* scores = work.scores.data;
    for (int head = 0; head < s.heads; head++) {
        const int group = head / stack.shared();
        const float* query[ROWS];
        float* output[ROWS];
        float factors[ROWS];
        for (int row = 0; row < ROWS; row++) {
            query[row] = queries[row] + head * s.key_width;
            output[row] = outputs[row] + head * s.value_width;
        }
        const float* keys = memory.keys + size_t(group) * s.key_width * LANES;
        const float* vector = heads.scoring_vector;
        if (vector)
            score_blocks<ROWS, true>(query, keys, key_row * LANES, vector + head * s.key_width, s.key_width,
                                     first_block, last_block, scores, stride);
        else
            score_blocks<ROWS, false>(query, keys, key_row * LANES, nullptr, s.key_width, first_block, last_block,
                                      scores, stride);
        for (int row = 0; row < ROWS; row++)
            factors[row] = softmax_row(scores + row * stride, first_block * LANES, last_block * LANES, visible[row],
                                       heads, head, memory.positions, vector ? 1.0f : s.score_scale);
        if (heads.record)
            for (int row = 0; row < ROWS; row++)
                for (int place = begin; place < end; place++)
                    heads.record[(first_row + row) * heads.record_stride + place] +=
                        scores[row * stride + place] * factors[row];
        const float* values = memory.values + group * s.value_width;
        int done = 0;
        for (; s.value_width - done > (VALUE_TILE - 1) * LANES; done += VALUE_TILE * LANES) {
            float* part[ROWS];
            for (int row = 0; row < ROWS; row++) part[row] = output[row] + done;
            const int width = s.value_width - done < VALUE_TILE * LANES ? s.value_width - done : VALUE_TILE * LANES;
            mix_values<ROWS, VALUE_TILE>(scores, stride, values + done, value_row, begin, end, width, factors, part);
        }
        for (; done < s.value_width; done += LANES) {
            float* part[ROWS];
            for (int row = 0; row < ROWS; row++) part[row] = output[row] + done;
            const int width = s.value_width - done < LANES ? s.value_width - done : LANES;
            mix_values<ROWS, 1>(scores, stride, values + done, value_row, begin, end, width, factors, part);
        }
    }
}

// Attention for rows of one sentence: queries in, the heads' outputs side by side out.
inline void attend(Work& work, const Heads& heads, Rows queries, const Memory& memory, const Visible* visible, int rows,
                   Rows outputs) {
    for (int row = 0; row < rows;) {
        const float* query[QUERY_TILE];
        float* output[QUERY_TILE];
        const int count = rows - row < QUERY_TILE ? rows - row : QUERY_TILE;
        for (int i = 0; i < count; i++) {
            query[i] = queries[row + i];
            output[i] = outputs[row + i];
        }
        switch (count) {
#if defined(__AVX512F__)
            case 6: attend_tile<6>(work, heads, query, memory, visible + row, row, output); break;
            case 5: attend_tile<5>(work, heads, query, memory, visible + row, row, output); break;
#endif
            case 4: attend_tile<4>(work, heads, query, memory, visible + row, row, output); break;
            case 3: attend_tile<3>(work, heads, query, memory, visible + row, row, output); break;
            case 2: attend_tile<2>(work, heads, query, memory, visible + row, row, output); break;
            default: attend_tile<1>(work, heads, query, memory, visible + row, row, output);
        }
        row += count;
    }
}

// Puts the keys and values of a row, which are adjacent in memory, into their place.
inline void put_place(const Stack& stack, const float* key_value, float* keys, float* values, int place) {
    const int key_row = stack.key_row(), value_row = stack.value_row();
    float* block = keys + size_t(place / LANES) * key_row * LANES + place % LANES;
    for (int k = 0; k < key_row; k++) block[size_t(k) * LANES] = key_value[k];
    memcpy(values + size_t(place) * value_row, key_value + key_row, value_row * sizeof(float));
}

// Rotates the pairs of each head, an element of the first half and one of the second, by the angles of a position.
inline void rotate(const Stack& stack, float* heads, int count, int position) {
    const int width = stack.settings.key_width, half = width / 2;
    const float* cosines = stack.cosines + size_t(position) * half;
    const float* sines = stack.sines + size_t(position) * half;
    for (int head = 0; head < count; head++) {
        float *first = heads + head * width, *second = first + half;
        for (int i = 0; i < half; i++) {
            float one = first[i], two = second[i];
            first[i] = one * cosines[i] - two * sines[i];
            second[i] = two * cosines[i] + one * sines[i];
        }
    }
}

// The embedding of a token, plus what its position and segment add.
inline void embed(const Stack& stack, int width, int32_t token, int32_t segment, int64_t position, float* row) {
    const heedful_stack& s = stack.settings;
    const float* from = stack.embedding + size_t(token) * width;
    const Floats scale = broadcast(s.embedding_scale);
    for (int i = 0; i < width; i += LANES) store_rest(row, load_rest(from, i, width) * scale, i, width);
    if (stack.table) {
        const bool computed = s.positions == HEEDFUL_SINUSOIDAL || s.positions == HEEDFUL_SINUSOID_HALVES;
        if (position < s.position_rows) {
            const float* added = stack.table + size_t(position) * width;
            for (int i = 0; i < width; i += LANES)
                store_rest(row, load_rest(row, i, width) + load_rest(added, i, width), i, width);
        } else if (computed) {
            float* added = static_cast<float*>(malloc(width * sizeof(float)));
            if (!added) fail("out of memory");
            sinusoid_row(position, width, s.positions == HEEDFUL_SINUSOID_HALVES, added);
            for (int i = 0; i < width; i++) row[i] += added[i];
            free(added);
        }
    }
    if (stack.segments) {
        const float* added = stack.segments + size_t(segment) * width;
        for (int i = 0; i < width; i++) row[i] += added[i];
    }
    if (stack.embedding_norm.weight) normalise_row(row, width, stack.embedding_norm, s.embedding_norm_epsilon, row);
}

}  // namespace ISA
}  // namespace heedful
