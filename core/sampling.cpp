// Draws a token, by its column, from a row of logits: from all, the `top_k` likeliest, or those that make up `top_p`.
#include "decoder.h"

namespace heedful {

int likeliest_of(const float* logits, int columns, int count, Candidate* found) {
    int num = 0;
    for (int column = 0; column < columns; column++) {
        if (!(logits[column] > (num < count ? -INFINITY : found[count - 1].logit))) continue;
        int place = num < count ? num++ : count - 1;
        for (; place > 0 && found[place - 1].logit < logits[column]; place--) found[place] = found[place - 1];
        found[place] = {logits[column], column};
    }
    return num;
}

static int compare(const void* first, const void* second) {
    const Candidate &one = *static_cast<const Candidate*>(first), &two = *static_cast<const Candidate*>(second);
    if (one.logit != two.logit) return one.logit > two.logit ? -1 : 1;
    return one.column < two.column ? -1 : 1;
}

static double weight_of(float logit, float peak, double temperature) { return exp((double(logit) - peak) / temperature); }

// The column at which the running sum of the weights first exceeds that share of their sum.
static int pick(const Candidate* from, size_t count, float peak, double temperature, double share) {
    double total = 0.0, passed = 0.0;
    for (size_t i = 0; i < count; i++) total += weight_of(from[i].logit, peak, temperature);
    const double target = share * total;
    int last = from[0].column;
    for (size_t i = 0; i < count; i++) {
        const double weight = weight_of(from[i].logit, peak, temperature);
        passed += weight;
        if (weight > 0.0) last = from[i].column;
        if (passed > target) return from[i].column;
    }
    return last;
}

int draw(const heedful_options& options, const float* logits, int columns, double uniform, Array<Candidate>& from) {
    from.size = 0;
    from.reserve(columns);
    float peak = -INFINITY;
    for (int column = 0; column < columns; column++) {
        peak = logits[column] > peak ? logits[column] : peak;
        if (logits[column] > -INFINITY) from.add({logits[column], column});
    }
    size_t count = from.size;
    if (!count) return -1;
    const size_t top_k = options.top_k > 0 ? options.top_k : count;
    if (top_k < count || options.top_p < 1.0) qsort(from.data, count, sizeof(Candidate), compare);
    if (top_k < count) count = top_k;
    if (options.top_p < 1.0) {
        double total = 0.0, inside = 0.0;
        for (size_t i = 0; i < count; i++) total += weight_of(from[i].logit, peak, options.temperature);
        size_t kept = 0;
        for (; kept < count && inside < options.top_p * total; kept++)
            inside += weight_of(from[kept].logit, peak, options.temperature);
        count = kept > 0 ? kept : 1;
    }
    return pick(from.data, count, peak, options.temperature, uniform);
}

}  // namespace heedful
