#include "hw/kernel/instruction_sets.h"

#include <hwy/targets.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "base/printable.h"

namespace systole::hw {
namespace {

constexpr std::int64_t kAvx512 = HWY_AVX3 | HWY_AVX3_DL;
std::int64_t forbidden = 0;  ///< of Highway's targets

}  // namespace

void limit_instruction_sets() {
  const char* const variable = std::getenv("SYSTOLE_SIMD");
  const std::string newest = variable == nullptr ? "avx512" : variable;
  if (newest == "avx512") {
    forbidden = 0;
  } else if (newest == "avx2") {
    forbidden = kAvx512;
  } else if (newest == "ssse3") {
    forbidden = kAvx512 | HWY_AVX2 | HWY_SSE4;
  } else {
    throw InputError("environment: SYSTOLE_SIMD: found '" + printable(newest, 40) +
                     "', expected ssse3, avx2 or avx512");
  }
  hwy::DisableTargets(forbidden);
}

bool allows_avx512() { return (forbidden & kAvx512) == 0; }

}  // namespace systole::hw
