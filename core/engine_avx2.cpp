#define ISA avx2
#include "engine.h"

namespace heedful {

extern const InstructionSet avx2_set;
const InstructionSet avx2_set = ISA::make_instruction_set("avx2");

}  // namespace heedful
