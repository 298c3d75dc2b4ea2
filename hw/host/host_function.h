#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "hw/number/dtype.h"

/// What a host computes in float32 for a core that multiplies matrices: the one function that the
/// simulated host and the reference share.
///
/// An element q of an operand has the value float(q) * scale, an element of the result for its code
/// times `out_scale`: code = clamp(round half to even(y / out_scale), lo, hi), of which NaN gives
/// lo. Every operation is one of float32, in the order of the formula and of the columns; exp and
/// erf are those of double, rounded to float32.
namespace systole::hw {

/// The values are part of the program file: append only.
enum class HostOp : std::uint8_t {
  kSoftmax = 0,    ///< exp(x - max) / sum of the row
  kGelu = 1,       ///< 0.5 x (1 + erf(x / sqrt 2))
  kLayerNorm = 2,  ///< (x - mean) / deviation * gamma + beta; beta where the deviation is 0
  kAdd = 3,        ///< x + t, the sum of two tensors
  kRoute = 4,      ///< softmax of the `active` largest of a row, of equal ones the first; else 0
};

inline constexpr std::uint8_t kHostOps = 5;

inline constexpr std::array<std::string_view, kHostOps> kHostOpNames = {
    "softmax", "gelu", "layernorm", "add", "route"};
[[nodiscard]] constexpr std::string_view name_of(HostOp op) {
  return kHostOpNames.at(static_cast<std::size_t>(op));
}

/// Tensors that an operator reads.
[[nodiscard]] constexpr unsigned operands_of(HostOp op) { return op == HostOp::kAdd ? 2 : 1; }

struct HostFunction {
  HostOp op = HostOp::kSoftmax;
  DType in = DType::kS32;
  DType tensor = DType::kS8;  ///< kAdd: of the second operand
  DType out = DType::kS8;
  float in_scale = 1.0F;
  float tensor_scale = 1.0F;  ///< kAdd
  float out_scale = 1.0F;
  std::int32_t lo = -127, hi = 127;  ///< of the codes
  std::uint32_t active = 0;          ///< kRoute: 1 to the columns
  std::vector<float> gamma, beta;    ///< kLayerNorm: one per column
};

/// Longest row: mean and deviation are sums of so many float32.
inline constexpr std::size_t kHostMaxColumns = 1U << 16;

/// Throws InputError: an unknown operator or type; a scale that is no positive finite number; lo
/// above hi, or either outside of the result's type; gamma and beta of different lengths, not
/// finite, or of an operator other than LayerNorm; a second operand's type or scale that is not the
/// default without one; `active` of another operator, or 0 of kRoute.
void check_host_function(const HostFunction& function);

/// Rows of `cols` elements, little endian, aligned or not. `tensor` is the second operand of kAdd.
/// The function must have passed check_host_function(), and gamma have `cols` entries if it has
/// any. Of a softmax only the first `kept` columns take part (0: all), codes after them are 0.
void apply_host_row(const HostFunction& function, const std::uint8_t* in,
                    const std::uint8_t* tensor, std::size_t cols, std::uint8_t* out,
                    std::size_t kept = 0);

/// `kept` for row `row` of a function that keeps `first` columns of its first row and one more of
/// every later row: the causal mask of a decoder. 0: all.
[[nodiscard]] constexpr std::size_t host_kept(std::size_t first, std::size_t row,
                                              std::size_t cols) {
  return first == 0 || first + row >= cols ? 0 : first + row;
}

}  // namespace systole::hw
