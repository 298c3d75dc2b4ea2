/// AMX-INT8: tdpbssd and tdpbusd multiply tiles of bytes exactly, without saturating.
#include "hw/kernel/gemm_kernels.h"

#if SYSTOLE_GEMM_X86 && defined(__linux__)

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hw/kernel/gemm_amx_kernel.h"

namespace systole::hw::gemm_detail {
namespace {

/// The 64-byte operand of ldtilecfg: palette 1, all eight tiles 16 rows of 64 bytes.
struct TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

/// The tile registers. Own assembly instead of the compiler's intrinsics, for two reasons: those of
/// g++ 12 do not say which memory they read, so that it may drop or delay the stores that packed
/// the operands; and they need literal tile numbers.
struct HardwareTiles {
  static void configure(const TileConfig& config) {
    asm volatile("ldtilecfg %0" ::"m"(config) : "memory");
  }
  static void release() { asm volatile("tilerelease" ::: "memory"); }

  template <int kTile>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
  }
  template <int kTile>
  static void load(const void* from, std::size_t pitch) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(pitch), "i"(kTile) : "memory");
  }
  template <int kTile>
  static void store(void* to, std::size_t pitch) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(pitch), "i"(kTile) : "memory");
  }
  template <int kC, int kA, int kB, bool kUnsigned>
  static void dot() {
    if constexpr (kUnsigned) {
      asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
    } else {
      asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
    }
  }
};

/// Below this a product leaves most of a tile empty.
constexpr std::size_t kSmallestUse = kTileRows;

[[nodiscard]] bool processor_has_amx_int8() {
  constexpr unsigned kAmxTile = 1U << 24;
  constexpr unsigned kAmxInt8 = 1U << 25;
  constexpr unsigned kOsXsave = 1U << 27;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kOsXsave) == 0) return false;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (edx & kAmxTile) != 0 && (edx & kAmxInt8) != 0;
}

/// Whether the operating system saves the tile state (XCR0 bits 17 and 18) and lets us use it.
[[nodiscard]] bool system_grants_tiles() {
  unsigned low = 0;
  unsigned high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low >> 17 & 3U) != 3U) return false;
  constexpr long kArchReqXcompPerm = 0x1023;
  constexpr long kXfeatureTileData = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureTileData) == 0;
}

}  // namespace

SYSTOLE_AVX512_VNNI void store_amx_block(const std::int32_t* from, std::size_t rows,
                                         std::size_t columns, std::int32_t* c, std::size_t ldc,
                                         bool add) {
  for (std::size_t i = 0; i < rows; ++i, from += kAmxBlock, c += ldc) {
    for (std::size_t j = 0; j < columns; j += kLanes) {
      const std::size_t left = columns - j;
      const auto mask = static_cast<__mmask16>(left >= kLanes ? 0xffffU : (1U << left) - 1U);
      __m512i value = _mm512_load_si512(from + j);
      if (add) value = _mm512_add_epi32(value, _mm512_maskz_loadu_epi32(mask, c + j));
      _mm512_mask_storeu_epi32(c + j, mask, value);
    }
  }
}

bool amx_usable() { return vnni_usable() && processor_has_amx_int8() && system_grants_tiles(); }

void gemm_amx(const GemmArgs& args) {
  if (args.m < kSmallestUse || args.n < kSmallestUse || args.k < kTileBytes) {
    return gemm_vnni(args);
  }
  AmxKernel<HardwareTiles> kernel(args, thread_scratch<AmxScratch>());
  HardwareTiles::configure(TileConfig{});
  multiply_blocked(args, kernel);
  HardwareTiles::release();
}

}  // namespace systole::hw::gemm_detail

#else

namespace systole::hw::gemm_detail {

bool amx_usable() { return false; }
void gemm_amx(const GemmArgs& args) { gemm_reference(args); }

}  // namespace systole::hw::gemm_detail

#endif
