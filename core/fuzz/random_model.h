// Models with random weights, for the programs here.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <vector>

#include "../model.h"

namespace fuzz {

struct Random {
    uint64_t state;
    uint32_t next() {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<uint32_t>(state >> 33);
    }
    int below(int limit) { return static_cast<int>(next() % static_cast<uint32_t>(limit)); }
    float around_zero() { return static_cast<float>(next() % 2001) / 1000.0f - 1.0f; }
};

inline heedful_stack small_stack(int layers, int width) {
    heedful_stack stack = {};
    stack.layers = layers;
    stack.heads = stack.key_value_heads = 1;
    stack.key_width = stack.value_width = width;
    stack.inner_width = 2 * width;
    stack.norm_epsilon = stack.embedding_norm_epsilon = 1e-5f;
    stack.embedding_scale = stack.score_scale = 1.0f;
    return stack;
}

inline int64_t size_of(const heedful::Expected& tensor) {
    return tensor.shape[0] * (tensor.axes > 1 ? tensor.shape[1] : 1);
}

inline std::vector<float> random_numbers(const heedful::Expected& tensor, Random& random, float scale) {
    std::vector<float> numbers(static_cast<size_t>(size_of(tensor)));
    for (float& number : numbers) number = scale * random.around_zero();
    return numbers;
}

// Puts all tensors that a model expects, and finishes it.
inline void complete(heedful_model* model, Random& random, float scale) {
    for (size_t i = 0; i < model->expected.size; i++) {
        const heedful::Expected& tensor = model->expected[i];
        const std::vector<float> numbers = random_numbers(tensor, random, scale);
        if (heedful_model_put(model, tensor.name, HEEDFUL_F32, tensor.shape, tensor.axes, 0, numbers.data(), 4 * numbers.size()))
            abort();
    }
    if (heedful_model_finish(model)) abort();
}

}  // namespace fuzz
