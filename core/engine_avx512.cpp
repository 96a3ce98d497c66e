#define ISA avx512
#include "engine.h"

namespace heedful {

extern const InstructionSet avx512_set;
const InstructionSet avx512_set = ISA::make_instruction_set("avx512-vnni");

}  // namespace heedful
