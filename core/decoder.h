// Sentences that one thread decodes side by side, what a step of them needs, and the decoder over all threads.
#pragma once

#include "model.h"
#include "sentence.h"
#include "threads.h"

namespace heedful {

// A column of a row's logits, which stands for a token, and its logit.
struct Candidate {
    float logit;
    int32_t column;
};

// A row of a step, and the softmax over its logits: the largest logit, and the logarithm of the sum of
// exp(logit - largest), so that a log-probability is (logit - largest) - logarithm.
struct StepRow {
    Sentence* sentence;
    int row;
    int wanted;  // a token whose logit is needed, or -1
    float wanted_logit, peak, log_sum;
    int num_candidates;

    float log_probability(float logit) const { return (logit - peak) - log_sum; }
};

struct Result {
    int64_t index;
    int hypotheses, num_tokens, num_scores;
    Array<int32_t> heads, tokens;  // per hypothesis: tokens, scores, whether it is finished
    Array<float> scores;
    Array<double> totals;
};

void free_result(Result* result);

// Scratch space of the layers, private to the code for one instruction set.
struct Workspace;

// What one thread decodes. It holds everything that it allocates, so nothing leaks when something fails.
struct Group {
    heedful_decoder* decoder;
    Workspace* workspace;
    Array<Sentence*> running;
    Array<StepRow> rows;
    Array<Candidate> candidates;  // [row][beam], the largest logit first
    Array<float> logits;          // [row][column], where options need all of them
    size_t logit_stride;          // from one row to the next
    int64_t steps;  // steps of sentences so far
    Array<int32_t> text;          // what penalties look at, and the tokens in it
    Array<uint8_t> seen;
    Array<Candidate> drawn_from;
    Result* result;  // being written for a sentence that is done
    int steps_gathered;
    char message[256];
    bool failed;
};

// The code for one instruction set.
struct InstructionSet {
    const char* name;
    // The bits of the largest absolute value in a row, which sort as the values do.
    uint32_t (*largest_amount)(const float* row, int width);
    void (*pack_int8_row)(Linear&, int output, const float* row, float largest);
    Workspace* (*new_workspace)();
    void (*free_workspace)(Workspace*);
    // Computes what decoding needs from new sentences: the keys and values of an encoder's output, or of a prompt.
    void (*prefill)(Group&, Pool*, Sentence** sentences, int count);
    // The rows of all sentences under way, with their candidates or all their logits.
    void (*step)(Group&, Pool*);
    void (*score)(heedful_model&, Pool*, int pairs, const int32_t* sources, const int32_t* source_lengths,
                  const int32_t* targets, const int32_t* target_lengths, float* scores, float* alignment);
    void (*encode)(heedful_model&, Pool*, int texts, const int32_t* ids, const int32_t* segments,
                   const int32_t* lengths, int pooling, int head, float* output);
};

// The instruction set for new models.
const InstructionSet& instruction_set();

// Search: gives every sentence its next tokens, from the candidates or the logits of a step.
void advance(Group& group);
// The number of columns of a sentence's logits, and the token that one of the columns stands for.
int num_columns(const heedful_model& model, const Sentence& sentence);
int32_t token_of(const heedful_model& model, const Sentence& sentence, int column);
// The columns of the largest logits of a row, largest first, among equals the first column first.
int likeliest_of(const float* logits, int columns, int count, Candidate* found);
// A column drawn from a row of logits by a uniform number, or -1 if all are ruled out; `from` is scratch memory.
int draw(const heedful_options& options, const float* logits, int columns, double uniform, Array<Candidate>& from);
void write_result(const heedful_options& options, Sentence& sentence, Result& result);
// ((5 + |Y|) / 6) ^ alpha of Wu et al. (2016); |Y| counts every scored token, the end too.
double length_penalty(const heedful_options& options, int length);
// The tokens of a hypothesis and their scores, from its last row back to its first.
void walk(const Sentence& sentence, int length, int row, int32_t* tokens, float* scores);
// The places of ended hypotheses, best first, among equals the earlier first.
const int* rank_ended(Sentence& sentence);
bool is_done(const heedful_options& options, Sentence& sentence);
// The row of the best hypothesis under way.
int best_row(const Sentence& sentence);
// The length of the hypothesis with the best score so far, whether ended or under way, and its tokens if `most` is
// enough.
int best_so_far(const heedful_options& options, const Sentence& sentence, int32_t* tokens, int most);

// Whether a search needs only the largest logits; otherwise it needs all.
inline bool chooses_by_candidates(const heedful_options& options) {
    return !options.sampling && !options.no_repeat_ngram && options.repetition_penalty == 1.0;
}

}  // namespace heedful

struct heedful_decoder {
    heedful_model* model;  // may be gone when the decoder is freed
    const heedful::InstructionSet* set;
    heedful_options options;
    heedful::Pool pool;
    heedful::Array<heedful::Group> groups;
    heedful::Mutex mutex;  // over all that follows
    heedful::Array<heedful::Sentence*> waiting;  // those from `next` on
    // Finished sentences: with caches, for others to take over, and without.
    heedful::Array<heedful::Sentence*> with_caches, unused;
    size_t next, taken;
    heedful::Array<heedful::Result*> done;  // those from `taken` on have not been taken yet
    int running;       // sentences in groups
    bool failed;       // if so, sentences may be in the middle of a step
    int64_t deadline;  // in milliseconds; 0 for one step
    heedful::Array<uint8_t> named;  // tokens of a request's shortlist, while it is checked
};
