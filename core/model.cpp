// From settings to a table of expected tensors.
#include "decoder.h"

#include <math.h>
#include <stdio.h>

#include <initializer_list>

namespace heedful {

// The most that a size in the settings may be: larger ones must be damaged, and must not cause overflows.
static const int64_t LARGEST_SIZE = 1 << 24;

static Expected& expect(heedful_model& model, const char* name, int64_t rows, int64_t columns) {
    Expected& each = model.expected.add({});
    snprintf(each.name, sizeof each.name, "%s", name);
    each.shape[0] = rows;
    each.shape[1] = columns;
    each.axes = columns ? 2 : 1;
    each.rows = columns ? rows : 1;
    each.columns = columns ? columns : rows;
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

void finish_model(heedful_model& model) {
    if (model.ready) return;
    for (const Expected& each : model.expected)
        if (each.rows_found < each.rows) fail("%.90s is missing", each.name);
    for (Stack* stack : {&model.encoder, &model.decoder}) make_sinusoids(model, *stack);
    if (!model.decoder.owns_embedding) model.decoder.embedding = model.encoder.embedding;
    Shortlist& shortlist = model.shortlist;
    if (shortlist.used())
        shortlist.output.gather(model.output, shortlist.frequent.data, static_cast<int>(shortlist.frequent.size));
    model.ready = true;
}

void free_model(heedful_model& model) {
    free_zeros(model.encoder.blocks);
    free_zeros(model.decoder.blocks);
    model.memory.free();
    model.shortlist.free();
    model.expected.free();
}

}  // namespace heedful
