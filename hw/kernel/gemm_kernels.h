/// Entry points of the backends of hw/kernel/gemm.h. Sizes are at least 1 and pitches are
/// valid.
#pragma once

#include "hw/kernel/gemm.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define SYSTOLE_GEMM_X86 1
#else
#define SYSTOLE_GEMM_X86 0
#endif

namespace systole::hw::gemm_detail {

void gemm_reference(const GemmArgs& args);

void gemm_highway(const GemmArgs& args);
/// Highway's name for the instruction set gemm_highway() uses, such as AVX3 or NEON.
[[nodiscard]] const char* highway_target();

[[nodiscard]] bool vnni_usable();
void gemm_vnni(const GemmArgs& args);

/// Also asks the operating system for the tile state, which is granted per process.
[[nodiscard]] bool amx_usable();
void gemm_amx(const GemmArgs& args);

}  // namespace systole::hw::gemm_detail
