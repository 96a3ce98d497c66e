// The weights of a linear layer, in the order in which the products read them.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace heedful {

// Columns per panel, and inputs per group: a 512-bit register holds the bytes of one group for a whole panel.
constexpr int PANEL = 16, GROUP = 4;

// y = x W + b. Weights are stored as panels of 16 outputs, each of which runs through all inputs: one at a time in
// fp32, four at a time in int8.
struct Linear {
    int inputs = 0, outputs = 0;
    int8_t* bytes = nullptr;     // int8: [panel][group][16 outputs][4 inputs]
    float* numbers = nullptr;    // fp32: [panel][input][16 outputs]
    float* scales = nullptr;     // int8: the value of 1 for each output's whole numbers
    int32_t* weight_sums = nullptr;  // int8: per output; values have a zero point, which is added this often
    float* bias = nullptr;       // null if there is none

    int panels() const { return (outputs + PANEL - 1) / PANEL; }
    int groups() const { return (inputs + GROUP - 1) / GROUP; }
    int byte_stride() const { return groups() * GROUP; }
    size_t weight_bytes() const { return size_t(panels()) * PANEL * (bytes ? byte_stride() : inputs * int(sizeof(float))); }
};

}  // namespace heedful
