// A separate vocabulary for each sentence: the frequent tokens, which all sentences share, and those that its request
// names. The columns of its logits stand for these tokens, in this order.
#pragma once

#include "interface.h"
#include "linear.h"
#include "memory.h"

namespace heedful {

// Some outputs of a linear layer, packed as a separate layer.
struct GatheredLinear {
    Linear linear;  // what it points to is in the arrays
    Array<int8_t> bytes;
    Array<float> numbers, scales, bias;
    Array<int32_t> weight_sums;

    void gather(const Linear& from, const int32_t* outputs, int count);
    void free();
};

// What all sentences of a model share; empty if the model has no shortlist.
struct Shortlist {
    Array<int32_t> frequent;  // the end comes first, and no other special token is among them
    Array<uint8_t> barred;    // [token]: special or frequent, so not allowed in a request's list
    GatheredLinear output;    // of the frequent tokens

    INLINED bool used() const { return frequent.size > 0; }
    void free();
};

void set_shortlist(heedful_model& model, const int32_t* frequent, int count);
// Fails for a list that a request must not have; `named` is scratch memory to mark tokens in.
void check_own_tokens(const heedful_model& model, const heedful_request& request, Array<uint8_t>& named);

}  // namespace heedful
