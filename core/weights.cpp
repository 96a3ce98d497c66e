// From tensors to packed weights, some rows at a time.
#include "decoder.h"

#include <math.h>

#include <initializer_list>

namespace heedful {

static size_t room_for_linear(const Linear& linear, bool int8) {
    const size_t padded = size_t(linear.panels()) * PANEL;
    if (!int8) return WeightMemory::room_for(padded * linear.inputs, sizeof(float));
    return WeightMemory::room_for(padded * linear.byte_stride(), 1) + 2 * WeightMemory::room_for(padded, sizeof(float));
}

static bool has_sinusoids(const Stack& stack) {
    const int scheme = stack.settings.positions;
    return stack.settings.layers && (scheme == HEEDFUL_SINUSOIDAL || scheme == HEEDFUL_SINUSOID_HALVES);
}

static size_t size_of_table(const heedful_model& model) {
    return size_t(model.settings.max_length + 1) * model.settings.width;
}

// Bytes of everything that is taken from the model's memory.
static size_t size_of_weights(const heedful_model& model) {
    size_t bytes = 0;
    for (size_t i = 0; i < model.expected.size; i++) {
        const Expected& each = model.expected[i];
        bytes += each.linear ? room_for_linear(*each.linear, model.settings.int8)
                             : WeightMemory::room_for(rounded_up(size_t(each.rows) * each.columns, PANEL), sizeof(float));
    }
    for (const Stack* stack : {&model.encoder, &model.decoder})
        if (has_sinusoids(*stack)) bytes += WeightMemory::room_for(size_of_table(model), sizeof(float));
    return bytes;
}

// Memory for a tensor; if it came before and was refused, the memory from then.
template <typename T> static void take_memory(heedful_model& model, T*& memory, size_t count) {
    if (!memory) memory = model.memory.take<T>(count, [&] { return size_of_weights(model); });
}

// PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i + 1) = cos of the same (paper, 3.5), or all sines first.
void sinusoid_row(int64_t position, int width, bool halves, float* row) {
    int pairs = (width + 1) / 2;
    for (int i = 0; i < pairs; i++) {
        double angle = static_cast<double>(position) * exp(2 * i * (-log(10000.0) / width));
        row[halves ? i : 2 * i] = static_cast<float>(sin(angle));
        int place = halves ? pairs + i : 2 * i + 1;
        if (place < width) row[place] = static_cast<float>(cos(angle));
    }
}

// Sines and cosines for positions up to the usual length; later ones are computed as needed.
void make_sinusoids(heedful_model& model, Stack& stack) {
    if (!has_sinusoids(stack) || stack.table) return;
    const int width = model.settings.width;
    stack.settings.position_rows = model.settings.max_length + 1;
    take_memory(model, stack.table, size_of_table(model));
    for (int row = 0; row < stack.settings.position_rows; row++)
        sinusoid_row(row, width, stack.settings.positions == HEEDFUL_SINUSOID_HALVES, stack.table + size_t(row) * width);
}

static float half_as_float(uint16_t bits) {
    const uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = bits >> 10 & 31, mantissa = bits & 1023;
    float amount;
    if (exponent == 31)
        amount = mantissa ? NAN : INFINITY;
    else if (exponent)
        amount = ldexpf(static_cast<float>(1024 + mantissa), static_cast<int>(exponent) - 25);
    else
        amount = ldexpf(static_cast<float>(mantissa), -24);
    return sign ? -amount : amount;
}

static float number_at(const void* data, int type, size_t place) {
    const char* bytes = static_cast<const char*>(data);
    uint32_t word = 0;
    float number;
    double wide;
    uint16_t half;
    switch (type) {
        case HEEDFUL_F32: memcpy(&number, bytes + 4 * place, 4); return number;
        case HEEDFUL_F64: memcpy(&wide, bytes + 8 * place, 8); return static_cast<float>(wide);
        case HEEDFUL_F16: memcpy(&half, bytes + 2 * place, 2); return half_as_float(half);
        default:
            memcpy(&half, bytes + 2 * place, 2);
            word = uint32_t(half) << 16;
            memcpy(&number, &word, 4);
            return number;
    }
}

// Reads one row of a tensor as floats, which must be finite; returns the largest absolute value.
static float read_row(const InstructionSet& set, const char* name, const void* data, int type, size_t first, int count,
                      float* row) {
    if (type == HEEDFUL_F32)
        memcpy(row, static_cast<const char*>(data) + 4 * first, size_t(count) * 4);
    else
        for (int i = 0; i < count; i++) row[i] = number_at(data, type, first + i);
    const uint32_t bits = set.largest_amount(row, count);
    if (bits >= 0x7f800000u)
        fail("%.80s holds a number that is infinite or NaN: the weights are damaged, or training diverged", name);
    float largest;
    memcpy(&largest, &bits, sizeof largest);
    return largest;
}

static void pack_fp32_row(Linear& linear, int output, const float* row) {
    float* panel = linear.numbers + size_t(output / PANEL) * PANEL * linear.inputs;
    for (int k = 0; k < linear.inputs; k++) panel[size_t(k) * PANEL + output % PANEL] = row[k];
}

static void make_linear(heedful_model& model, Linear& linear, const char* name) {
    const size_t padded = size_t(linear.panels()) * PANEL;
    if (!model.settings.int8) return take_memory(model, linear.numbers, padded * linear.inputs);
    if (linear.inputs > 1 << 16) fail("%s has %d inputs, too many for int8", name, linear.inputs);
    take_memory(model, linear.bytes, padded * linear.byte_stride());
    take_memory(model, linear.scales, padded);
    take_memory(model, linear.weight_sums, padded);
}

static void put_linear(heedful_model& model, Linear& linear, const char* name, int type, int first, int last,
                       const void* data) {
    make_linear(model, linear, name);
    float* row = new_zeros<float>(linear.inputs);
    int failed = guarded([&] {
        for (int output = first; output < last; output++) {
            const size_t place = size_t(output - first) * linear.inputs;
            const float largest = read_row(*model.set, name, data, type, place, linear.inputs, row);
            if (model.settings.int8)
                model.set->pack_int8_row(linear, output, row, largest);
            else
                pack_fp32_row(linear, output, row);
        }
    });
    free_zeros(row);
    if (failed) fail_again();
}

static Expected& expected_of(heedful_model& model, const char* name, const int64_t* shape, int axes) {
    Expected* found = nullptr;
    for (Expected& each : model.expected)
        if (!strcmp(each.name, name)) found = &each;
    if (!found) fail("%.80s is not part of the model", name);
    bool fits = axes == found->axes;
    for (int axis = 0; fits && axis < axes; axis++) fits = shape[axis] == found->shape[axis];
    if (!fits) fail("%.80s has another shape than the settings say", name);
    return *found;
}

void put_rows(heedful_model& model, const char* name, int type, const int64_t* shape, int axes, int64_t first,
              const void* data, uint64_t bytes) {
    static const int SIZES[] = {4, 2, 2, 8};
    if (type < HEEDFUL_F32 || type > HEEDFUL_F64) fail("%.80s has an unknown type", name);
    Expected& tensor = expected_of(model, name, shape, axes);
    if (tensor.rows_found == tensor.rows) fail("%.80s comes twice", name);
    if (first != tensor.rows_found) fail("the rows of %.80s do not come in their order", name);
    const uint64_t row_bytes = static_cast<uint64_t>(tensor.columns) * static_cast<uint64_t>(SIZES[type]);
    const uint64_t rows = bytes / row_bytes;
    if (!rows || bytes % row_bytes || rows > static_cast<uint64_t>(tensor.rows - first))
        fail("%.80s has %llu bytes, not those of its shape", name, (unsigned long long)bytes);
    const int64_t last = first + static_cast<int64_t>(rows);
    if (tensor.linear) {
        put_linear(model, *tensor.linear, name, type, static_cast<int>(first), static_cast<int>(last), data);
    } else {
        float** to = tensor.plain ? tensor.plain : tensor.bias_of;
        take_memory(model, *to, rounded_up(size_t(tensor.rows) * tensor.columns, PANEL));
        for (int64_t row = first; row < last; row++)
            read_row(*model.set, name, data, type, size_t(row - first) * tensor.columns,
                     static_cast<int>(tensor.columns), *to + size_t(row) * tensor.columns);
    }
    tensor.rows_found = last;
}

}  // namespace heedful
