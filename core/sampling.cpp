// Drawing a token from a row of logits: from all, from the `top_k` likeliest, or the likeliest that make up `top_p`.
#include "decoder.h"

namespace heedful {

int likeliest_of(const float* logits, int vocabulary, int count, Candidate* found) {
    int num = 0;
    for (int token = 0; token < vocabulary; token++) {
        if (!(logits[token] > (num < count ? -INFINITY : found[count - 1].logit))) continue;
        int place = num < count ? num++ : count - 1;
        for (; place > 0 && found[place - 1].logit < logits[token]; place--) found[place] = found[place - 1];
        found[place] = {logits[token], token};
    }
    return num;
}

static int compare(const void* first, const void* second) {
    const Candidate &one = *static_cast<const Candidate*>(first), &two = *static_cast<const Candidate*>(second);
    if (one.logit != two.logit) return one.logit > two.logit ? -1 : 1;
    return one.token < two.token ? -1 : 1;
}

static double weight_of(float logit, float peak, double temperature) { return exp((double(logit) - peak) / temperature); }

// The token at which the running sum of the weights first passes that share of their sum.
static int32_t pick(const Candidate* from, size_t count, float peak, double temperature, double share) {
    double total = 0.0, passed = 0.0;
    for (size_t i = 0; i < count; i++) total += weight_of(from[i].logit, peak, temperature);
    const double target = share * total;
    int32_t last = from[0].token;
    for (size_t i = 0; i < count; i++) {
        const double weight = weight_of(from[i].logit, peak, temperature);
        passed += weight;
        if (weight > 0.0) last = from[i].token;
        if (passed > target) return from[i].token;
    }
    return last;
}

int32_t draw(const heedful_options& options, const float* logits, int vocabulary, double uniform) {
    Array<Candidate> tokens = {};
    tokens.reserve(vocabulary);
    float peak = -INFINITY;
    for (int token = 0; token < vocabulary; token++) {
        peak = logits[token] > peak ? logits[token] : peak;
        if (logits[token] > -INFINITY) tokens.add({logits[token], token});
    }
    size_t count = tokens.size;
    if (!count) {
        tokens.free();
        fail("no token is left to draw from");
    }
    const size_t top_k = options.top_k > 0 ? options.top_k : count;
    if (top_k < count || options.top_p < 1.0) qsort(tokens.data, count, sizeof(Candidate), compare);
    if (top_k < count) count = top_k;
    if (options.top_p < 1.0) {
        double total = 0.0, inside = 0.0;
        for (size_t i = 0; i < count; i++) total += weight_of(tokens[i].logit, peak, options.temperature);
        size_t kept = 0;
        for (; kept < count && inside < options.top_p * total; kept++)
            inside += weight_of(tokens[kept].logit, peak, options.temperature);
        count = kept > 0 ? kept : 1;
    }
    const int32_t token = pick(tokens.data, count, peak, options.temperature, uniform);
    tokens.free();
    return token;
}

}  // namespace heedful
