// Decodes and scores with one thread and with three, by every instruction set, and compares: three threads must give
// the same as one. Run under a sanitizer, it shows races, leaks, and reads and writes outside of memory.
#include <string.h>

#include "random_model.h"

namespace {

using fuzz::Random;

struct Found {
    int64_t index;
    std::vector<int32_t> tokens;
    std::vector<float> scores;
};

void require(bool holds, const char* what) {
    if (holds) return;
    fprintf(stderr, "%s: %s\n", what, heedful_error());
    exit(1);
}

struct Kind {
    bool translates, int8, shortlisted;
};
const Kind KINDS[] = {{false, false, false}, {true, false, false}, {false, true, false},
                      {true, true, false},   {true, false, true},  {true, true, true}};

// The frequent tokens of a shortlist are the even ones, and the end.
heedful_model* model_of(const Kind& kind, Random random) {
    heedful_settings settings = {};
    settings.int8 = kind.int8;
    settings.vocabulary = 2003;  // large enough to divide the output among threads
    settings.width = 104;
    settings.max_length = 40;
    settings.pad = 0;
    settings.start = 1;
    settings.end = 2;
    settings.mask = -1;
    settings.output_bias = 1;
    settings.decoder = fuzz::small_stack(2, 13);
    settings.decoder.heads = 2;
    settings.decoder.inner_width = 500;
    settings.decoder.activation = kind.translates ? HEEDFUL_RELU : HEEDFUL_SWIGLU;
    settings.decoder.positions = kind.translates ? HEEDFUL_SINUSOIDAL : HEEDFUL_NO_POSITIONS;
    settings.decoder.window = 5;
    if (kind.translates) settings.encoder = settings.decoder;
    heedful_model* model = heedful_model_new(&settings);
    require(model, "heedful_model_new");
    if (kind.shortlisted) {
        std::vector<int32_t> frequent = {settings.end};
        for (int32_t token = 4; token < settings.vocabulary; token += 2) frequent.push_back(token);
        require(!heedful_model_shortlist(model, frequent.data(), static_cast<int>(frequent.size())), "heedful_model_shortlist");
    }
    fuzz::complete(model, random, 0.2f);
    return model;
}

// Everything that a decoder finds, by the requests' indices.
std::vector<Found> decode(heedful_model* model, const Kind& kind, int threads, int sampling, int count) {
    heedful_options options = {};
    options.temperature = options.top_p = options.repetition_penalty = 1.0;
    options.beam = 3;
    options.nbest = 2;
    options.sampling = sampling;
    options.keep_logits = 1;
    options.threads = threads;
    options.sentences = 4;
    heedful_decoder* decoder = heedful_decoder_new(model, &options);
    require(decoder, "heedful_decoder_new");
    Random random = {7};
    std::vector<int32_t> source(23), own(300);
    std::vector<heedful_request> requests(static_cast<size_t>(count));
    for (int32_t& token : source) token = 3 + random.below(2000);
    for (size_t i = 0; i < own.size(); i++) own[i] = 2001 - 2 * static_cast<int32_t>(i);
    for (int i = 0; i < count; i++) {
        heedful_request& request = requests[static_cast<size_t>(i)];
        request.index = request.first = i + 3;
        request.source = request.prefix = source.data();
        request.source_length = 1 + random.below(20);
        request.longest = 1 + random.below(12);
        request.seed = 5;
        request.number = static_cast<uint64_t>(i);
        request.shortlist = own.data();
        request.shortlist_length = kind.shortlisted ? random.below(300) : 0;
    }
    require(!heedful_decoder_add(decoder, requests.data(), count), "heedful_decoder_add");
    std::vector<Found> all(static_cast<size_t>(count));
    for (int left = count, step = 0; left; step++) {
        require(!(step % 3 ? heedful_decoder_step(decoder) : heedful_decoder_run(decoder, 2)), "heedful_decoder_step");
        int64_t index;
        int32_t sizes[3];
        while (heedful_decoder_done(decoder, &index, sizes)) {
            Found& found = all[static_cast<size_t>(index - 3)];
            std::vector<int32_t> heads(3 * static_cast<size_t>(sizes[0]));
            std::vector<double> totals(static_cast<size_t>(sizes[0]));
            found.tokens.resize(static_cast<size_t>(sizes[1]));
            found.scores.resize(static_cast<size_t>(sizes[2]));
            heedful_decoder_take(decoder, heads.data(), totals.data(), found.tokens.data(), found.scores.data());
            left--;
        }
    }
    heedful_decoder_free(decoder);
    return all;
}

void compare(const std::vector<Found>& one, const std::vector<Found>& other) {
    for (size_t i = 0; i < one.size(); i++)
        require(one[i].tokens == other[i].tokens && one[i].scores == other[i].scores, "threads differ");
}

std::vector<float> score(heedful_model* model, int threads) {
    const int32_t tokens[] = {5, 6, 7, 8, 9, 10}, lengths[] = {2, 4};
    std::vector<float> scores(8);
    require(!heedful_score(model, threads, 2, tokens, lengths, tokens, lengths, scores.data(), nullptr), "heedful_score");
    return scores;
}

}  // namespace

int main() {
    for (const char* set : {"portable", "avx2", "avx-vnni", "avx512-vnni"}) {
        if (heedful_use_instruction_set(set)) continue;
        for (const Kind& kind : KINDS) {
            heedful_model* model = model_of(kind, {11});
            for (int sampling : {0, 1})
                for (int count : {1, 2, 17})
                    compare(decode(model, kind, 1, sampling, count), decode(model, kind, 3, sampling, count));
            require(score(model, 1) == score(model, 3), "threads differ");
            heedful_model_free(model);
        }
        printf("%s: one thread and three give the same\n", set);
    }
}
