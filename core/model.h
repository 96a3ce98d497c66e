// A model's parts in memory, and the table by which its tensors find their places.
#pragma once

#include "interface.h"
#include "linear.h"
#include "memory.h"
#include "shortlist.h"
#include "weight_memory.h"

namespace heedful {

struct InstructionSet;

struct Norm {
    float* weight = nullptr;
    float* bias = nullptr;  // null for RMS norms
};

struct Attention {
    Linear query_key_value;  // of self-attention
    Linear query, key_value;  // of cross-attention
    Linear output;
    float* scoring_vector = nullptr;  // [head][key width]; null for dot products
};

struct Block {
    Attention attention, cross;
    Linear inner, outer;
    Norm attention_norm, cross_norm, feed_forward_norm;
};

// Embeddings, positions and blocks: an encoder or a decoder.
struct Stack {
    heedful_stack settings = {};
    bool has_cross = false;
    float* embedding = nullptr;
    bool owns_embedding = true;
    float* segments = nullptr;
    Norm embedding_norm, final_norm;
    float* table = nullptr;             // added to embeddings
    float *cosines = nullptr, *sines = nullptr;
    float* slopes = nullptr;            // ALiBi's, per head
    float* distance_bias = nullptr;     // [head][2 farthest + 1]
    int farthest = 0;
    Block* blocks = nullptr;

    int shared() const { return settings.heads / settings.key_value_heads; }
    int key_row() const { return settings.key_value_heads * settings.key_width; }
    int value_row() const { return settings.key_value_heads * settings.value_width; }
    int query_row() const { return settings.heads * settings.key_width; }
    int context_row() const { return settings.heads * settings.value_width; }
    int projected_width() const { return settings.inner_width * (settings.activation == HEEDFUL_SWIGLU ? 2 : 1); }
    bool has_bias() const { return slopes || distance_bias; }
};

// An expected tensor, and where it goes: into a linear layer, or unpacked into memory.
struct Expected {
    char name[96];
    int64_t shape[3];
    int axes;
    Linear* linear;
    float** plain;
    float** bias_of;  // a bias is padded to whole panels
    int64_t rows, columns, rows_found;
};

// A row of the paper's positions, for any position.
void sinusoid_row(int64_t position, int width, bool halves, float* row);

void start_model(heedful_model& model, const heedful_settings& settings);
void put_rows(heedful_model& model, const char* name, int type, const int64_t* shape, int axes, int64_t first,
              const void* data, uint64_t bytes);
// The paper's positions up to the usual length, for a stack that has them.
void make_sinusoids(heedful_model& model, Stack& stack);
void finish_model(heedful_model& model);
void free_model(heedful_model& model);

}  // namespace heedful

struct heedful_model {
    heedful_settings settings;
    heedful::Stack encoder, decoder;
    heedful::Linear output, pooler, transform, convolution;
    heedful::Norm transform_norm;
    heedful::Shortlist shortlist;
    heedful::Array<heedful::Expected> expected;
    heedful::WeightMemory memory;  // for everything that tensors become, and for computed positions
    bool ready;
    // The code that computes with the model: the weights are packed for its products.
    const heedful::InstructionSet* set;
};
