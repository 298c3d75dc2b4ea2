/// Exact int8 matrix products on the host: plain loops, portable SIMD, AVX512-VNNI, AMX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace systole::hw {

/// One product C[m x n] (+)= A[m x k] * B[k x n]. Sums are int32 and wrap around, like the
/// accumulators of the array. All sizes may be 0; k == 0 with `accumulate` off clears C. Nothing
/// outside the given rows is read or written; no alignment is needed. C overlaps neither A nor B.
struct GemmArgs {
  const void* a = nullptr;  ///< int8, or uint8 when a_unsigned; row-major
  std::size_t lda = 0;      ///< bytes from one row of A to the next, >= its length
  bool a_unsigned = false;
  const std::int8_t* b = nullptr;
  std::size_t ldb = 0;        ///< bytes from one stored row of B to the next, >= its length
  bool b_transposed = false;  ///< B is stored as [n x k]: each of its columns is contiguous
  bool b_int4 = false;        ///< B has pairs of int4 along k (hw/number/int4.h)
  std::int32_t* c = nullptr;
  std::size_t ldc = 0;  ///< elements from one row of C to the next, >= n
  std::size_t m = 0;
  std::size_t n = 0;
  std::size_t k = 0;
  bool accumulate = false;  ///< add to C instead of overwriting it
  bool a_int4 = false;      ///< A has pairs of int4 along k (hw/number/int4.h); not with a_unsigned
};

/// Implementations, slowest first. All give the same bits.
enum class GemmBackend {
  kReference,  ///< plain loops
  kHighway,    ///< portable SIMD, best target chosen at run time
  kVnni,       ///< AVX512-VNNI
  kAmx,        ///< AMX-INT8; hands products too small for its tiles to kVnni
};

inline constexpr GemmBackend kGemmBackends[] = {GemmBackend::kReference, GemmBackend::kHighway,
                                                GemmBackend::kVnni, GemmBackend::kAmx};

/// The name SYSTOLE_GEMM uses: reference, highway, vnni, amx.
[[nodiscard]] const char* gemm_backend_name(GemmBackend backend);

/// Inverse of gemm_backend_name(); an unknown name throws InputError.
[[nodiscard]] GemmBackend gemm_backend_from_name(std::string_view name);

/// Whether this build, this processor and this operating system can run the backend.
[[nodiscard]] bool gemm_supported(GemmBackend backend);

/// The backend named by the environment variable SYSTOLE_GEMM, or the fastest supported one. The
/// answer is fixed at the first call. An unknown or unsupported name throws InputError.
[[nodiscard]] GemmBackend default_gemm_backend();

/// Computes the product with default_gemm_backend(). Safe to call from several threads on
/// different C. Throws std::invalid_argument if a pitch is shorter than its row.
void gemm(const GemmArgs& args);

/// As above with a given backend; throws std::invalid_argument if it is not supported here.
void gemm(const GemmArgs& args, GemmBackend backend);

}  // namespace systole::hw
