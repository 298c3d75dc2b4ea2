#pragma once

/// Which instruction sets of the host its kernels may use. All give the same bits; a user who
/// doubts that compares them.
namespace systole::hw {

/// Keeps kernels from what is newer than the environment variable SYSTOLE_SIMD says: "ssse3",
/// "avx2", "avx512" (AMX included; the default). To be called before the first kernel runs. Throws
/// InputError for another word.
void limit_instruction_sets();

/// Whether kernels may use AVX-512 and what came after it, if the host has it.
[[nodiscard]] bool allows_avx512();

}  // namespace systole::hw
