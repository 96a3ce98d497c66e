// The set is null if the compiler does not know these instructions.
#include "decoder.h"

namespace heedful {

extern const InstructionSet* const avx_vnni_set;

}  // namespace heedful

#if defined(__AVXVNNI__)
#define ISA avx_vnni
#include "engine.h"

static const heedful::InstructionSet set = heedful::ISA::make_instruction_set("avx-vnni");
const heedful::InstructionSet* const heedful::avx_vnni_set = &set;
#else
const heedful::InstructionSet* const heedful::avx_vnni_set = nullptr;
#endif
