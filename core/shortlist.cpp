#include "shortlist.h"

#include <initializer_list>

#include "model.h"

namespace heedful {

// Copies one output of an fp32 layer: each of its numbers is in a different vector, on both sides.
static void copy_numbers(const Linear& from, int output, Linear& to, int place) {
    const size_t panel = size_t(PANEL) * from.inputs;
    const float* source = from.numbers + output / PANEL * panel + output % PANEL;
    float* target = to.numbers + place / PANEL * panel + place % PANEL;
    for (size_t k = 0; k < size_t(from.inputs) * PANEL; k += PANEL) target[k] = source[k];
}

static void copy_bytes(const Linear& from, int output, Linear& to, int place) {
    const size_t panel = size_t(PANEL) * from.byte_stride();
    const int8_t* source = from.bytes + output / PANEL * panel + output % PANEL * GROUP;
    int8_t* target = to.bytes + place / PANEL * panel + place % PANEL * GROUP;
    for (size_t k = 0; k < panel; k += PANEL * GROUP) memcpy(target + k, source + k, GROUP);
    to.scales[place] = from.scales[output];
    to.weight_sums[place] = from.weight_sums[output];
}

void GatheredLinear::gather(const Linear& from, const int32_t* outputs, int count) {
    linear.inputs = from.inputs;
    linear.outputs = count;
    const size_t padded = size_t(linear.panels()) * PANEL;
    if (from.bytes) {
        bytes.reserve(padded * linear.byte_stride());
        scales.reserve(padded);
        weight_sums.reserve(padded);
    } else {
        numbers.reserve(padded * linear.inputs);
    }
    if (from.bias) bias.reserve(padded);
    linear.bytes = bytes.data;
    linear.numbers = numbers.data;
    linear.scales = scales.data;
    linear.weight_sums = weight_sums.data;
    linear.bias = bias.data;
    for (int place = 0; place < count; place++) {
        (from.bytes ? copy_bytes : copy_numbers)(from, outputs[place], linear, place);
        if (from.bias) linear.bias[place] = from.bias[outputs[place]];
    }
}

void GatheredLinear::free() {
    bytes.free();
    for (Array<float>* each : {&numbers, &scales, &bias}) each->free();
    weight_sums.free();
}

void Shortlist::free() {
    frequent.free();
    barred.free();
    output.free();
}

// Marks tokens; each may be marked only once.
static void mark(Array<uint8_t>& marked, const int32_t* tokens, int count) {
    const int vocabulary = static_cast<int>(marked.size);
    for (int i = 0; i < count; i++) {
        if (tokens[i] < 0 || tokens[i] >= vocabulary)
            fail("token %d of a shortlist is not in the vocabulary, which has %d", tokens[i], vocabulary);
        if (marked[tokens[i]]) fail("token %d of a shortlist is special, or comes twice", tokens[i]);
        marked[tokens[i]] = 1;
    }
}

void set_shortlist(heedful_model& model, const int32_t* frequent, int count) {
    const heedful_settings& s = model.settings;
    Shortlist& shortlist = model.shortlist;
    if (model.ready) fail("a shortlist must come before the model is finished");
    if (shortlist.used()) fail("a shortlist comes twice");
    if (!model.decoder.has_cross) fail("only models that translate have a shortlist");
    if (count < 1 || count > s.vocabulary)
        fail("a shortlist has %d frequent tokens, but must have from 1 to %d", count, s.vocabulary);
    if (frequent[0] != s.end) fail("a shortlist must begin with the end token");
    shortlist.barred.size = 0;
    shortlist.barred.resize(s.vocabulary);
    for (int32_t id : {s.pad, s.start, s.mask})
        if (id >= 0 && id != s.end) shortlist.barred[id] = 1;
    mark(shortlist.barred, frequent, count);
    shortlist.frequent.resize(count);
    memcpy(shortlist.frequent.data, frequent, count * sizeof(int32_t));
}

void check_own_tokens(const heedful_model& model, const heedful_request& request, Array<uint8_t>& named) {
    const Shortlist& shortlist = model.shortlist;
    const int count = request.shortlist_length;
    if (count < 0 || count > model.settings.vocabulary) fail("a request has a shortlist of %d tokens", count);
    if (!shortlist.used()) {
        if (count) fail("a request has a shortlist, but its model has none");
        return;
    }
    if (request.prefix_length) fail("a forced prefix may need any token, and takes no shortlist");
    if (!count) return;
    named.resize(shortlist.barred.size);
    memcpy(named.data, shortlist.barred.data, named.size);
    mark(named, request.shortlist, count);
}

}  // namespace heedful
