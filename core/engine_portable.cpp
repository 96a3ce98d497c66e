#define ISA portable
#include "engine.h"

namespace heedful {

extern const InstructionSet portable_set;
const InstructionSet portable_set = ISA::make_instruction_set("portable");

}  // namespace heedful
