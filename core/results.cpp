// What is handed out of a sentence that is done: the best hypotheses, or the samples in the order of their numbers.
#include "decoder.h"

namespace heedful {

static void write_hypothesis(Result& result, const Sentence& sentence, int length, int row, double score, bool finished,
                             float end) {
    const int32_t head[] = {length, length + finished, finished};
    for (int32_t each : head) result.heads.add(each);
    result.totals.add(score);
    const size_t first_token = result.tokens.size, first_score = result.scores.size;
    result.tokens.resize(first_token + length);
    result.scores.resize(first_score + length + finished);
    walk(sentence, length, row, result.tokens.data + first_token, result.scores.data + first_score);
    if (finished) result.scores[first_score + length] = end;
    result.hypotheses++;
}

static void write_ended(Result& result, const Sentence& sentence, const Ended& ended) {
    write_hypothesis(result, sentence, ended.length, ended.row, ended.score, true, ended.end);
}

static void write_unfinished(const heedful_options& options, Result& result, Sentence& sentence, int row) {
    const int length = sentence.length - 1;
    double& total = sentence.totals_before[row];
    write_hypothesis(result, sentence, length, row, total / length_penalty(options, length), false, 0.0f);
    total = -INFINITY;
}

// Each sample has a row of its own.
static void write_samples(const heedful_options& options, Sentence& sentence, Result& result) {
    for (int row = 0; row < sentence.beam && result.hypotheses < options.nbest; row++) {
        for (int i = 0; i < sentence.num_ended; i++)
            if (sentence.ended[i].row == row) write_ended(result, sentence, sentence.ended[i]);
        if (sentence.totals_before[row] > -INFINITY) write_unfinished(options, result, sentence, row);
    }
}

static void write_best(const heedful_options& options, Sentence& sentence, Result& result) {
    const int* order = rank_ended(sentence);
    for (int i = 0; i < sentence.num_ended && i < options.nbest; i++)
        write_ended(result, sentence, sentence.ended[order[i]]);
    const double* left = sentence.totals_before.data;
    while (result.hypotheses < options.nbest) {
        int best = 0;
        for (int row = 1; row < sentence.beam; row++)
            if (left[row] > left[best]) best = row;
        if (!(left[best] > -INFINITY)) break;
        write_unfinished(options, result, sentence, best);
    }
}

void write_result(const heedful_options& options, Sentence& sentence, Result& result) {
    result.index = sentence.index;
    result.hypotheses = 0;
    // The sentence is done: the totals from before the last step are not needed after this.
    for (int i = 0; i < sentence.num_ended; i++)
        if (sentence.ended[i].length == sentence.length - 1) sentence.totals_before[sentence.ended[i].row] = -INFINITY;
    (options.sampling ? write_samples : write_best)(options, sentence, result);
    result.num_tokens = static_cast<int>(result.tokens.size);
    result.num_scores = static_cast<int>(result.scores.size);
}

}  // namespace heedful
