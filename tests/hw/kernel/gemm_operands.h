/// Operands for GEMM tests: buffers that trap any access past their end, byte patterns, an oracle.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <ostream>
#include <random>
#include <vector>

#include "hw/kernel/gemm.h"

namespace systole::hw::gemm_test {

/// Bytes that end where an inaccessible page begins. AddressSanitizer alone would not do: it does
/// not see masked vector loads.
class GuardedBytes {
 public:
  explicit GuardedBytes(std::size_t size) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t usable = (size + page - 1) / page * page;
    mapped_ = usable + page;
    base_ = static_cast<std::uint8_t*>(
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED) throw std::bad_alloc();
    if (mprotect(base_ + usable, page, PROT_NONE) != 0) throw std::bad_alloc();
    data_ = base_ + usable - size;
  }
  ~GuardedBytes() { munmap(base_, mapped_); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  [[nodiscard]] std::uint8_t* data() const { return data_; }

 private:
  std::size_t mapped_ = 0;
  std::uint8_t* base_ = nullptr;
  std::uint8_t* data_ = nullptr;
};

enum class Pattern { kRandom, kLowLow, kHighLow, kLowHigh, kHighHigh, kExtremes, kAlternating };
inline constexpr Pattern kPatterns[] = {
    Pattern::kRandom,   Pattern::kLowLow,   Pattern::kHighLow,    Pattern::kLowHigh,
    Pattern::kHighHigh, Pattern::kExtremes, Pattern::kAlternating};

struct Case {
  std::size_t m = 0;
  std::size_t n = 0;
  std::size_t k = 0;
  bool a_unsigned = false;
  bool b_transposed = false;
  bool accumulate = false;
  Pattern pattern = Pattern::kRandom;
  std::size_t padding = 0;  ///< added to every pitch
};

/// A, B and the first value of C of one case, in exactly sized buffers.
class Operands {
 public:
  Operands(const Case& shape, unsigned seed)
      : case_(shape),
        b_rows_(shape.b_transposed ? shape.n : shape.k),
        b_columns_(shape.b_transposed ? shape.k : shape.n),
        lda_(shape.k + shape.padding),
        ldb_(b_columns_ + shape.padding),
        ldc_(shape.n + shape.padding),
        a_(span(shape.m, shape.k, lda_)),
        b_(span(b_rows_, b_columns_, ldb_)),
        c_(span(shape.m, shape.n, ldc_) * sizeof(std::int32_t)) {
    std::mt19937 random(seed);
    const int low = shape.a_unsigned ? 0 : -128;
    const int high = shape.a_unsigned ? 255 : 127;
    const Pattern p = shape.pattern;
    fill(a_.data(), span(shape.m, shape.k, lda_), random, low, high,
         p == Pattern::kLowLow || p == Pattern::kLowHigh);
    fill(b_.data(), span(b_rows_, b_columns_, ldb_), random, -128, 127,
         p == Pattern::kLowLow || p == Pattern::kHighLow);
    first_c_.resize(span(shape.m, shape.n, ldc_));
    for (std::int32_t& value : first_c_) value = static_cast<std::int32_t>(random());
  }

  [[nodiscard]] GemmArgs args() const {
    GemmArgs args;
    args.a = a_.data();
    args.lda = lda_;
    args.a_unsigned = case_.a_unsigned;
    args.b = reinterpret_cast<const std::int8_t*>(b_.data());
    args.ldb = ldb_;
    args.b_transposed = case_.b_transposed;
    args.c = reinterpret_cast<std::int32_t*>(c_.data());
    args.ldc = ldc_;
    args.m = case_.m;
    args.n = case_.n;
    args.k = case_.k;
    args.accumulate = case_.accumulate;
    return args;
  }

  /// C after `multiply` has run on it, padding between the rows included.
  template <class Multiply>
  [[nodiscard]] std::vector<std::int32_t> result(const Multiply& multiply) const {
    const std::size_t bytes = first_c_.size() * sizeof(std::int32_t);
    if (bytes > 0) std::memcpy(c_.data(), first_c_.data(), bytes);
    multiply(args());
    std::vector<std::int32_t> c(first_c_.size());
    if (bytes > 0) std::memcpy(c.data(), c_.data(), bytes);
    return c;
  }

  /// The same by Eigen in floating point. 512 products of at most 255 * 128 sum to less than 2^24,
  /// so every partial sum is an exact float; the slices are added as integers.
  [[nodiscard]] std::vector<std::int32_t> oracle() const {
    using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    constexpr std::size_t kSlice = 512;
    const auto rows = static_cast<Eigen::Index>(case_.m);
    const auto columns = static_cast<Eigen::Index>(case_.n);
    std::vector<std::int32_t> c = first_c_;
    for (std::size_t i = 0; i < case_.m && !case_.accumulate; ++i) {
      std::fill_n(c.data() + i * ldc_, case_.n, 0);
    }
    for (std::size_t begin = 0; begin < case_.k; begin += kSlice) {
      const auto depth = static_cast<Eigen::Index>(std::min(kSlice, case_.k - begin));
      const auto first = static_cast<Eigen::Index>(begin);
      const Matrix a = Matrix::NullaryExpr(
          rows, depth, [&](Eigen::Index i, Eigen::Index p) { return a_value(i, first + p); });
      const Matrix b = Matrix::NullaryExpr(
          depth, columns, [&](Eigen::Index p, Eigen::Index j) { return b_value(first + p, j); });
      const Matrix product = a * b;
      for (Eigen::Index i = 0; i < rows; ++i) {
        for (Eigen::Index j = 0; j < columns; ++j) {
          std::int32_t& sum = c[static_cast<std::size_t>(i) * ldc_ + static_cast<std::size_t>(j)];
          const auto value = static_cast<std::int64_t>(product(i, j));
          sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum + value));
        }
      }
    }
    return c;
  }

 private:
  [[nodiscard]] static std::size_t span(std::size_t rows, std::size_t row, std::size_t pitch) {
    return rows == 0 ? 0 : (rows - 1) * pitch + row;
  }

  void fill(std::uint8_t* bytes, std::size_t count, std::mt19937& random, int low, int high,
            bool all_low) const {
    for (std::size_t i = 0; i < count; ++i) {
      int value = all_low ? low : high;
      if (case_.pattern == Pattern::kRandom) {
        value = static_cast<int>(random() & 0xff);
      } else if (case_.pattern == Pattern::kExtremes) {
        value = (random() & 1U) != 0 ? high : low;
      } else if (case_.pattern == Pattern::kAlternating) {
        value = i % 2 != 0 ? high : low;
      }
      bytes[i] = static_cast<std::uint8_t>(value);
    }
  }

  [[nodiscard]] float a_value(Eigen::Index row, Eigen::Index p) const {
    const std::uint8_t byte =
        a_.data()[static_cast<std::size_t>(row) * lda_ + static_cast<std::size_t>(p)];
    return case_.a_unsigned ? static_cast<float>(byte)
                            : static_cast<float>(static_cast<std::int8_t>(byte));
  }
  [[nodiscard]] float b_value(Eigen::Index p, Eigen::Index column) const {
    const auto row = static_cast<std::size_t>(case_.b_transposed ? column : p);
    const auto in_row = static_cast<std::size_t>(case_.b_transposed ? p : column);
    return static_cast<float>(static_cast<std::int8_t>(b_.data()[row * ldb_ + in_row]));
  }

  Case case_;
  std::size_t b_rows_;
  std::size_t b_columns_;
  std::size_t lda_;
  std::size_t ldb_;
  std::size_t ldc_;
  GuardedBytes a_;
  GuardedBytes b_;
  GuardedBytes c_;
  std::vector<std::int32_t> first_c_;
};

/// Every combination of pattern, sign, storage and accumulation, on shapes that cross the edges of
/// all blocks: 16 and 32 columns, 6, 8 and 32 rows, 512 rows, 256 and 768 of depth.
template <class Check>
void for_each_standard_case(const Check& check) {
  constexpr std::size_t kShapes[][3] = {
      {16, 16, 16}, {17, 64, 64}, {65, 65, 17}, {33, 47, 1541}, {523, 35, 31}};
  for (const auto& [m, n, k] : kShapes) {
    for (const Pattern pattern : kPatterns) {
      for (unsigned flags = 0; flags < 8; ++flags) {
        Case c{m, n, k, (flags & 1U) != 0, (flags & 2U) != 0, (flags & 4U) != 0, pattern, 0};
        c.padding = flags % 3;
        check(c);
      }
    }
  }
}

/// Small random sizes, 0 and 1 among them, with random options.
template <class Check>
void for_each_random_case(int count, const Check& check) {
  std::mt19937 random(20240607);
  for (int i = 0; i < count; ++i) {
    const auto below = [&](unsigned limit) { return static_cast<std::size_t>(random() % limit); };
    check(Case{below(41), below(71), below(141), below(2) != 0, below(2) != 0, below(2) != 0,
               Pattern::kRandom, below(4) * below(20)});
  }
}

inline std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.m << " x " << c.n << " x " << c.k << (c.a_unsigned ? ", unsigned" : ", signed")
             << (c.b_transposed ? ", B transposed" : "") << (c.accumulate ? ", accumulate" : "")
             << ", pattern " << static_cast<int>(c.pattern) << ", padding " << c.padding;
}

}  // namespace systole::hw::gemm_test
