#include "testbench/vectors/rtl_vectors.h"

#include <cstddef>
#include <limits>
#include <stdexcept>

namespace systole::testbench {
namespace {

constexpr std::uint32_t kLanes = 16;
constexpr hw::row::Clamp kUnclamped{std::numeric_limits<std::int32_t>::min(),
                                    std::numeric_limits<std::int32_t>::max()};

RtlOptions checked() {
  RtlOptions options;
  options.checked = true;
  return options;
}

template <typename Block>
void expect_no_assertion(const Block& block, const std::string& name) {
  if (block.failed()) throw std::runtime_error(name + " RTL: an assertion has fired");
}

}  // namespace

RtlVectors::RtlVectors() : i_sqrt_(checked()), requantizer_(kLanes, checked()) {}

std::string RtlVectors::name() const { return "--rtl"; }

std::string RtlVectors::other_checks() const {
  return "RTL has other functions in their default form only, checked by "
         "'make -f Makefile.verilator run'";
}

std::vector<std::uint32_t> RtlVectors::square_roots(const std::vector<std::uint64_t>& numbers) {
  std::vector<std::uint32_t> roots = i_sqrt_.run(numbers).roots;
  expect_no_assertion(i_sqrt_, "i_sqrt");
  values_ += roots.size();
  return roots;
}

std::vector<std::int32_t> RtlVectors::scale(const std::vector<std::int32_t>& x,
                                            const std::vector<hw::Dyadic>& factors) {
  // One row, so that each element has constants of its own.
  std::vector<std::int32_t> multipliers, shifts;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const hw::Dyadic factor = factors[i % factors.size()];
    multipliers.push_back(factor.multiplier);
    shifts.push_back(factor.shift);
  }
  std::vector<std::int32_t> scaled = x;
  requantizer_.run(scaled.data(), scaled.size(), 1, multipliers.data(), shifts.data(),
                   hw::Rounding::kHalfEven, kUnclamped);
  expect_no_assertion(requantizer_, "requantizer");
  values_ += scaled.size();
  return scaled;
}

}  // namespace systole::testbench
