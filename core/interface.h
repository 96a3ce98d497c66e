// Everything that the engine offers, as plain C: numbers, pointers and opaque handles.
//
// Python describes a model by `heedful_settings`, hands over its tensors, and then decodes or encodes with it.
// Functions that can fail return 0 for success, and otherwise leave a message for `heedful_error`.
#pragma once

#include <stdint.h>

#if defined(_WIN32)
#define HEEDFUL_API extern "C" __declspec(dllexport)
#else
#define HEEDFUL_API extern "C" __attribute__((visibility("default")))
#endif

enum { HEEDFUL_ABI_VERSION = 4 };

enum heedful_activation { HEEDFUL_RELU, HEEDFUL_GELU, HEEDFUL_GELU_TANH, HEEDFUL_SILU, HEEDFUL_SWIGLU };
enum heedful_positions {
    HEEDFUL_NO_POSITIONS,
    HEEDFUL_SINUSOIDAL,
    HEEDFUL_SINUSOID_HALVES,
    HEEDFUL_LEARNED,
    HEEDFUL_ROTARY,
    HEEDFUL_ALIBI,
    HEEDFUL_RELATIVE_BUCKETS
};
enum heedful_type { HEEDFUL_F32, HEEDFUL_F16, HEEDFUL_BF16, HEEDFUL_F64 };

// The front (embeddings and positions) and the blocks of a stack; without layers there is no such stack.
struct heedful_stack {
    int32_t layers, heads, key_value_heads, key_width, value_width;
    int32_t inner_width, activation, pre_norm, rms_norm, window;
    int32_t attention_bias, feed_forward_bias, additive;
    int32_t positions, position_rows, segments, embedding_norm;
    float norm_epsilon, embedding_norm_epsilon, embedding_scale, score_scale;
};

struct heedful_settings {
    int32_t int8, vocabulary, width, max_length;
    int32_t shared_embeddings, output_bias, outputs;
    int32_t pooler, transform, convolution;
    int32_t pad, start, end, mask;
    heedful_stack encoder, decoder;
};

// `beam` is the number of rows per sentence, which are samples with `sampling`; `sentences` is how many a thread
// decodes side by side. A `top_k` of 0, a `top_p` of 1 and a repetition penalty of 1 are off.
struct heedful_options {
    double length_penalty, temperature, top_p, repetition_penalty;
    int32_t beam, nbest, min_length, sampling, top_k, keep_logits, no_repeat_ngram, threads, sentences;
};

// `shortlist` has the tokens that the target may have besides the frequent ones, for a model with a shortlist.
struct heedful_request {
    int64_t index;
    const int32_t* source;
    const int32_t* prefix;
    const int32_t* shortlist;
    int32_t source_length, prefix_length, shortlist_length, first, longest;
    uint64_t seed, number;
};

struct heedful_model;
struct heedful_decoder;

HEEDFUL_API int heedful_abi_version(void);
// The instruction set that the kernels use on this processor, such as "avx2".
HEEDFUL_API const char* heedful_instruction_set(void);
// For tests: use another one for models made from now on; 0 if this processor has it.
HEEDFUL_API int heedful_use_instruction_set(const char* name);
// What went wrong in the last call of this thread that failed.
HEEDFUL_API const char* heedful_error(void);

// Continues a CRC-32 over more bytes; 1 if this processor has no instruction for it.
HEEDFUL_API int heedful_checksum(const void* data, uint64_t count, uint32_t* sum);

// The CRC-32 of two parts together, from that of each; the second has `count` bytes.
HEEDFUL_API uint32_t heedful_checksum_joined(uint32_t first, uint32_t second, uint64_t count);

HEEDFUL_API heedful_model* heedful_model_new(const heedful_settings* settings);
// Some rows of a tensor of that shape, from row `first` on; rows must come in order. A tensor with one axis is a row.
HEEDFUL_API int heedful_model_put(heedful_model* model, const char* name, int type, const int64_t* shape, int axes,
                                  int64_t first, const void* data, uint64_t bytes);
// Limits the output layer of a translation model, in decoding, to these tokens and those of each request; the first is
// the end token. To be called before the model is finished.
HEEDFUL_API int heedful_model_shortlist(heedful_model* model, const int32_t* frequent, int count);
HEEDFUL_API int heedful_model_finish(heedful_model* model);
HEEDFUL_API void heedful_model_free(heedful_model* model);

HEEDFUL_API heedful_decoder* heedful_decoder_new(heedful_model* model, const heedful_options* options);
// Allowed also after the model is freed: garbage collectors may free them in any order.
HEEDFUL_API void heedful_decoder_free(heedful_decoder* decoder);
HEEDFUL_API int heedful_decoder_add(heedful_decoder* decoder, const heedful_request* requests, int count);
HEEDFUL_API int heedful_decoder_cancel(heedful_decoder* decoder, int64_t index);
// Decode one token of every sentence, or continue for some milliseconds or until all are done. A decoder that has
// failed takes no more requests or steps; what is done can still be taken.
HEEDFUL_API int heedful_decoder_step(heedful_decoder* decoder);
HEEDFUL_API int heedful_decoder_run(heedful_decoder* decoder, int milliseconds);
HEEDFUL_API int heedful_decoder_waiting(heedful_decoder* decoder);
HEEDFUL_API int heedful_decoder_running(heedful_decoder* decoder);
// The steps of all sentences so far.
HEEDFUL_API int64_t heedful_decoder_steps(heedful_decoder* decoder);
// The next sentence that is done: its index, how many hypotheses, and the numbers of tokens and of scores in all;
// 1 if there is one. `heedful_decoder_take` then copies it out.
HEEDFUL_API int heedful_decoder_done(heedful_decoder* decoder, int64_t* index, int32_t* sizes);
// For each hypothesis, `heads` has the number of tokens, the number of scores, and whether it is finished.
HEEDFUL_API void heedful_decoder_take(heedful_decoder* decoder, int32_t* heads, double* totals, int32_t* tokens,
                                      float* scores);
// The best hypothesis so far of a sentence under way, which may have ended: returns its length, and gives all its
// tokens if `most` is enough; -1 if there is no such sentence, or it has had no step. Also gives the last token of the
// best one that has not ended, and that token's score.
HEEDFUL_API int heedful_decoder_progress(heedful_decoder* decoder, int64_t index, int32_t* tokens, int most,
                                         int32_t* last, float* last_score);
// The likeliest tokens at the place of that last one (with `keep_logits`); returns how many were found.
HEEDFUL_API int heedful_decoder_likeliest(heedful_decoder* decoder, int64_t index, int count, int32_t* tokens,
                                          float* scores);

// Log-probabilities of given targets, the end after each, and, if `alignment` is not null, the mean attention of all
// layers and heads from each of these to each source token (rows of the source's length, one pair after another).
HEEDFUL_API int heedful_score(heedful_model* model, int threads, int pairs, const int32_t* sources,
                              const int32_t* source_lengths, const int32_t* targets, const int32_t* target_lengths,
                              float* scores, float* alignment);
// The encoder's output, or, with `head`, the answers of an encoder-only model's head, for texts one after another.
HEEDFUL_API int heedful_encode(heedful_model* model, int threads, int texts, const int32_t* ids, const int32_t* segments,
                               const int32_t* lengths, int pooling, int head, float* output);
