#include "sentence.h"

#include <initializer_list>

namespace heedful {

template <typename T> static void copy(Array<T>& to, const T* from, size_t count) {
    to.resize(count);
    if (count) memcpy(to.data, from, count * sizeof(T));
}

void Sentence::open(const heedful_request& request, const heedful_options& options) {
    index = request.index;
    seed = request.seed;
    number = request.number;
    copy(source, request.source, request.source_length);
    copy(prefix, request.prefix, request.prefix_length);
    copy(own_tokens, request.shortlist, request.shortlist_length);
    first = request.first;
    longest = request.longest;
    shortest = options.min_length;
    beam = options.beam;
    length = num_ended = position = used = source_length = 0;
    tokens.resize(beam);
    totals.resize(beam);
    totals_before.resize(beam);
    children.resize(beam);
    ended.resize(beam);
    order.resize(beam);
    history.size = 0;
    for (int row = 0; row < beam; row++) {
        tokens[row] = first;
        // In a search all rows begin alike, so the first stands for all.
        totals[row] = totals_before[row] = options.sampling || !row ? 0.0 : -INFINITY;
    }
}

// Moves rows of memory apart, the last row first.
template <typename T> static void spread(Array<T>& array, size_t rows, size_t before, size_t after) {
    array.resize(rows * after);
    for (size_t row = rows; row-- > 1;) memmove(array.data + row * after, array.data + row * before, before * sizeof(T));
    for (size_t row = 0; row < rows; row++) memset(array.data + row * after + before, 0, (after - before) * sizeof(T));
}

void Sentence::make_room(int nodes, int layers, size_t key_row, size_t value_row) {
    if (nodes <= places) return;
    if (nodes > 1 << 29) fail("out of memory");
    const int more = static_cast<int>(rounded_up(nodes > 2 * places ? nodes : 2 * places, 16));
    spread(keys, layers, places * key_row, more * key_row);
    spread(values, layers, places * value_row, more * value_row);
    place_positions.resize(more);
    taken.resize(more);
    places = more;
}

void Sentence::make_path_room(int positions) {
    if (positions > path_room) {
        const int more = positions > 2 * path_room ? positions : 2 * path_room;
        spread(paths, beam, path_room, more);
        path_room = more;
    }
    paths.resize(size_t(beam) * path_room);
    other_paths.resize(size_t(beam) * path_room);
}

void Sentence::gather_output(const Linear& output) {
    own_output.gather(output, own_tokens.data, static_cast<int>(own_tokens.size));
}

template <typename T> static void exchange(T& one, T& other) {
    T kept = one;
    one = other;
    other = kept;
}

void Sentence::take_caches(Sentence& other) {
    exchange(keys, other.keys);
    exchange(values, other.values);
    exchange(cross_keys, other.cross_keys);
    exchange(cross_values, other.cross_values);
    exchange(paths, other.paths);
    exchange(other_paths, other.other_paths);
    exchange(place_positions, other.place_positions);
    exchange(taken, other.taken);
    exchange(own_output, other.own_output);
    exchange(places, other.places);
    exchange(path_room, other.path_room);
}

void Sentence::free() {
    source.free();
    prefix.free();
    tokens.free();
    totals.free();
    totals_before.free();
    history.free();
    ended.free();
    order.free();
    children.free();
    for (Array<float>* each : {&keys, &values, &cross_keys, &cross_values}) each->free();
    for (Array<int32_t>* each : {&paths, &other_paths, &place_positions}) each->free();
    taken.free();
    own_tokens.free();
    own_output.free();
}

}  // namespace heedful
