// All computation for one instruction set: ISA is its name, and each set has a file that includes this one.
#pragma once

#include "sequences.h"

namespace heedful {
namespace ISA {

inline Workspace* new_workspace() { return reinterpret_cast<Workspace*>(new_zeros<DecodingWork>(1)); }

inline void free_workspace(Workspace* workspace) {
    reinterpret_cast<DecodingWork*>(workspace)->free();
    free_zeros(workspace);
}

inline InstructionSet make_instruction_set(const char* name) {
    return {name, largest_amount, pack_int8_row, new_workspace, free_workspace, prefill, step, score, encode};
}

}  // namespace ISA
}  // namespace heedful
