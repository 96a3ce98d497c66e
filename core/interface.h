// The engine's plain C interface, which heedful/core loads with ctypes.
#pragma once

#if defined(_WIN32)
#define HEEDFUL_API extern "C" __declspec(dllexport)
#else
#define HEEDFUL_API extern "C" __attribute__((visibility("default")))
#endif

// Grows with every change of this interface; heedful/core/library.py expects the same number.
HEEDFUL_API int heedful_abi_version(void);

// The instructions that are used on this machine, as a word: "avx512-vnni", "avx2", "portable".
HEEDFUL_API const char *heedful_instruction_set(void);
