// The rules of the search, for beams and samples alike:
// - A sentence has a fixed number of places. A running hypothesis takes one, and a finished one keeps its own, so that
//   a beam of 1 is greedy search, and every search ends.
// - A sentence is done when no running hypothesis can still beat the worst of its `nbest` best finished ones:
//   log-probabilities are never above 0, so a sum can only fall, and no penalty divides it by more than the one at the
//   maximum length.
// - It is also done after the step at which its hypotheses hold their maximum number of tokens: that step only shows
//   which of them end there. Those that do not are unfinished; the best of them make up for finished ones where there
//   are fewer than `nbest`.
#include "decoder.h"

namespace heedful {

double length_penalty(const heedful_options& options, int length) {
    return pow((5.0 + length) / 6.0, options.length_penalty);
}

void walk(const Sentence& sentence, int length, int row, int32_t* tokens, float* scores) {
    for (int step = length - 1; step >= 0; step--) {
        const Step& each = sentence.history[size_t(step) * sentence.beam + row];
        tokens[step] = each.token;
        if (scores) scores[step] = each.score;
        row = each.parent;
    }
}

int best_row(const Sentence& sentence) {
    int best = 0;
    for (int row = 1; row < sentence.beam; row++)
        if (sentence.totals[row] > sentence.totals[best]) best = row;
    return best;
}

int best_so_far(const heedful_options& options, const Sentence& sentence, int32_t* tokens, int most) {
    const Ended* ended = nullptr;
    for (int i = 0; i < sentence.num_ended; i++)
        if (!ended || sentence.ended[i].score > ended->score) ended = &sentence.ended[i];
    int row = best_row(sentence), length = sentence.length;
    if (ended && ended->score >= sentence.totals[row] / length_penalty(options, length)) {
        row = ended->row;
        length = ended->length;
    }
    if (length <= most) walk(sentence, length, row, tokens, nullptr);
    return length;
}

// Inserts a child among the best, after equally good ones; returns how many there are.
static int keep_best(Child* best, int count, int most, const Child& child) {
    if (count == most && !(child.total > best[most - 1].total)) return count;
    int place = count < most ? count : most - 1;
    for (; place > 0 && best[place - 1].total < child.total; place--) best[place] = best[place - 1];
    best[place] = child;
    return count < most ? count + 1 : count;
}

// Lowers the log-probabilities of tokens that a hypothesis already has, and rules out those that would repeat an
// n-gram.
static void adjust(Group& group, const StepRow& row, int vocabulary, float* logits) {
    const heedful_options& options = group.decoder->options;
    const Sentence& sentence = *row.sentence;
    // An empty text is read as the end of another one, which must not rule out its own end.
    const bool is_empty = !sentence.source.size && sentence.first == group.decoder->model->settings.end;
    const size_t before = sentence.continues && !is_empty ? sentence.source.size + 1 : 0;
    const size_t length = before + sentence.length;
    Array<int32_t>& text = group.text;
    text.resize(length);
    if (before) {
        for (size_t i = 0; i + 1 < before; i++) text[i] = sentence.source[i];
        text[before - 1] = sentence.first;
    }
    walk(sentence, sentence.length, row.row, text.data + before, nullptr);
    if (options.repetition_penalty != 1.0) {
        Array<uint8_t>& seen = group.seen;
        seen.size = 0;
        seen.resize(vocabulary);
        for (int32_t token : text) {
            if (seen[token]) continue;
            seen[token] = 1;
            const float penalised = static_cast<float>(options.repetition_penalty) * row.log_probability(logits[token]);
            logits[token] = penalised + row.log_sum + row.peak;
        }
    }
    const size_t n = options.no_repeat_ngram;
    for (size_t start = 0; n && start + n <= length; start++)
        if (!memcmp(text.data + start, text.data + length - (n - 1), (n - 1) * sizeof(int32_t)))
            logits[text[start + n - 1]] = -INFINITY;
}

int num_columns(const heedful_model& model, const Sentence& sentence) {
    if (!model.shortlist.used()) return model.settings.vocabulary;
    return static_cast<int>(model.shortlist.frequent.size + sentence.own_tokens.size);
}

int32_t token_of(const heedful_model& model, const Sentence& sentence, int column) {
    const Array<int32_t>& frequent = model.shortlist.frequent;
    if (!model.shortlist.used()) return column;
    return size_t(column) < frequent.size ? frequent[column] : sentence.own_tokens[column - frequent.size];
}

static uint64_t mixed(uint64_t bits) {
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
    return bits ^ bits >> 31;
}

// A number in [0, 1) that depends on nothing but these four.
static double uniform(uint64_t seed, uint64_t number, uint64_t sample, uint64_t position) {
    const uint64_t gamma = 0x9E3779B97F4A7C15u;
    uint64_t bits = mixed(seed + gamma);
    const uint64_t parts[] = {number, sample, position};
    for (uint64_t part : parts) bits = mixed((bits ^ part) + gamma);
    return static_cast<double>(bits >> 12) * 0x1p-52;
}

static void force(Sentence& sentence, const StepRow* rows, int count) {
    for (int row = 0; row < sentence.beam; row++) sentence.children[row] = {row, 0, 0.0f, -INFINITY};
    for (int i = 0; i < count; i++) {
        const float score = rows[i].log_probability(rows[i].wanted_logit);
        sentence.children[rows[i].row] = {rows[i].row, rows[i].wanted, score, sentence.totals[rows[i].row] + score};
    }
}

static void sample(Group& group, Sentence& sentence, const StepRow* rows, size_t first, int count) {
    const heedful_model& model = *group.decoder->model;
    const int columns = num_columns(model, sentence);
    for (int row = 0; row < sentence.beam; row++) sentence.children[row] = {row, 0, 0.0f, -INFINITY};
    for (int i = 0; i < count; i++) {
        const int row = rows[i].row;
        const float* logits = group.logits.data + (first + i) * group.logit_stride;
        const double number = uniform(sentence.seed, sentence.number, row, sentence.length);
        const int column = draw(group.decoder->options, logits, columns, number, group.drawn_from);
        if (column < 0) continue;  // all are ruled out: it stays unfinished
        const float score = rows[i].log_probability(logits[column]);
        sentence.children[row] = {row, token_of(model, sentence, column), score, sentence.totals[row] + score};
    }
}

// The best continuations, one for each place: among equals, the lower row first, then the larger logit, then the first
// column.
static void search(Group& group, Sentence& sentence, const StepRow* rows, size_t first, int count) {
    const heedful_options& options = group.decoder->options;
    const heedful_model& model = *group.decoder->model;
    const int beam = sentence.beam, places = beam - sentence.num_ended;
    Child* best = sentence.children.data;
    int found = 0;
    for (int i = 0; i < count; i++) {
        group.candidates.reserve(group.rows.size * beam);
        Candidate* candidates = group.candidates.data + (first + i) * beam;
        int num = rows[i].num_candidates;
        if (!chooses_by_candidates(options)) {
            const float* logits = group.logits.data + (first + i) * group.logit_stride;
            num = likeliest_of(logits, num_columns(model, sentence), beam, candidates);
        }
        for (int k = 0; k < num; k++) {
            const float score = rows[i].log_probability(candidates[k].logit);
            const int32_t token = token_of(model, sentence, candidates[k].column);
            const Child child = {rows[i].row, token, score, sentence.totals[rows[i].row] + score};
            if (child.total > -INFINITY) found = keep_best(best, found, places, child);
        }
    }
    for (int k = found; k < beam; k++) best[k] = {0, 0, 0.0f, -INFINITY};
}

// The hypotheses of the next step: a row's best continuation stays in the row, others take the free rows in order.
static void take_rows(Sentence& sentence, int32_t end) {
    const int beam = sentence.beam;
    sentence.history.resize(size_t(sentence.length + 1) * beam);
    Step* step = sentence.history.data + size_t(sentence.length) * beam;
    memcpy(sentence.totals_before.data, sentence.totals.data, beam * sizeof(double));
    for (int row = 0; row < beam; row++) {
        step[row] = {end, row, 0.0f};
        sentence.totals[row] = -INFINITY;
    }
    auto goes_on = [&](const Child& child) { return child.total > -INFINITY && child.token != end; };
    auto put = [&](int row, Child& child) {
        step[row] = {child.token, child.row, child.score};
        sentence.totals[row] = child.total;
        child.total = -INFINITY;
    };
    for (Child& child : sentence.children)
        if (goes_on(child) && !sentence.running(child.row)) put(child.row, child);
    int free_row = 0;
    for (Child& child : sentence.children) {
        if (!goes_on(child)) continue;
        while (sentence.running(free_row)) free_row++;
        put(free_row, child);
    }
    for (int row = 0; row < beam; row++) sentence.tokens[row] = step[row].token;
}

static void follow_paths(Sentence& sentence) {
    const Step* step = sentence.history.data + size_t(sentence.length) * sentence.beam;
    const size_t room = sentence.path_room, bytes = (sentence.position + 1) * sizeof(int32_t);
    bool moved = false;
    for (int row = 0; row < sentence.beam; row++) moved |= sentence.running(row) && step[row].parent != row;
    if (!moved) return;
    for (int row = 0; row < sentence.beam; row++)
        if (sentence.running(row))
            memcpy(sentence.other_paths.data + row * room, sentence.paths.data + step[row].parent * room, bytes);
    Array<int32_t> paths = sentence.paths;
    sentence.paths = sentence.other_paths;
    sentence.other_paths = paths;
}

static void take_children(const heedful_options& options, Sentence& sentence, int32_t end) {
    for (Child& child : sentence.children) {
        if (!(child.total > -INFINITY) || child.token != end) continue;
        const double score = child.total / length_penalty(options, sentence.length + 1);
        sentence.ended[sentence.num_ended++] = {score, sentence.length, child.row, child.score};
    }
    take_rows(sentence, end);
    follow_paths(sentence);
    sentence.length++;
    sentence.position++;
}

void advance(Group& group) {
    const heedful_options& options = group.decoder->options;
    const heedful_settings& settings = group.decoder->model->settings;
    for (size_t first = 0, last; first < group.rows.size; first = last) {
        Sentence& sentence = *group.rows[first].sentence;
        for (last = first; last < group.rows.size && group.rows[last].sentence == &sentence;) last++;
        const StepRow* rows = group.rows.data + first;
        const int count = static_cast<int>(last - first);
        // A prefix may repeat itself.
        if ((options.repetition_penalty != 1.0 || options.no_repeat_ngram) && rows->wanted < 0)
            for (int i = 0; i < count; i++)
                adjust(group, rows[i], settings.vocabulary, group.logits.data + (first + i) * group.logit_stride);
        if (rows->wanted >= 0)
            force(sentence, rows, count);
        else if (options.sampling)
            sample(group, sentence, rows, first, count);
        else
            search(group, sentence, rows, first, count);
        take_children(options, sentence, settings.end);
    }
}

const int* rank_ended(Sentence& sentence) {
    int* order = sentence.order.data;
    for (int i = 0; i < sentence.num_ended; i++) {
        int place = i;
        for (; place > 0 && sentence.ended[order[place - 1]].score < sentence.ended[i].score; place--)
            order[place] = order[place - 1];
        order[place] = i;
    }
    return order;
}

bool is_done(const heedful_options& options, Sentence& sentence) {
    const int best = best_row(sentence);
    if (sentence.length > sentence.longest || !sentence.running(best)) return true;
    if (sentence.num_ended < options.nbest) return false;
    const double kept = sentence.ended[rank_ended(sentence)[options.nbest - 1]].score;
    return sentence.totals[best] / length_penalty(options, sentence.longest + 1) <= kept;
}

}  // namespace heedful
