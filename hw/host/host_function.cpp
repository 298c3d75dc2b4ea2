#include "hw/host/host_function.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "base/error.h"
#include "hw/host/largest_columns.h"

namespace systole::hw {
namespace {

constexpr float kHalfRoot2 = 0.70710678F;

/// Calls visit(T()) with the element type that `type` names.
template <typename Visit>
void with_type(DType type, Visit visit) {
  switch (type) {
    case DType::kS8:
      return visit(std::int8_t{});
    case DType::kU8:
      return visit(std::uint8_t{});
    case DType::kS16:
      return visit(std::int16_t{});
    case DType::kS32:
      return visit(std::int32_t{});
    case DType::kU16:
      return visit(std::uint16_t{});
  }
}

std::vector<float> real_row(const std::uint8_t* codes, DType type, float scale, std::size_t cols) {
  std::vector<float> row(cols);
  with_type(type, [&](auto code) {
    for (std::size_t i = 0; i < cols; ++i) {
      std::memcpy(&code, codes + i * sizeof code, sizeof code);
      row[i] = static_cast<float>(code) * scale;
    }
  });
  return row;
}

void store_row(const HostFunction& function, const std::vector<float>& row, std::uint8_t* out) {
  const double lo = function.lo;
  const double hi = function.hi;
  with_type(function.out, [&](auto code) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double value = double{row[i] / function.out_scale};
      // The negated comparison is true for NaN, too.
      const double clamped = !(value > lo) ? lo : std::min(value, hi);
      code = static_cast<decltype(code)>(std::llrint(clamped));
      std::memcpy(out + i * sizeof code, &code, sizeof code);
    }
  });
}

void softmax(std::vector<float>& row) {
  if (row.empty()) return;
  const float highest = *std::max_element(row.begin(), row.end());
  float sum = 0.0F;
  for (float& x : row) {
    x = static_cast<float>(std::exp(double{x - highest}));
    sum += x;
  }
  for (float& x : row) x /= sum;
}

void route(std::vector<float>& row, std::size_t active) {
  const std::vector<std::size_t> order = largest_columns(row.data(), row.size(), active);
  std::vector<float> largest;
  for (const std::size_t column : order) largest.push_back(row[column]);
  softmax(largest);
  std::fill(row.begin(), row.end(), 0.0F);
  for (std::size_t i = 0; i < order.size(); ++i) row[order[i]] = largest[i];
}

void gelu(std::vector<float>& row) {
  for (float& x : row) {
    const auto erf = static_cast<float>(std::erf(double{x * kHalfRoot2}));
    x = 0.5F * x * (1.0F + erf);
  }
}

void layer_norm(const HostFunction& function, std::vector<float>& row) {
  const auto count = static_cast<float>(row.size());
  float sum = 0.0F;
  for (const float x : row) sum += x;
  const float mean = sum / count;
  float squares = 0.0F;
  for (float& x : row) {
    x -= mean;
    squares += x * x;
  }
  const float deviation = std::sqrt(squares / count);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const float norm = deviation > 0.0F ? row[i] / deviation : 0.0F;
    row[i] = norm * function.gamma[i] + function.beta[i];
  }
}

[[noreturn]] void refuse(const std::string& what) { throw InputError(what); }

void check_type(const char* name, DType type) {
  if (static_cast<std::uint8_t>(type) < kDTypes) return;
  refuse(std::string(name) + " type " + std::to_string(static_cast<int>(type)) +
         ", expected 0 to " + std::to_string(kDTypes - 1));
}

void check_scale(const char* name, float scale) {
  if (std::isfinite(scale) && scale > 0.0F) return;
  refuse(std::string(name) + " is " + std::to_string(scale) + ", expected a positive number");
}

void check_limits(const HostFunction& function) {
  with_type(function.out, [&](auto code) {
    using Limits = std::numeric_limits<decltype(code)>;
    const auto inside = [](std::int64_t limit) {
      return limit >= std::int64_t{Limits::min()} && limit <= std::int64_t{Limits::max()};
    };
    if (function.lo > function.hi || !inside(function.lo) || !inside(function.hi)) {
      refuse("lo " + std::to_string(function.lo) + " and hi " + std::to_string(function.hi) +
             ", expected a range of " + name_of(function.out));
    }
  });
}

void check_columns(const HostFunction& function) {
  const bool norm = function.op == HostOp::kLayerNorm;
  if (function.gamma.size() != function.beta.size() || function.gamma.empty() == norm) {
    refuse(std::to_string(function.gamma.size()) + " gamma and " +
           std::to_string(function.beta.size()) +
           (norm ? " beta, expected one of each for every column" : " beta, expected none"));
  }
  for (const std::vector<float>* values : {&function.gamma, &function.beta}) {
    for (const float value : *values) {
      if (!std::isfinite(value)) refuse("gamma or beta is not finite");
    }
  }
}

}  // namespace

void check_host_function(const HostFunction& function) {
  if (static_cast<std::uint8_t>(function.op) >= kHostOps) {
    refuse("operator " + std::to_string(static_cast<int>(function.op)) + ", expected 0 to " +
           std::to_string(kHostOps - 1));
  }
  check_type("input", function.in);
  check_type("operand", function.tensor);
  check_type("result", function.out);
  check_scale("in_scale", function.in_scale);
  check_scale("tensor_scale", function.tensor_scale);
  check_scale("out_scale", function.out_scale);
  const HostFunction defaults;
  if (operands_of(function.op) == 1 &&
      (function.tensor != defaults.tensor || function.tensor_scale != defaults.tensor_scale)) {
    refuse("a second operand, which " + std::string(name_of(function.op)) + " does not have");
  }
  if ((function.active != 0) != (function.op == HostOp::kRoute)) {
    refuse(std::to_string(function.active) + " active columns of " +
           std::string(name_of(function.op)));
  }
  check_limits(function);
  check_columns(function);
}

void apply_host_row(const HostFunction& function, const std::uint8_t* in,
                    const std::uint8_t* tensor, std::size_t cols, std::uint8_t* out,
                    std::size_t kept) {
  std::vector<float> row = real_row(in, function.in, function.in_scale, cols);
  switch (function.op) {
    case HostOp::kSoftmax:
      row.resize(kept == 0 ? cols : kept);
      softmax(row);
      row.resize(cols, 0.0F);
      break;
    case HostOp::kRoute:
      route(row, function.active);
      break;
    case HostOp::kGelu:
      gelu(row);
      break;
    case HostOp::kLayerNorm:
      layer_norm(function, row);
      break;
    case HostOp::kAdd: {
      const std::vector<float> other =
          real_row(tensor, function.tensor, function.tensor_scale, cols);
      for (std::size_t i = 0; i < cols; ++i) row[i] += other[i];
      break;
    }
  }
  store_row(function, row, out);
}

}  // namespace systole::hw
