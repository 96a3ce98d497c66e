// The single loop for all decoding: requests come at any time, slots are kept full, results are returned when done.
#include "decoder.h"

#include <time.h>

namespace heedful {

// About this many tokens are encoded at a time: enough for large products, yet little to hold.
static const int TOKENS_PER_PREFILL = 1024;
// Requests that come while many sentences are under way are encoded once they are one in this many of them, or before
// this step after they came: one sentence costs nearly as much to encode as several.
static const int SHARE_TO_GATHER = 8, STEPS_TO_GATHER = 4;

// Milliseconds, by a clock that is never set.
static int64_t now() {
#if defined(_WIN32)
    return static_cast<int64_t>(GetTickCount64());
#else
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return int64_t(time.tv_sec) * 1000 + time.tv_nsec / 1000000;
#endif
}

static void remove(Array<Sentence*>& sentences, size_t place) {
    sentences.size--;
    memmove(sentences.data + place, sentences.data + place + 1, (sentences.size - place) * sizeof(Sentence*));
}

static Sentence* unused_sentence(heedful_decoder& decoder) {
    if (!decoder.unused.size) return new_zeros<Sentence>(1);
    return decoder.unused[--decoder.unused.size];
}

// Only sentences under way have caches: however many wait, memory is used only for those decoded side by side.
static void give_caches(heedful_decoder& decoder, Sentence* sentence) {
    if (!decoder.with_caches.size) return;
    Sentence* done = decoder.with_caches[--decoder.with_caches.size];
    sentence->take_caches(*done);
    decoder.unused.add(done);
}

static void check_tokens(const heedful_model& model, const int32_t* tokens, int count) {
    for (int i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= model.settings.vocabulary)
            fail("token %d is not in the vocabulary, which has %d", tokens[i], model.settings.vocabulary);
}

// The most positions that a stack takes, according to its table.
static int64_t reach(const Stack& stack) {
    const int scheme = stack.settings.positions;
    return scheme == HEEDFUL_LEARNED || scheme == HEEDFUL_ROTARY ? stack.settings.position_rows : 1 << 24;
}

static void check_request(heedful_decoder& decoder, const heedful_request& request) {
    const heedful_model& model = *decoder.model;
    const bool translates = model.decoder.has_cross;
    if (request.source_length < translates || request.prefix_length < 0 || request.longest < 0)
        fail("a request has a length below what it must be");
    check_tokens(model, request.source, request.source_length);
    check_tokens(model, request.prefix, request.prefix_length);
    check_tokens(model, &request.first, 1);
    check_own_tokens(model, request, decoder.named);
    if (request.prefix_length > request.longest) fail("a forced prefix is longer than its target may be");
    const int64_t target = int64_t(request.longest) + 1 + (translates ? 0 : request.source_length);
    if (translates && request.source_length > reach(model.encoder))
        fail("a source has %d tokens, more than the positions of the model", request.source_length);
    if (target > reach(model.decoder))
        fail("a target may have %lld tokens, more than the positions of the model", (long long)target);
}

static int by_length(const void* first, const void* second) {
    const Sentence &one = **static_cast<Sentence* const*>(first), &two = **static_cast<Sentence* const*>(second);
    if (one.source.size != two.source.size) return one.source.size > two.source.size ? -1 : 1;
    return one.index < two.index ? -1 : one.index > two.index;
}

static void check_usable(const heedful_decoder& decoder) {
    if (decoder.failed) fail("decoding has failed before, and goes on with another decoder alone");
}

void add_requests(heedful_decoder& decoder, const heedful_request* requests, int count) {
    check_usable(decoder);
    if (count < 0) fail("%d requests cannot be added", count);
    for (int i = 0; i < count; i++) check_request(decoder, requests[i]);
    if (decoder.next) {
        decoder.waiting.size -= decoder.next;
        memmove(decoder.waiting.data, decoder.waiting.data + decoder.next, decoder.waiting.size * sizeof(Sentence*));
        decoder.next = 0;
    }
    // Room for each of them in every list that it will pass through.
    const size_t first = decoder.waiting.size, under_way = first + decoder.running + count;
    decoder.waiting.reserve(first + count);
    decoder.done.reserve(decoder.done.size + under_way);
    decoder.with_caches.reserve(decoder.with_caches.size + under_way);
    decoder.unused.reserve(decoder.unused.size + decoder.with_caches.size + under_way);
    int failed = guarded([&] {
        for (int i = 0; i < count; i++) {
            Sentence* sentence = unused_sentence(decoder);
            decoder.waiting.add(sentence);
            sentence->open(requests[i], decoder.options);
            sentence->continues = !decoder.model->decoder.has_cross;
        }
    });
    if (failed) {
        while (decoder.waiting.size > first) decoder.unused.add(decoder.waiting[--decoder.waiting.size]);
        fail_again();
    }
    // The longest first, so that the last to finish are short.
    if (count) qsort(decoder.waiting.data + first, count, sizeof(Sentence*), by_length);
}

static int num_waiting(const heedful_decoder& decoder) {
    return static_cast<int>(decoder.waiting.size - decoder.next);
}

// Whether what waits should wait for more; called whenever a group could take something.
static bool gathers(Group& group, int waiting) {
    const bool few = waiting && waiting * SHARE_TO_GATHER < static_cast<int>(group.running.size);
    group.steps_gathered = few ? group.steps_gathered + 1 : 0;
    if (group.steps_gathered == STEPS_TO_GATHER) group.steps_gathered = 0;
    return group.steps_gathered > 0;
}

// Takes requests into a group's free slots, up to its fair share of all.
static int take_waiting(Group& group, bool alone, Sentence** taken, int most) {
    heedful_decoder& decoder = *group.decoder;
    lock(&decoder.mutex);
    const int groups = alone ? 1 : static_cast<int>(decoder.groups.size);
    const int share = (num_waiting(decoder) + decoder.running + groups - 1) / groups;
    const int limit = share < decoder.options.sentences ? share : decoder.options.sentences;
    int count = 0, tokens = 0;
    if (num_waiting(decoder) && !gathers(group, num_waiting(decoder)))
        while (num_waiting(decoder) && static_cast<int>(group.running.size) + count < limit && count < most) {
            Sentence* next = decoder.waiting[decoder.next];
            tokens += static_cast<int>(next->source.size);
            if (count && tokens > TOKENS_PER_PREFILL) break;
            give_caches(decoder, next);
            taken[count++] = next;
            decoder.next++;
        }
    decoder.running += count;
    unlock(&decoder.mutex);
    return count;
}

static void fill(Group& group, Pool* pool) {
    const heedful_model& model = *group.decoder->model;
    Sentence* taken[64];
    group.running.reserve(group.running.size + 64);
    while (int count = take_waiting(group, pool != nullptr, taken, 64)) {
        // Into the group first: if something fails they are not lost.
        for (int i = 0; i < count; i++) group.running.add(taken[i]);
        group.decoder->set->prefill(group, pool, taken, count);
        if (model.shortlist.used())
            for (int i = 0; i < count; i++) taken[i]->gather_output(model.output);
        group.running.reserve(group.running.size + 64);
    }
}

static void hand_out(Group& group) {
    heedful_decoder& decoder = *group.decoder;
    for (size_t place = 0; place < group.running.size;) {
        Sentence* sentence = group.running[place];
        if (!is_done(decoder.options, *sentence)) {
            place++;
            continue;
        }
        group.result = new_zeros<Result>(1);
        write_result(decoder.options, *sentence, *group.result);
        remove(group.running, place);
        lock(&decoder.mutex);
        decoder.done.add(group.result);
        decoder.with_caches.add(sentence);
        decoder.running--;
        unlock(&decoder.mutex);
        group.result = nullptr;
    }
}

// Steps of a group, until it has nothing left to do or the time is over.
static void run_group(Group& group, Pool* pool) {
    heedful_decoder& decoder = *group.decoder;
    for (;;) {
        fill(group, pool);
        if (!group.running.size) return;
        group.steps += static_cast<int64_t>(group.running.size);
        decoder.set->step(group, pool);
        advance(group);
        hand_out(group);
        if (!decoder.deadline || now() >= decoder.deadline) return;
    }
}

static void run_part(void* decoder, int part) {
    Group& group = static_cast<heedful_decoder*>(decoder)->groups[part];
    group.failed = guarded([&] { run_group(group, nullptr); });
    if (group.failed) memcpy(group.message, failure().message, sizeof group.message);
}

// With a single sentence all threads work on it; otherwise each thread has its own sentences.
static void run_groups(heedful_decoder& decoder, int milliseconds) {
    decoder.deadline = milliseconds ? now() + milliseconds : 0;
    if (num_waiting(decoder) + decoder.running == 1) {
        Group* only = &decoder.groups[0];
        for (Group& group : decoder.groups)
            if (group.running.size) only = &group;
        run_group(*only, decoder.pool.size() > 1 ? &decoder.pool : nullptr);
        return;
    }
    decoder.pool.run(run_part, &decoder, static_cast<int>(decoder.groups.size));
    for (Group& group : decoder.groups)
        if (group.failed) fail("%s", group.message);
}

void run(heedful_decoder& decoder, int milliseconds) {
    check_usable(decoder);
    decoder.failed = guarded([&] { run_groups(decoder, milliseconds); });
    if (decoder.failed) fail_again();
}

void start_decoder(heedful_decoder& decoder, heedful_model& model, const heedful_options& options) {
    if (!model.ready) fail("the model is not complete");
    if (!model.settings.decoder.layers) fail("the model has no decoder");
    const heedful_options& o = options;
    if (o.beam < 1 || o.beam > 1 << 12) fail("a beam, or the number of samples, is %d, but must be from 1 to %d", o.beam, 1 << 12);
    if (o.nbest < 1 || o.nbest > o.beam) fail("nbest is %d, but must be from 1 to %d", o.nbest, o.beam);
    if (o.sentences < 1 || o.sentences > 1 << 16) fail("the number of sentences is out of range");
    if (o.threads < 1 || o.threads > 64) fail("the number of threads is out of range");
    if (o.min_length < 0 || o.top_k < 0 || o.no_repeat_ngram < 0) fail("an option is below 0");
    if (!(o.temperature > 0) || !(o.top_p > 0) || !(o.top_p <= 1) || !isfinite(o.length_penalty) ||
        !(o.repetition_penalty > 0) || !isfinite(o.repetition_penalty) || !isfinite(o.temperature))
        fail("an option is out of range");
    if (model.shortlist.used() && (o.no_repeat_ngram || o.repetition_penalty != 1.0))
        fail("rules against repetition look at all tokens, and take no shortlist");
    decoder.model = &model;
    decoder.set = model.set;
    decoder.options = options;
    start(&decoder.mutex);
    decoder.pool.open(options.threads);
    decoder.groups.resize(decoder.pool.size());
    for (Group& group : decoder.groups) {
        group.decoder = &decoder;
        group.workspace = decoder.set->new_workspace();
    }
}

void free_result(Result* result) {
    if (!result) return;
    result->heads.free();
    result->tokens.free();
    result->scores.free();
    result->totals.free();
    free_zeros(result);
}

static void free_sentence(Sentence* sentence) {
    sentence->free();
    free_zeros(sentence);
}

void free_decoder(heedful_decoder& decoder) {
    if (decoder.pool.size()) decoder.pool.close();
    for (Group& group : decoder.groups) {
        for (Sentence* sentence : group.running) free_sentence(sentence);
        group.running.free();
        group.rows.free();
        group.candidates.free();
        group.logits.free();
        group.text.free();
        group.seen.free();
        group.drawn_from.free();
        free_result(group.result);
        if (group.workspace) decoder.set->free_workspace(group.workspace);
    }
    for (size_t i = decoder.next; i < decoder.waiting.size; i++) free_sentence(decoder.waiting[i]);
    for (Sentence* sentence : decoder.with_caches) free_sentence(sentence);
    for (Sentence* sentence : decoder.unused) free_sentence(sentence);
    for (size_t i = decoder.taken; i < decoder.done.size; i++) free_result(decoder.done[i]);
    decoder.groups.free();
    decoder.waiting.free();
    decoder.with_caches.free();
    decoder.unused.free();
    decoder.done.free();
    decoder.named.free();
}

// Finds the sentence of that index if it is under way.
bool find_running(heedful_decoder& decoder, int64_t index, Group** group, size_t* place) {
    for (Group& each : decoder.groups)
        for (size_t i = 0; i < each.running.size; i++)
            if (each.running[i]->index == index) {
                *group = &each;
                *place = i;
                return true;
            }
    return false;
}

void cancel(heedful_decoder& decoder, int64_t index) {
    for (size_t i = decoder.next; i < decoder.waiting.size; i++)
        if (decoder.waiting[i]->index == index) {
            decoder.unused.add(decoder.waiting[i]);
            remove(decoder.waiting, i);
            return;
        }
    Group* group;
    size_t place;
    if (!find_running(decoder, index, &group, &place)) return;
    decoder.with_caches.add(group->running[place]);
    remove(group->running, place);
    decoder.running--;
}

}  // namespace heedful
