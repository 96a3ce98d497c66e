// The C interface: checks the input, and turns failures into return codes.
#include "interface.h"

#include <string.h>

#include <initializer_list>

#include "decoder.h"
#include "processor.h"

using namespace heedful;

namespace heedful {

extern const InstructionSet portable_set;
#if defined(HEEDFUL_X86)
extern const InstructionSet avx2_set, avx512_set;
extern const InstructionSet* const avx_vnni_set;
#endif

void add_requests(heedful_decoder& decoder, const heedful_request* requests, int count);
void run(heedful_decoder& decoder, int milliseconds);
void start_decoder(heedful_decoder& decoder, heedful_model& model, const heedful_options& options);
void free_decoder(heedful_decoder& decoder);
bool find_running(heedful_decoder& decoder, int64_t index, Group** group, size_t* place);
void cancel(heedful_decoder& decoder, int64_t index);

static const InstructionSet* named(const char* name) {
    if (!strcmp(name, "portable")) return &portable_set;
#if defined(HEEDFUL_X86)
    if (!strcmp(name, "avx2") && processor().avx2) return &avx2_set;
    if (!strcmp(name, "avx-vnni") && processor().avx_vnni) return avx_vnni_set;
    if (!strcmp(name, "avx512-vnni") && processor().avx512_vnni) return &avx512_set;
#endif
    return nullptr;
}

// Any thread may be the first to ask.
static const InstructionSet* chosen = nullptr;

const InstructionSet& instruction_set() {
    const InstructionSet* found = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
    for (const char* name : {"avx512-vnni", "avx-vnni", "avx2", "portable"})
        if (!found) __atomic_store_n(&chosen, found = named(name), __ATOMIC_RELAXED);
    return *found;
}

static void check_ids(const int32_t* ids, int64_t count, int32_t size, const char* what) {
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= size) fail("%s %d is not one of the %d that there are", what, ids[i], size);
}

// The sum of lengths, each of which must be within what the positions allow.
static int64_t check_lengths(const Stack& stack, const int32_t* lengths, int count, int least, int added) {
    const int scheme = stack.settings.positions;
    const bool bounded = scheme == HEEDFUL_LEARNED || scheme == HEEDFUL_ROTARY;
    const int64_t most = bounded ? stack.settings.position_rows : 1 << 24;
    int64_t sum = 0;
    for (int i = 0; i < count; i++) {
        if (lengths[i] < least || int64_t(lengths[i]) + added > most)
            fail("a text has %d tokens, but the model takes from %d to %lld", lengths[i], least, (long long)(most - added));
        sum += lengths[i];
    }
    return sum;
}

}  // namespace heedful

int heedful_abi_version(void) { return HEEDFUL_ABI_VERSION; }

const char* heedful_instruction_set(void) { return instruction_set().name; }

int heedful_use_instruction_set(const char* name) {
    const InstructionSet* found = named(name);
    if (found) __atomic_store_n(&chosen, found, __ATOMIC_RELAXED);
    return !found;
}

const char* heedful_error(void) { return failure().message; }

heedful_model* heedful_model_new(const heedful_settings* settings) {
    heedful_model* model = nullptr;
    int failed = guarded([&] {
        model = new_zeros<heedful_model>(1);
        start(&model->memory.mutex);
        start_model(*model, *settings);
    });
    if (!failed) return model;
    heedful_model_free(model);
    return nullptr;
}

int heedful_model_put(heedful_model* model, const char* name, int type, const int64_t* shape, int axes, int64_t first,
                      const void* data, uint64_t bytes) {
    return guarded([&] { put_rows(*model, name, type, shape, axes, first, data, bytes); });
}

int heedful_model_shortlist(heedful_model* model, const int32_t* frequent, int count) {
    return guarded([&] { set_shortlist(*model, frequent, count); });
}

int heedful_model_finish(heedful_model* model) {
    return guarded([&] { finish_model(*model); });
}

void heedful_model_free(heedful_model* model) {
    if (!model) return;
    free_model(*model);
    free_zeros(model);
}

heedful_decoder* heedful_decoder_new(heedful_model* model, const heedful_options* options) {
    heedful_decoder* decoder = nullptr;
    int failed = guarded([&] {
        decoder = new_zeros<heedful_decoder>(1);
        start_decoder(*decoder, *model, *options);
    });
    if (!failed) return decoder;
    heedful_decoder_free(decoder);
    return nullptr;
}

void heedful_decoder_free(heedful_decoder* decoder) {
    if (!decoder) return;
    free_decoder(*decoder);
    free_zeros(decoder);
}

int heedful_decoder_add(heedful_decoder* decoder, const heedful_request* requests, int count) {
    return guarded([&] { add_requests(*decoder, requests, count); });
}

int heedful_decoder_cancel(heedful_decoder* decoder, int64_t index) {
    return guarded([&] { cancel(*decoder, index); });
}

int heedful_decoder_step(heedful_decoder* decoder) {
    return guarded([&] { run(*decoder, 0); });
}

int heedful_decoder_run(heedful_decoder* decoder, int milliseconds) {
    return guarded([&] { run(*decoder, milliseconds > 0 ? milliseconds : 1); });
}

int heedful_decoder_waiting(heedful_decoder* decoder) { return static_cast<int>(decoder->waiting.size - decoder->next); }

int heedful_decoder_running(heedful_decoder* decoder) { return decoder->running; }

int64_t heedful_decoder_steps(heedful_decoder* decoder) {
    int64_t steps = 0;
    for (const Group& group : decoder->groups) steps += group.steps;
    return steps;
}

int heedful_decoder_done(heedful_decoder* decoder, int64_t* index, int32_t* sizes) {
    if (decoder->taken == decoder->done.size) return 0;
    const Result& result = *decoder->done[decoder->taken];
    *index = result.index;
    sizes[0] = result.hypotheses;
    sizes[1] = result.num_tokens;
    sizes[2] = result.num_scores;
    return 1;
}

template <typename T> static void copy_out(T* to, const Array<T>& from) {
    if (from.size) memcpy(to, from.data, from.size * sizeof(T));
}

void heedful_decoder_take(heedful_decoder* decoder, int32_t* heads, double* totals, int32_t* tokens, float* scores) {
    if (decoder->taken == decoder->done.size) return;
    Result* result = decoder->done[decoder->taken++];
    copy_out(heads, result->heads);
    copy_out(totals, result->totals);
    copy_out(tokens, result->tokens);
    copy_out(scores, result->scores);
    free_result(result);
    if (decoder->taken == decoder->done.size) decoder->taken = decoder->done.size = 0;
}

int heedful_decoder_progress(heedful_decoder* decoder, int64_t index, int32_t* tokens, int most, int32_t* last,
                             float* last_score) {
    Group* group;
    size_t place;
    if (!find_running(*decoder, index, &group, &place)) return -1;
    const Sentence& sentence = *group->running[place];
    if (!sentence.length) return -1;
    const Step& step = sentence.history[size_t(sentence.length - 1) * sentence.beam + best_row(sentence)];
    *last = step.token;
    *last_score = step.score;
    return best_so_far(decoder->options, sentence, tokens, most);
}

int heedful_decoder_likeliest(heedful_decoder* decoder, int64_t index, int count, int32_t* tokens, float* scores) {
    Group* group;
    size_t place;
    const bool has_logits = decoder->options.keep_logits || !chooses_by_candidates(decoder->options);
    if (!has_logits || decoder->failed || !find_running(*decoder, index, &group, &place)) return 0;
    const Sentence& sentence = *group->running[place];
    if (!sentence.length || count < 1) return 0;
    const int parent = sentence.history[size_t(sentence.length - 1) * sentence.beam + best_row(sentence)].parent;
    const int columns = num_columns(*decoder->model, sentence);
    count = count < columns ? count : columns;
    int found = 0;
    guarded([&] {
        Array<Candidate> best = {};
        best.resize(count);
        for (size_t row = 0; row < group->rows.size; row++) {
            const StepRow& each = group->rows[row];
            if (each.sentence != &sentence || each.row != parent) continue;
            found = likeliest_of(group->logits.data + row * group->logit_stride, columns, count, best.data);
            for (int i = 0; i < found; i++) {
                tokens[i] = token_of(*decoder->model, sentence, best[i].column);
                scores[i] = each.log_probability(best[i].logit);
            }
        }
        best.free();
    });
    return found;
}

template <typename Function> static int with_threads(int threads, Function&& function) {
    Pool pool;
    pool.open(threads < 1 ? 1 : threads);
    int failed = guarded([&] { function(pool.size() > 1 ? &pool : nullptr); });
    pool.close();
    return failed;
}

int heedful_score(heedful_model* model, int threads, int pairs, const int32_t* sources, const int32_t* source_lengths,
                  const int32_t* targets, const int32_t* target_lengths, float* scores, float* alignment) {
    return with_threads(threads, [&](Pool* pool) {
        if (!model->ready || !model->settings.decoder.layers) fail("the model has no decoder");
        const bool translates = model->decoder.has_cross;
        const Stack& source_stack = translates ? model->encoder : model->decoder;
        const int32_t vocabulary = model->settings.vocabulary;
        check_ids(sources, check_lengths(source_stack, source_lengths, pairs, 1, 0), vocabulary, "token");
        check_ids(targets, check_lengths(model->decoder, target_lengths, pairs, !translates, translates), vocabulary, "token");
        model->set->score(*model, pool, pairs, sources, source_lengths, targets, target_lengths, scores, alignment);
    });
}

int heedful_encode(heedful_model* model, int threads, int texts, const int32_t* ids, const int32_t* segments,
                   const int32_t* lengths, int pooling, int head, float* output) {
    return with_threads(threads, [&](Pool* pool) {
        if (!model->ready || !model->settings.encoder.layers) fail("the model has no encoder");
        if (head && !model->output.outputs) fail("the model has no head");
        const int64_t tokens = check_lengths(model->encoder, lengths, texts, 1, 0);
        check_ids(ids, tokens, model->settings.vocabulary, "token");
        if (segments) check_ids(segments, tokens, model->settings.encoder.segments, "segment");
        model->set->encode(*model, pool, texts, ids, model->settings.encoder.segments ? segments : nullptr, lengths,
                                 pooling, head, output);
    });
}
