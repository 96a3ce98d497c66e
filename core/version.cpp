#include "interface.h"

int heedful_abi_version(void) { return 1; }

const char *heedful_instruction_set(void) { return "portable"; }
