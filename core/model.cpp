// From settings to a table of expected tensors, and from tensors to packed weights.
#include "decoder.h"

#include <math.h>
#include <stdio.h>

#include <initializer_list>

namespace heedful {

// The most that a size in the settings may be: what is larger is damaged, and must not overflow anything.
static const int64_t LARGEST_SIZE = 1 << 24;

static Expected& expect(heedful_model& model, const char* name, int64_t rows, int64_t columns) {
    Expected& each = model.expected.add({});
    snprintf(each.name, sizeof each.name, "%s", name);
    each.shape[0] = rows;
    each.shape[1] = columns;
    each.axes = columns ? 2 : 1;
    return each;
}

static void expect_plain(heedful_model& model, const char* name, float** to, int64_t rows, int64_t columns = 0) {
    expect(model, name, rows, columns).plain = to;
}

static void expect_linear(heedful_model& model, const char* name, Linear& linear, int64_t inputs, int64_t outputs,
                          bool bias) {
    linear.inputs = static_cast<int>(inputs);
    linear.outputs = static_cast<int>(outputs);
    char full[128];
    snprintf(full, sizeof full, "%s.weight", name);
    expect(model, full, outputs, inputs).linear = &linear;
    if (!bias) return;
    snprintf(full, sizeof full, "%s.bias", name);
    expect(model, full, outputs, 0).bias_of = &linear.bias;
}

static void expect_norm(heedful_model& model, const char* name, Norm& norm, bool rms) {
    char full[128];
    snprintf(full, sizeof full, "%s.weight", name);
    expect_plain(model, full, &norm.weight, model.settings.width);
    if (rms) return;
    snprintf(full, sizeof full, "%s.bias", name);
    expect_plain(model, full, &norm.bias, model.settings.width);
}

static void expect_block(heedful_model& model, const char* stack_name, Stack& stack, int layer) {
    const heedful_stack& s = stack.settings;
    Block& block = stack.blocks[layer];
    const int64_t width = model.settings.width, rms = s.rms_norm;
    char name[128];
    auto full = [&](const char* part) {
        snprintf(name, sizeof name, "%s.%d.%s", stack_name, layer, part);
        return name;
    };
    expect_linear(model, full("attention.query_key_value_projection"), block.attention.query_key_value, width,
                  stack.query_row() + stack.key_row() + stack.value_row(), s.attention_bias);
    expect_linear(model, full("attention.output_projection"), block.attention.output, stack.context_row(), width,
                  s.attention_bias);
    if (s.additive)
        expect_plain(model, full("attention.scoring_vector"), &block.attention.scoring_vector, s.heads, s.key_width);
    expect_norm(model, full("attention_residual.norm"), block.attention_norm, rms);
    if (stack.has_cross) {
        expect_linear(model, full("cross_attention.query_projection"), block.cross.query, width, stack.query_row(),
                      s.attention_bias);
        expect_linear(model, full("cross_attention.key_value_projection"), block.cross.key_value, width,
                      stack.key_row() + stack.value_row(), s.attention_bias);
        expect_linear(model, full("cross_attention.output_projection"), block.cross.output, stack.context_row(), width,
                      s.attention_bias);
        if (s.additive)
            expect_plain(model, full("cross_attention.scoring_vector"), &block.cross.scoring_vector, s.heads,
                         s.key_width);
        expect_norm(model, full("cross_residual.norm"), block.cross_norm, rms);
    }
    expect_linear(model, full("feed_forward.inner_projection"), block.inner, width, stack.projected_width(),
                  s.feed_forward_bias);
    expect_linear(model, full("feed_forward.output_projection"), block.outer, s.inner_width, width,
                  s.feed_forward_bias);
    expect_norm(model, full("feed_forward_residual.norm"), block.feed_forward_norm, rms);
}

static void expect_positions(heedful_model& model, const char* stack_name, Stack& stack) {
    const heedful_stack& s = stack.settings;
    char name[128];
    auto full = [&](const char* part) {
        snprintf(name, sizeof name, "%s.positions.%s", stack_name, part);
        return name;
    };
    switch (s.positions) {
        case HEEDFUL_LEARNED: return expect_plain(model, full("table"), &stack.table, s.position_rows, model.settings.width);
        case HEEDFUL_ROTARY:
            expect_plain(model, full("cosines"), &stack.cosines, s.position_rows, s.key_width / 2);
            return expect_plain(model, full("sines"), &stack.sines, s.position_rows, s.key_width / 2);
        case HEEDFUL_ALIBI: return expect_plain(model, full("slopes"), &stack.slopes, s.heads);
        case HEEDFUL_RELATIVE_BUCKETS:
            stack.farthest = s.position_rows / 2;
            return expect_plain(model, full("biases"), &stack.distance_bias, s.heads, s.position_rows);
    }
}

static void check_size(const char* name, int64_t value, int64_t least, int64_t most = LARGEST_SIZE) {
    if (value < least || value > most)
        fail("%s is %lld, but must be from %lld to %lld", name, (long long)value, (long long)least, (long long)most);
}

static void check_stack(const heedful_stack& s) {
    check_size("the number of heads", s.heads, 1, 1 << 12);
    check_size("the number of key/value heads", s.key_value_heads, 1, s.heads);
    if (s.heads % s.key_value_heads) fail("%d heads cannot share %d key/value heads", s.heads, s.key_value_heads);
    check_size("the key width", s.key_width, 1, 1 << 14);
    check_size("the value width", s.value_width, 1, 1 << 14);
    check_size("heads times widths", int64_t(s.heads) * (s.key_width + s.value_width), 1, 1 << 20);
    check_size("the inner width", s.inner_width, 1, 1 << 20);
    check_size("the activation", s.activation, HEEDFUL_RELU, HEEDFUL_SWIGLU);
    check_size("the position scheme", s.positions, HEEDFUL_NO_POSITIONS, HEEDFUL_RELATIVE_BUCKETS);
    check_size("the positions", s.position_rows, s.positions >= HEEDFUL_LEARNED && s.positions != HEEDFUL_ALIBI, 1 << 24);
    if (s.positions == HEEDFUL_ROTARY && s.key_width % 2) fail("rotary positions need an even key width, not %d", s.key_width);
    if (s.positions == HEEDFUL_RELATIVE_BUCKETS && s.position_rows % 2 == 0) fail("biases by distance have no middle");
    check_size("the segments", s.segments, 0, 1 << 10);
    check_size("the window", s.window, 0);
    if (!(s.norm_epsilon >= 0) || !(s.embedding_norm_epsilon >= 0)) fail("a norm's epsilon is below 0");
    if (!isfinite(s.score_scale) || !isfinite(s.embedding_scale)) fail("a scale is not a number");
}

// PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i + 1) = cos of the same (paper, 3.5), or all sines first.
void sinusoid_row(int64_t position, int width, bool halves, float* row) {
    int pairs = (width + 1) / 2;
    for (int i = 0; i < pairs; i++) {
        double angle = static_cast<double>(position) * exp(2 * i * (-log(10000.0) / width));
        row[halves ? i : 2 * i] = static_cast<float>(sin(angle));
        int place = halves ? pairs + i : 2 * i + 1;
        if (place < width) row[place] = static_cast<float>(cos(angle));
    }
}

static void start_stack(heedful_model& model, const char* name, Stack& stack, const heedful_stack& settings) {
    stack.settings = settings;
    if (!settings.layers) return;
    check_size("the number of layers", settings.layers, 0, 1 << 12);
    check_stack(settings);
    const int width = model.settings.width;
    char full[128];
    if (stack.owns_embedding) {
        snprintf(full, sizeof full, "%s.embedding", name);
        expect_plain(model, full, &stack.embedding, model.settings.vocabulary, width);
    }
    if (settings.segments) {
        snprintf(full, sizeof full, "%s.segments", name);
        expect_plain(model, full, &stack.segments, settings.segments, width);
    }
    if (settings.embedding_norm) {
        snprintf(full, sizeof full, "%s.embedding_norm", name);
        expect_norm(model, full, stack.embedding_norm, false);
    }
    expect_positions(model, name, stack);
    stack.blocks = new_zeros<Block>(settings.layers);
    for (int layer = 0; layer < settings.layers; layer++) expect_block(model, name, stack, layer);
    if (settings.pre_norm) {
        snprintf(full, sizeof full, "%s.norm", name);
        expect_norm(model, full, stack.final_norm, settings.rms_norm);
    }
}

// Sines and cosines for positions up to the usual length; those beyond are computed when they come.
static void make_sinusoids(heedful_model& model, Stack& stack) {
    const int scheme = stack.settings.positions, width = model.settings.width;
    if (!stack.settings.layers || (scheme != HEEDFUL_SINUSOIDAL && scheme != HEEDFUL_SINUSOID_HALVES)) return;
    if (stack.table) return;
    stack.settings.position_rows = model.settings.max_length + 1;
    stack.table = new_zeros<float>(size_t(stack.settings.position_rows) * width);
    for (int row = 0; row < stack.settings.position_rows; row++)
        sinusoid_row(row, width, scheme == HEEDFUL_SINUSOID_HALVES, stack.table + size_t(row) * width);
}

void start_model(heedful_model& model, const heedful_settings& settings) {
    model.settings = settings;
    model.set = &instruction_set();
    const heedful_settings& s = model.settings;
    check_size("the vocabulary", s.vocabulary, 1);
    check_size("the width", s.width, 1, 1 << 16);
    check_size("max_length", s.max_length, 1);
    check_size("max_length times the width", int64_t(s.max_length) * s.width, 1, int64_t(1) << 31);
    check_size("the outputs", s.outputs, 0);
    check_size("the convolution", s.convolution, 0, 1 << 8);
    if (s.convolution && s.convolution % 2 == 0) fail("a convolution of %d has no middle", s.convolution);
    for (int32_t id : {s.pad, s.start, s.end}) check_size("a special token", id, 0, s.vocabulary - 1);
    check_size("the mask token", s.mask, -1, s.vocabulary - 1);
    if (!s.encoder.layers && !s.decoder.layers) fail("the model has no layers");
    model.encoder.owns_embedding = true;
    model.decoder.has_cross = s.encoder.layers && s.decoder.layers;
    model.decoder.owns_embedding = !(model.decoder.has_cross && s.shared_embeddings);
    start_stack(model, "encoder", model.encoder, s.encoder);
    start_stack(model, "decoder", model.decoder, s.decoder);
    const int outputs = s.decoder.layers ? s.vocabulary : s.outputs;
    if (outputs) expect_linear(model, "output", model.output, s.width, outputs, s.output_bias);
    if (s.pooler) expect_linear(model, "pooler", model.pooler, s.width, s.width, true);
    if (s.transform) {
        expect_linear(model, "transform.dense", model.transform, s.width, s.width, true);
        expect_norm(model, "transform.norm", model.transform_norm, false);
    }
    if (s.convolution) expect_linear(model, "convolution", model.convolution, int64_t(s.convolution) * s.width, s.width, true);
}

static float half_as_float(uint16_t bits) {
    const uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = bits >> 10 & 31, mantissa = bits & 1023;
    float amount;
    if (exponent == 31)
        amount = mantissa ? NAN : INFINITY;
    else if (exponent)
        amount = ldexpf(static_cast<float>(1024 + mantissa), static_cast<int>(exponent) - 25);
    else
        amount = ldexpf(static_cast<float>(mantissa), -24);
    return sign ? -amount : amount;
}

static float number_at(const void* data, int type, size_t place) {
    const char* bytes = static_cast<const char*>(data);
    uint32_t word = 0;
    float number;
    double wide;
    uint16_t half;
    switch (type) {
        case HEEDFUL_F32: memcpy(&number, bytes + 4 * place, 4); return number;
        case HEEDFUL_F64: memcpy(&wide, bytes + 8 * place, 8); return static_cast<float>(wide);
        case HEEDFUL_F16: memcpy(&half, bytes + 2 * place, 2); return half_as_float(half);
        default:
            memcpy(&half, bytes + 2 * place, 2);
            word = uint32_t(half) << 16;
            memcpy(&number, &word, 4);
            return number;
    }
}

// One row of a tensor as floats, all of them finite; gives the largest amount among them.
static float read_row(const InstructionSet& set, const char* name, const void* data, int type, size_t first, int count,
                      float* row) {
    if (type == HEEDFUL_F32)
        memcpy(row, static_cast<const char*>(data) + 4 * first, size_t(count) * 4);
    else
        for (int i = 0; i < count; i++) row[i] = number_at(data, type, first + i);
    const uint32_t bits = set.largest_amount(row, count);
    if (bits >= 0x7f800000u)
        fail("%.80s holds a number that is infinite or NaN: the weights are damaged, or training diverged", name);
    float largest;
    memcpy(&largest, &bits, sizeof largest);
    return largest;
}

static void pack_fp32_row(Linear& linear, int output, const float* row) {
    float* panel = linear.numbers + size_t(output / PANEL) * PANEL * linear.inputs;
    for (int k = 0; k < linear.inputs; k++) panel[size_t(k) * PANEL + output % PANEL] = row[k];
}

// Memory for a tensor; if it came before and was refused, that of the first time.
template <typename T> static void make_zeros(T*& memory, size_t count) {
    if (!memory) memory = new_zeros<T>(count);
}

static void put_linear(const heedful_model& model, Linear& linear, const char* name, int type, const void* data) {
    const bool int8 = model.settings.int8;
    const size_t padded = size_t(linear.panels()) * PANEL;
    if (int8) {
        if (linear.inputs > 1 << 16) fail("%s has %d inputs, too many for int8", name, linear.inputs);
        make_zeros(linear.bytes, padded * linear.byte_stride());
        make_zeros(linear.scales, padded);
        make_zeros(linear.weight_sums, padded);
    } else {
        make_zeros(linear.numbers, padded * linear.inputs);
    }
    float* row = new_zeros<float>(linear.inputs);
    int failed = guarded([&] {
        for (int output = 0; output < linear.outputs; output++) {
            const size_t first = size_t(output) * linear.inputs;
            const float largest = read_row(*model.set, name, data, type, first, linear.inputs, row);
            if (int8)
                model.set->pack_int8_row(linear, output, row, largest);
            else
                pack_fp32_row(linear, output, row);
        }
    });
    free_zeros(row);
    if (failed) fail_again();
}

void put_tensor(heedful_model& model, const char* name, int type, const int64_t* shape, int axes, const void* data,
                uint64_t bytes) {
    static const int SIZES[] = {4, 2, 2, 8};
    if (type < HEEDFUL_F32 || type > HEEDFUL_F64) fail("%.80s has an unknown type", name);
    Expected* found = nullptr;
    for (Expected& each : model.expected)
        if (!strcmp(each.name, name)) found = &each;
    if (!found) fail("%.80s is not part of the model", name);
    if (found->found) fail("%.80s comes twice", name);
    bool fits = axes == found->axes;
    uint64_t count = 1;
    for (int axis = 0; fits && axis < axes; axis++) {
        fits = shape[axis] == found->shape[axis];
        count *= static_cast<uint64_t>(found->shape[axis]);
    }
    if (!fits) fail("%.80s has another shape than the settings say", name);
    if (bytes != count * static_cast<uint64_t>(SIZES[type])) fail("%.80s has %llu bytes, not those of its shape", name, (unsigned long long)bytes);
    if (found->linear) {
        put_linear(model, *found->linear, name, type, data);
    } else {
        const int64_t row = found->shape[found->axes - 1];
        float** to = found->plain ? found->plain : found->bias_of;
        make_zeros(*to, rounded_up(count, PANEL));
        for (uint64_t first = 0; first < count; first += row)
            read_row(*model.set, name, data, type, first, static_cast<int>(row), *to + first);
    }
    found->found = true;
}

void finish_model(heedful_model& model) {
    if (model.ready) return;
    for (const Expected& each : model.expected)
        if (!each.found) fail("%.90s is missing", each.name);
    make_sinusoids(model, model.encoder);
    make_sinusoids(model, model.decoder);
    if (!model.decoder.owns_embedding) model.decoder.embedding = model.encoder.embedding;
    Shortlist& shortlist = model.shortlist;
    if (shortlist.used())
        shortlist.output.gather(model.output, shortlist.frequent.data, static_cast<int>(shortlist.frequent.size));
    model.ready = true;
}

static void free_linear(Linear& linear) {
    for (void* each : {(void*)linear.bytes, (void*)linear.numbers, (void*)linear.scales, (void*)linear.weight_sums, (void*)linear.bias})
        free_zeros(each);
}

static void free_norm(Norm& norm) {
    free_zeros(norm.weight);
    free_zeros(norm.bias);
}

static void free_stack(Stack& stack) {
    for (int layer = 0; stack.blocks && layer < stack.settings.layers; layer++) {
        Block& block = stack.blocks[layer];
        for (Attention* each : {&block.attention, &block.cross}) {
            for (Linear* linear : {&each->query_key_value, &each->query, &each->key_value, &each->output}) free_linear(*linear);
            free_zeros(each->scoring_vector);
        }
        free_linear(block.inner);
        free_linear(block.outer);
        for (Norm* norm : {&block.attention_norm, &block.cross_norm, &block.feed_forward_norm}) free_norm(*norm);
    }
    free_zeros(stack.blocks);
    if (stack.owns_embedding) free_zeros(stack.embedding);
    free_norm(stack.embedding_norm);
    free_norm(stack.final_norm);
    for (float* each : {stack.segments, stack.table, stack.cosines, stack.sines, stack.slopes, stack.distance_bias})
        free_zeros(each);
}

void free_model(heedful_model& model) {
    free_stack(model.encoder);
    free_stack(model.decoder);
    for (Linear* linear : {&model.output, &model.pooler, &model.transform, &model.convolution}) free_linear(*linear);
    free_norm(model.transform_norm);
    model.shortlist.free();
    model.expected.free();
}

}  // namespace heedful
