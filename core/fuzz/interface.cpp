// A libFuzzer target: bytes become calls of the C interface, in any order that it allows. Buffers have the lengths that
// a call states; all other values are arbitrary.
#include <math.h>
#include <string.h>

#include <string>

#include "../decoder.h"
#include "random_model.h"

// How many allocations the core may still make; below 0 memory does not run out.
static int allocations_left = -1;

extern "C" void* fuzz_malloc(size_t bytes) {
    // Several threads may count at the same time.
    if (__atomic_load_n(&allocations_left, __ATOMIC_RELAXED) >= 0 &&
        __atomic_fetch_sub(&allocations_left, 1, __ATOMIC_RELAXED) <= 0) {
        __atomic_store_n(&allocations_left, 0, __ATOMIC_RELAXED);
        return nullptr;
    }
    return realloc(nullptr, bytes);
}

extern "C" void* fuzz_calloc(size_t count, size_t size) {
    void* memory = fuzz_malloc(count * size);
    if (memory) memset(memory, 0, count * size);
    return memory;
}

namespace {

using fuzz::Random;

struct Input {
    const uint8_t* data;
    size_t left;

    int byte() {
        if (!left) return 0;
        left--;
        return *data++;
    }
    int below(int limit) { return byte() % limit; }
    bool rarely() { return byte() >= 240; }
    int32_t wild() {
        static const int32_t EDGES[] = {INT32_MIN, INT32_MAX, -1, 0, 1, 1 << 12, 1 << 16, 1 << 24, (1 << 24) + 1, 1 << 30};
        const int kind = byte();
        if (kind < 10) return EDGES[kind];
        if (kind < 128) return kind - 20;
        int32_t number = 0;
        for (int i = 0; i < 4; i++) number = static_cast<int32_t>(static_cast<uint32_t>(number) << 8 | static_cast<uint32_t>(byte()));
        return number;
    }
    float wild_float() {
        static const float EDGES[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, -1.0f, 3e38f, -3e38f, 1e-45f, 1e-38f};
        const int kind = byte();
        return kind < 10 ? EDGES[kind] : static_cast<float>(kind - 128) / 16.0f;
    }
    double wild_double() {
        static const double EDGES[] = {1e308, -1e308, 5e-324, 1e300, -1e300};
        const int kind = byte();
        return kind < 5 ? EDGES[kind] : kind < 128 ? wild_float() : (kind - 192) / 32.0;
    }
    Random random() {
        const uint64_t high = static_cast<uint64_t>(byte());
        return {high << 8 | static_cast<uint64_t>(byte())};
    }
};

heedful_stack stack_of(Input& input, int width) {
    heedful_stack stack = fuzz::small_stack(1 + input.below(2), width);
    stack.key_value_heads = 1 + input.below(2);
    stack.heads = stack.key_value_heads * (1 + input.below(2));
    stack.key_width = 2 * (1 + input.below(9));
    stack.value_width = input.rarely() ? 67 : 1 + input.below(18);
    stack.inner_width = 1 + input.below(35);
    stack.activation = input.below(5);
    stack.positions = input.below(7);
    stack.position_rows = input.below(8) ? 41 : 1 + 2 * input.below(60);
    const int flags = input.byte();
    stack.pre_norm = flags & 1;
    stack.rms_norm = flags >> 1 & 1;
    stack.attention_bias = flags >> 2 & 1;
    stack.feed_forward_bias = flags >> 3 & 1;
    stack.embedding_norm = flags >> 4 & 1;
    stack.segments = flags >> 5 & 1 ? 2 : 0;
    stack.additive = (flags >> 6) == 3;
    stack.window = input.below(4) ? 0 : input.below(20);
    if (!input.rarely()) return stack;
    // Arbitrary values in some fields, all of which have 4 bytes.
    for (int i = input.below(3); i >= 0; i--) {
        const size_t place = static_cast<size_t>(input.below(sizeof stack / 4));
        const int32_t whole = input.wild();
        const float number = input.wild_float();
        memcpy(reinterpret_cast<char*>(&stack) + 4 * place, place < offsetof(heedful_stack, norm_epsilon) / 4 ? static_cast<const void*>(&whole) : &number, 4);
    }
    return stack;
}

// `shortlisted` is set to whether the model should have a shortlist.
heedful_settings settings_of(Input& input, bool& shortlisted) {
    static const int VOCABULARIES[] = {7, 13, 40, 255, 257, 3001};
    heedful_settings settings = {};
    const int first = input.byte(), kind = first % 4, flags = input.byte();
    shortlisted = first >= 227;
    settings.int8 = flags & 1;
    settings.shared_embeddings = flags >> 1 & 1;
    settings.output_bias = flags >> 2 & 1;
    settings.pooler = flags >> 3 & 1;
    settings.transform = flags >> 4 & 1;
    settings.outputs = input.below(5);
    settings.convolution = flags >> 5 & 1 ? input.below(6) : 0;
    settings.vocabulary = input.rarely() ? VOCABULARIES[input.below(6)] : 5 + input.below(30);
    settings.width = 1 + input.below(40);
    settings.max_length = 1 + input.below(30);
    settings.pad = input.below(settings.vocabulary);
    settings.start = input.below(settings.vocabulary);
    settings.end = input.below(settings.vocabulary);
    settings.mask = input.below(settings.vocabulary) - 1;
    if (kind != 1) settings.encoder = stack_of(input, settings.width);
    if (kind) settings.decoder = stack_of(input, settings.width);
    // In translation models both stacks have the same positions.
    if (kind > 1 && !input.rarely()) {
        settings.encoder.positions = settings.decoder.positions;
        settings.encoder.position_rows = settings.decoder.position_rows;
    }
    if (input.rarely()) {
        const int32_t value = input.wild();
        memcpy(reinterpret_cast<char*>(&settings) + 4 * input.below(offsetof(heedful_settings, encoder) / 4), &value, 4);
    }
    return settings;
}

// Values in memory of exactly that size, so that reads and writes beyond it are detected.
template <typename T> std::vector<T> exactly(size_t count) {
    std::vector<T> made(count);
    made.shrink_to_fit();
    return made;
}

// The numbers of a tensor as bytes of a type.
std::vector<uint8_t> as_type(const std::vector<float>& numbers, int type) {
    const size_t size = type == HEEDFUL_F64 ? 8 : type == HEEDFUL_F32 ? 4 : 2;
    std::vector<uint8_t> bytes = exactly<uint8_t>(numbers.size() * size);
    for (size_t i = 0; i < numbers.size(); i++) {
        const double wide = numbers[i];
        uint32_t bits;
        memcpy(&bits, &numbers[i], 4);
        // As F16 these bits are other numbers, some of them infinite.
        const uint16_t half = static_cast<uint16_t>(bits >> 16);
        memcpy(bytes.data() + i * size, size == 8 ? static_cast<const void*>(&wide) : size == 4 ? static_cast<const void*>(&bits) : &half, size);
    }
    return bytes;
}

void put(Input& input, heedful_model* model, const heedful::Expected& tensor, Random& random, float scale, bool honest) {
    std::vector<float> numbers = fuzz::random_numbers(tensor, random, scale);
    int type = HEEDFUL_F32, axes = tensor.axes;
    int64_t shape[3] = {tensor.shape[0], tensor.shape[1], 1};
    std::string name = tensor.name;
    const int lie = honest ? 0 : input.below(8);
    if (lie == 1) numbers[random.next() % numbers.size()] = input.wild_float();
    if (lie == 2) type = HEEDFUL_BF16;
    if (lie == 3) type = input.below(4);
    std::vector<uint8_t> bytes = as_type(numbers, type);
    uint64_t size = bytes.size();
    if (lie == 4) name = name.substr(0, static_cast<size_t>(input.byte())) + std::string(static_cast<size_t>(input.byte()), 'x');
    if (lie == 5) shape[input.below(3)] = input.wild();
    if (lie == 6) axes = input.below(5) - 1 > 3 ? 3 : input.below(5) - 1;
    if (lie == 7) {
        size = static_cast<uint64_t>(input.byte());
        bytes = exactly<uint8_t>(size);
    }
    const int wrong_type = lie == 3 && input.rarely() ? input.wild() : type;
    // Some of the rows, then the others; or bytes that are not whole rows.
    const uint64_t rows = static_cast<uint64_t>(tensor.rows), row_bytes = size / rows;
    uint64_t part = random.next() % 4 ? 0 : row_bytes * (random.next() % rows);
    if (!honest && part) part -= random.next() % 2;
    if (part && heedful_model_put(model, name.c_str(), wrong_type, shape, axes, 0, bytes.data(), part)) return;
    const std::vector<uint8_t> others(bytes.begin() + static_cast<ptrdiff_t>(part), bytes.end());
    const int64_t first = row_bytes ? static_cast<int64_t>(part / row_bytes) : 0;
    heedful_model_put(model, name.c_str(), wrong_type, shape, axes, first, others.data(), size - part);
}

void put_again(Input& input, heedful_model* model) {
    if (!model->expected.size) return;
    const heedful::Expected tensor = model->expected[static_cast<size_t>(input.byte()) % model->expected.size];
    Random random = input.random();
    put(input, model, tensor, random, 0.3f, input.below(2));
}

// Distinct tokens of a vocabulary, beginning with `first`, as a shortlist must have them; rarely, invalid ones.
std::vector<int32_t> distinct_tokens(Input& input, const heedful_settings& settings, std::vector<bool>& taken, int32_t first) {
    Random random = input.random();
    const size_t most = static_cast<size_t>(input.rarely() ? settings.vocabulary : input.below(20));
    std::vector<int32_t> tokens;
    if (first >= 0) tokens.push_back(first);
    for (int tries = 0; tokens.size() < most && tries < 2 * settings.vocabulary; tries++) {
        const int32_t token = random.below(settings.vocabulary);
        if (taken[static_cast<size_t>(token)]) continue;
        taken[static_cast<size_t>(token)] = true;
        tokens.push_back(token);
    }
    if (input.rarely() && !tokens.empty()) tokens[static_cast<size_t>(input.byte()) % tokens.size()] = input.wild();
    if (input.rarely()) tokens.push_back(tokens.empty() ? input.wild() : tokens[0]);
    tokens.shrink_to_fit();
    return tokens;
}

std::vector<bool> special_tokens(const heedful_settings& settings) {
    std::vector<bool> special(static_cast<size_t>(settings.vocabulary));
    for (int32_t token : {settings.pad, settings.start, settings.end, settings.mask})
        if (token >= 0) special[static_cast<size_t>(token)] = true;
    return special;
}

void put_shortlist(Input& input, heedful_model* model) {
    const heedful_settings& settings = model->settings;
    std::vector<bool> taken = special_tokens(settings);
    const std::vector<int32_t> tokens = distinct_tokens(input, settings, taken, settings.end);
    const int count = input.rarely() ? -input.byte() : static_cast<int>(tokens.size());
    heedful_model_shortlist(model, tokens.data(), count);
}

void put_all(Input& input, heedful_model* model, bool shortlisted) {
    static const float SCALES[] = {0.3f, 0.3f, 0.3f, 1.0f, 20.0f, 0.0f, 1e-45f, 1e19f};
    Random random = input.random();
    const float scale = SCALES[input.below(8)];
    const int lies = input.rarely() ? 1 + input.byte() : 0;
    for (size_t i = 0; i < model->expected.size; i++) {
        const heedful::Expected tensor = model->expected[i];
        const bool lying = lies && !((i + static_cast<size_t>(lies)) % 5);
        if (lying) put(input, model, tensor, random, scale, false);
        put(input, model, tensor, random, scale, true);
    }
    if (shortlisted) put_shortlist(input, model);
    heedful_model_finish(model);
    if (shortlisted && input.rarely()) put_shortlist(input, model);
}

heedful_options options_of(Input& input, const heedful_model* model) {
    heedful_options options = {};
    const int flags = input.byte();
    options.length_penalty = flags & 1 ? 0.6 : 0.0;
    options.temperature = flags & 2 ? 0.7 : 1.0;
    options.top_p = flags & 4 ? 0.9 : 1.0;
    options.repetition_penalty = flags & 8 ? 1.3 : 1.0;
    options.sampling = flags >> 4 & 1;
    options.keep_logits = flags >> 5 & 1;
    options.no_repeat_ngram = (flags >> 6) % 3;
    options.beam = 1 + input.below(7);
    options.nbest = 1 + input.below(options.beam);
    options.min_length = input.below(4);
    options.top_k = input.below(4) ? 0 : input.below(9);
    options.threads = input.rarely() ? 2 + input.below(2) : 1;
    options.sentences = 1 + input.below(6);
    if (input.rarely()) {
        const size_t place = static_cast<size_t>(input.below(13));
        if (place < 4)
            (&options.length_penalty)[place] = input.wild_double();
        else
            (&options.beam)[place - 4] = input.wild();
        // These are allowed, but take too long.
        if (options.beam > 40 && options.beam <= 1 << 12) options.beam = 33;
        if (options.threads > 4 && options.threads <= 64) options.threads = 4;
    }
    if (model->shortlist.used() && !input.rarely()) {
        options.repetition_penalty = 1.0;
        options.no_repeat_ngram = 0;
    }
    return options;
}

std::vector<int32_t> tokens_of(Input& input, int32_t vocabulary, size_t length) {
    std::vector<int32_t> tokens = exactly<int32_t>(length);
    const bool wild = length && input.rarely();
    for (int32_t& token : tokens) token = input.byte() % vocabulary;
    if (wild) tokens[static_cast<size_t>(input.byte()) % length] = input.wild();
    return tokens;
}

// A length of a text; below 0 it has no tokens.
int length_of(Input& input) { return input.rarely() ? (input.rarely() ? 300 : -1 + input.below(70)) : 1 + input.below(12); }

// A request's own tokens, none of which is frequent.
std::vector<int32_t> own_tokens_of(Input& input, const heedful_model* model) {
    std::vector<bool> taken = special_tokens(model->settings);
    for (size_t i = 0; i < model->shortlist.frequent.size; i++) taken[static_cast<size_t>(model->shortlist.frequent[i])] = true;
    return distinct_tokens(input, model->settings, taken, -1);
}

void add(Input& input, heedful_decoder* decoder, int32_t vocabulary) {
    std::vector<heedful_request> requests = exactly<heedful_request>(static_cast<size_t>(input.below(6)));
    std::vector<std::vector<int32_t>> texts(2 * requests.size()), shortlists(requests.size());
    for (size_t i = 0; i < requests.size(); i++) {
        heedful_request& request = requests[i];
        request.index = input.below(8);
        request.source_length = length_of(input);
        request.prefix_length = input.below(4) ? 0 : input.below(6) - 1;
        texts[2 * i] = tokens_of(input, vocabulary, static_cast<size_t>(request.source_length < 0 ? 0 : request.source_length));
        texts[2 * i + 1] = tokens_of(input, vocabulary, static_cast<size_t>(request.prefix_length < 0 ? 0 : request.prefix_length));
        request.source = texts[2 * i].data();
        request.prefix = texts[2 * i + 1].data();
        request.first = input.rarely() ? input.wild() : input.byte() % vocabulary;
        request.longest = input.rarely() ? input.wild() : input.below(14);
        request.seed = static_cast<uint64_t>(input.byte());
        request.number = static_cast<uint64_t>(i);
        if (!decoder->model->shortlist.used()) continue;
        if (!input.rarely()) request.prefix_length = 0;
        shortlists[i] = own_tokens_of(input, decoder->model);
        request.shortlist = shortlists[i].data();
        request.shortlist_length = static_cast<int>(shortlists[i].size());
        // More tokens than the vocabulary has are refused before anything is read.
        if (input.rarely()) request.shortlist_length = input.below(2) ? -input.byte() : vocabulary + 1 + input.byte();
    }
    const int count = requests.empty() && input.rarely() ? -1 : static_cast<int>(requests.size());
    heedful_decoder_add(decoder, requests.data(), count);
}

void look(Input& input, heedful_decoder* decoder) {
    const int64_t index = input.below(8);
    const int most = input.below(20) - 1, count = input.rarely() ? input.wild() : input.below(9);
    std::vector<int32_t> tokens = exactly<int32_t>(static_cast<size_t>(most < 0 ? 0 : most));
    int32_t last;
    float score;
    heedful_decoder_progress(decoder, index, tokens.data(), most, &last, &score);
    const int vocabulary = decoder->model->settings.vocabulary, room = count < vocabulary ? count : vocabulary;
    std::vector<int32_t> likeliest = exactly<int32_t>(static_cast<size_t>(room < 0 ? 0 : room));
    std::vector<float> scores = exactly<float>(likeliest.size());
    heedful_decoder_likeliest(decoder, index, count, likeliest.data(), scores.data());
    heedful_decoder_waiting(decoder);
    heedful_decoder_running(decoder);
    heedful_decoder_steps(decoder);
}

void take_done(heedful_decoder* decoder) {
    int64_t index;
    int32_t sizes[3];
    while (heedful_decoder_done(decoder, &index, sizes)) {
        std::vector<int32_t> heads = exactly<int32_t>(3 * static_cast<size_t>(sizes[0])), tokens = exactly<int32_t>(static_cast<size_t>(sizes[1]));
        std::vector<double> totals = exactly<double>(static_cast<size_t>(sizes[0]));
        std::vector<float> scores = exactly<float>(static_cast<size_t>(sizes[2]));
        heedful_decoder_take(decoder, heads.data(), totals.data(), tokens.data(), scores.data());
        for (int32_t token : tokens)
            if (token < 0 || token >= decoder->model->settings.vocabulary) abort();
    }
}

struct Texts {
    std::vector<int32_t> lengths, tokens;
    size_t sum = 0;
};

Texts texts_of(Input& input, int32_t vocabulary, int count) {
    Texts texts;
    texts.lengths = exactly<int32_t>(static_cast<size_t>(count));
    for (int32_t& length : texts.lengths) {
        length = length_of(input);
        texts.sum += static_cast<size_t>(length < 0 ? 0 : length);
    }
    texts.tokens = tokens_of(input, vocabulary, texts.sum);
    return texts;
}

void score(Input& input, heedful_model* model) {
    const int count = input.below(4), threads = input.rarely() ? 2 : input.below(2);
    const Texts sources = texts_of(input, model->settings.vocabulary, count);
    const Texts targets = texts_of(input, model->settings.vocabulary, count);
    size_t weights = 0;
    for (size_t i = 0; i < sources.lengths.size(); i++)
        if (sources.lengths[i] >= 0 && targets.lengths[i] >= -1)
            weights += static_cast<size_t>(sources.lengths[i]) * static_cast<size_t>(targets.lengths[i] + 1);
    std::vector<float> scores = exactly<float>(targets.sum + static_cast<size_t>(count)), alignment = exactly<float>(weights);
    heedful_score(model, threads, count, sources.tokens.data(), sources.lengths.data(), targets.tokens.data(),
                  targets.lengths.data(), scores.data(), input.below(2) ? alignment.data() : nullptr);
}

void encode(Input& input, heedful_model* model) {
    const int count = input.below(4), threads = input.rarely() ? 2 : input.below(2);
    const int pooling = input.below(4) - 1, head = input.below(2);
    const Texts texts = texts_of(input, model->settings.vocabulary, count);
    std::vector<int32_t> segments = tokens_of(input, 2, texts.sum);
    const size_t rows = pooling ? static_cast<size_t>(count) : texts.sum;
    const int width = head ? model->output.outputs : model->settings.width;
    std::vector<float> output = exactly<float>(rows * static_cast<size_t>(width));
    heedful_encode(model, threads, count, texts.tokens.data(), input.below(2) ? segments.data() : nullptr,
                   texts.lengths.data(), pooling, head, output.data());
}

void use_instruction_set(Input& input) {
    static const char* const NAMES[] = {"portable", "avx2", "avx512-vnni", "sse9"};
    const int number = input.byte();
    heedful_use_instruction_set(number >= 192 ? "avx-vnni" : NAMES[number % 4]);
}

void calls(Input& input, heedful_model* model, heedful_decoder** decoders) {
    const int32_t vocabulary = model->settings.vocabulary;
    for (int number = 0; input.left && number < 60; number++) {
        const int call = input.below(16);
        heedful_decoder*& decoder = decoders[input.below(8) == 7];
        if (call < 10 && !decoder) {
            const heedful_options options = options_of(input, model);
            decoder = heedful_decoder_new(model, &options);
            continue;
        }
        switch (call) {
            case 0:
            case 1: add(input, decoder, vocabulary); break;
            case 2:
            case 3: heedful_decoder_step(decoder); break;
            case 4: heedful_decoder_run(decoder, input.rarely() ? -1 : 1 + input.below(3)); break;
            case 5: heedful_decoder_cancel(decoder, input.below(8)); break;
            case 6:
            case 7: look(input, decoder); break;
            case 8: take_done(decoder); break;
            case 9:
                heedful_decoder_free(decoder);
                decoder = nullptr;
                break;
            case 10: score(input, model); break;
            case 11: encode(input, model); break;
            case 12: use_instruction_set(input); break;
            case 13: put_again(input, model); break;
            case 14: heedful_model_finish(model); break;
            case 15: __atomic_store_n(&allocations_left, input.below(4) ? -1 : input.byte(), __ATOMIC_RELAXED); break;
        }
    }
}

// One bit at a time.
uint32_t plain_checksum(const uint8_t* bytes, size_t count, uint32_t sum) {
    sum = ~sum;
    for (size_t i = 0; i < count; i++) {
        sum ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
    }
    return ~sum;
}

// The checksum of all bytes but the first ones, in one call and in two, from memory that ends where they do.
void add_up(const uint8_t* data, size_t size) {
    if (!size) return;
    const size_t first = data[0] % size, rest = size - first, middle = data[size - 1] % (rest + 1);
    std::vector<uint8_t> bytes(data + first, data + size);
    bytes.shrink_to_fit();
    const uint32_t before = data[size / 2] * 0x01010101u;
    uint32_t whole = before, parts = before;
    if (heedful_checksum(bytes.data(), rest, &whole)) return;  // this processor has no instructions for it
    heedful_checksum(bytes.data(), middle, &parts);
    uint32_t second = 0;
    heedful_checksum(bytes.data() + middle, rest - middle, &second);
    const uint32_t joined = heedful_checksum_joined(parts, second, rest - middle);
    heedful_checksum(bytes.data() + middle, rest - middle, &parts);
    if (whole != plain_checksum(bytes.data(), rest, before) || parts != whole || joined != whole) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Input input = {data, size};
    allocations_left = input.rarely() ? input.byte() : -1;
    use_instruction_set(input);
    bool shortlisted;
    const heedful_settings settings = settings_of(input, shortlisted);
    if (heedful_model* model = heedful_model_new(&settings)) {
        // Allowed sizes may be large, and take too long here.
        int64_t numbers = int64_t(settings.max_length) * settings.width;
        for (size_t i = 0; i < model->expected.size; i++) numbers += fuzz::size_of(model->expected[i]);
        heedful_decoder* decoders[2] = {};
        if (numbers < 1 << 18) {
            if (!input.rarely()) put_all(input, model, shortlisted);
            calls(input, model, decoders);
        }
        // A decoder may be freed after its model.
        heedful_decoder_free(decoders[0]);
        heedful_model_free(model);
        heedful_decoder_free(decoders[1]);
    }
    allocations_left = -1;
    add_up(data, size);
    return 0;
}
