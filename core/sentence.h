// One sentence being decoded: its hypotheses, and the keys and values that they attend to.
//
// The tokens of its hypotheses form a tree, and each node has a place in the cache. A row's path says which places its
// hypothesis goes through: when hypotheses branch, paths are copied, and no key or value moves. The places of nodes
// that no path goes through are reused, the lowest first, so that a row attends over little more than its length.
#pragma once

#include <math.h>

#include "interface.h"
#include "memory.h"
#include "shortlist.h"

namespace heedful {

// A token that a row received, the row that it continued, and its log-probability.
struct Step {
    int32_t token, parent;
    float score;
};

// A hypothesis that has ended: its score, its number of tokens, the row that it was in, and the end's log-probability.
struct Ended {
    double score;
    int32_t length, row;
    float end;
};

// A continuation that may take a place: a row, a token, its log-probability, and the sum over the whole hypothesis.
struct Child {
    int32_t row, token;
    float score;
    double total;
};

struct Sentence {
    int64_t index;
    uint64_t seed, number;
    Array<int32_t> source, prefix;
    int first, longest, shortest;  // the token that the first step reads; lengths without the end
    bool continues;                // whether the source is text to be continued, not translated

    int beam, length, num_ended;
    Array<int32_t> tokens;  // the last token of each row
    Array<double> totals, totals_before;  // -inf: the row is empty
    Array<Step> history;    // [step][row]
    Array<Ended> ended;
    Array<int> order;       // of the ended hypotheses, best first
    Array<Child> children;

    int position, places;  // of the coming step; how many nodes there is room for
    int used;              // places beyond these are on no path
    Array<float> keys, values;  // [layer][...]
    Array<int32_t> paths, other_paths, place_positions;  // [row][position]; [place]
    Array<uint8_t> taken;
    int path_room;

    int source_length;
    Array<float> cross_keys, cross_values;  // [layer][...]

    Array<int32_t> own_tokens;  // from a shortlist
    GatheredLinear own_output;  // the output layer for these tokens

    void open(const heedful_request& request, const heedful_options& options);
    // Makes room in the cache for so many nodes.
    void make_room(int nodes, int layers, size_t key_row, size_t value_row);
    void make_path_room(int positions);
    // Packs the output layer for its own tokens.
    void gather_output(const Linear& output);
    // Takes over the caches of another sentence, which is done.
    void take_caches(Sentence& other);
    void free();
    bool running(int row) const { return totals[row] > -INFINITY; }
};

}  // namespace heedful
