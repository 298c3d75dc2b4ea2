#include "hw/kernel/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/kernel/gemm_kernels.h"
#include "hw/kernel/instruction_sets.h"
#include "hw/number/int4.h"

namespace systole::hw {
namespace {

constexpr const char* kVariable = "SYSTOLE_GEMM";

void check_pitches(const GemmArgs& args) {
  if (args.a_int4 && args.a_unsigned) throw std::invalid_argument("gemm: int4 of A has a sign");
  if (args.lda < stored_bytes(args.k, args.a_int4))
    throw std::invalid_argument("gemm: lda is less than k");
  const std::size_t depth = stored_bytes(args.k, args.b_int4);
  if (args.ldb < (args.b_transposed ? depth : args.n)) {
    throw std::invalid_argument("gemm: ldb is less than a stored row of B");
  }
  if (args.ldc < args.n) throw std::invalid_argument("gemm: ldc is less than n");
}

/// The same with operands of int8.
void expanded_gemm(const GemmArgs& args, GemmBackend backend) {
  GemmArgs expanded = args;
  std::vector<std::int8_t> activations, weights;
  if (args.a_int4) {
    activations.resize(args.m * args.k);
    expand_int4(static_cast<const std::uint8_t*>(args.a), args.lda, args.m, args.k, true,
                activations.data(), args.k);
    expanded.a = activations.data();
    expanded.lda = args.k;
    expanded.a_int4 = false;
  }
  if (args.b_int4) {
    const std::size_t rows = args.b_transposed ? args.n : args.k;
    const std::size_t cols = args.b_transposed ? args.k : args.n;
    weights.resize(rows * cols);
    expand_int4(reinterpret_cast<const std::uint8_t*>(args.b), args.ldb, rows, cols,
                args.b_transposed, weights.data(), cols);
    expanded.b = weights.data();
    expanded.ldb = cols;
    expanded.b_int4 = false;
  }
  gemm(expanded, backend);
}

GemmBackend backend_from_environment() {
  const char* name = std::getenv(kVariable);
  if (name != nullptr) {
    GemmBackend backend = GemmBackend::kReference;
    try {
      backend = gemm_backend_from_name(name);
    } catch (const InputError& error) {
      throw InputError(std::string("environment: ") + kVariable + ": " + error.what());
    }
    if (gemm_supported(backend)) return backend;
    throw InputError(std::string("environment: ") + kVariable + ": this host cannot run '" + name +
                     "', expected a backend it supports");
  }
  GemmBackend best = GemmBackend::kReference;
  for (const GemmBackend backend : kGemmBackends) {
    if (gemm_supported(backend)) best = backend;
  }
  return best;
}

}  // namespace

const char* gemm_backend_name(GemmBackend backend) {
  switch (backend) {
    case GemmBackend::kReference:
      return "reference";
    case GemmBackend::kHighway:
      return "highway";
    case GemmBackend::kVnni:
      return "vnni";
    case GemmBackend::kAmx:
      return "amx";
  }
  throw std::invalid_argument("gemm_backend_name: not a backend");
}

GemmBackend gemm_backend_from_name(std::string_view name) {
  for (const GemmBackend backend : kGemmBackends) {
    if (name == gemm_backend_name(backend)) return backend;
  }
  throw InputError("GEMM backend: unknown name '" + std::string(name) +
                   "', expected reference, highway, vnni or amx");
}

bool gemm_supported(GemmBackend backend) {
  switch (backend) {
    case GemmBackend::kReference:
    case GemmBackend::kHighway:
      return true;
    case GemmBackend::kVnni: {
      static const bool usable = allows_avx512() && gemm_detail::vnni_usable();
      return usable;
    }
    case GemmBackend::kAmx: {
      static const bool usable = allows_avx512() && gemm_detail::amx_usable();
      return usable;
    }
  }
  return false;
}

GemmBackend default_gemm_backend() {
  static const GemmBackend backend = backend_from_environment();
  return backend;
}

void gemm(const GemmArgs& args) { gemm(args, default_gemm_backend()); }

void gemm(const GemmArgs& args, GemmBackend backend) {
  if (!gemm_supported(backend)) throw std::invalid_argument("gemm: unsupported backend");
  if (args.m == 0 || args.n == 0) return;
  check_pitches(args);
  if (args.k == 0) return gemm_detail::gemm_reference(args);  // at most clears C
  if (args.a_int4 || args.b_int4) return expanded_gemm(args, backend);
  switch (backend) {
    case GemmBackend::kReference:
      return gemm_detail::gemm_reference(args);
    case GemmBackend::kHighway:
      return gemm_detail::gemm_highway(args);
    case GemmBackend::kVnni:
      return gemm_detail::gemm_vnni(args);
    case GemmBackend::kAmx:
      return gemm_detail::gemm_amx(args);
  }
}

namespace gemm_detail {
namespace {

/// c += a * b modulo 2^32: signed overflow would be undefined, the hardware just wraps.
void multiply_add(std::int32_t& c, std::int32_t a, std::int32_t b) {
  c = static_cast<std::int32_t>(static_cast<std::uint32_t>(c) + static_cast<std::uint32_t>(a * b));
}

template <class A>
void multiply(const GemmArgs& args) {
  for (std::size_t i = 0; i < args.m; ++i) {
    std::int32_t* c = args.c + i * args.ldc;
    if (!args.accumulate) std::fill_n(c, args.n, 0);
    if (args.k == 0) continue;
    const A* a = static_cast<const A*>(args.a) + i * args.lda;
    if (args.b_transposed) {
      for (std::size_t j = 0; j < args.n; ++j) {
        const std::int8_t* b = args.b + j * args.ldb;
        for (std::size_t p = 0; p < args.k; ++p) multiply_add(c[j], a[p], b[p]);
      }
    } else {
      for (std::size_t p = 0; p < args.k; ++p) {
        const std::int8_t* b = args.b + p * args.ldb;
        for (std::size_t j = 0; j < args.n; ++j) multiply_add(c[j], a[p], b[j]);
      }
    }
  }
}

}  // namespace

void gemm_reference(const GemmArgs& args) {
  if (args.a_unsigned) {
    multiply<std::uint8_t>(args);
  } else {
    multiply<std::int8_t>(args);
  }
}

}  // namespace gemm_detail
}  // namespace systole::hw
