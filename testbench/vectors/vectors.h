#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/number/dyadic.h"

namespace systole::model {

/// Outcome of one case of a vector file.
struct VectorResult {
  std::string name;
  std::uint64_t checked = 0;  ///< values compared: outputs, intermediates and derived constants
  std::uint64_t failed = 0;
  std::string first_failure;  ///< empty if none failed
};

/// Another implementation of what I-BERT's operations share with the default datapath, square root
/// and requantisation, and of a streaming core's softmax.
class VectorDatapath {
 public:
  virtual ~VectorDatapath() = default;

  /// What a user calls it, and where its other operations are checked: parts of messages.
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::string other_checks() const = 0;

  /// floor(sqrt(n)) of every number.
  virtual std::vector<std::uint32_t> square_roots(const std::vector<std::uint64_t>& numbers) = 0;

  /// Element i times factor i modulo their number, rounded half to even. All shifts are at most
  /// hw::kMaxDyadicShift and all exact results have 32 bits.
  virtual std::vector<std::int32_t> scale(const std::vector<std::int32_t>& x,
                                          const std::vector<hw::Dyadic>& factors) = 0;

  /// Of one row.
  struct SoftmaxRow {
    std::int64_t maximum = 0, sum = 0, inverse = 0;
    std::vector<std::uint8_t> probabilities;
  };
  /// A streaming core's softmax of a row: whole groups of hw::stream::kGroup scores.
  virtual SoftmaxRow stream_softmax(const std::vector<std::int8_t>& scores) = 0;
};

/// Recomputes every case of a vector file, which is in one of three formats: with a field `op`, of
/// I-BERT's operations or of a streaming core's; without, of the default datapath's functions.
///
/// I-BERT: recomputes every case with the functions of hw/ and compares all exact
/// results it lists: outputs, intermediates (exponentials, row statistics, Newton passes) and the
/// constants that follow from the scales. The field `op` chooses the operation: "IntGELU",
/// "IntSoftmax(output_bit=8)", "IntLayerNorm(output_bit=32)", "fixedpoint_mul (QuantAct
/// requantisation)" or "I-Sqrt (paper Algorithm 4)". An undefined exact result (null) is compared
/// with the convention of hw/: the bias for a LayerNorm row without variance, zero for a softmax
/// row without a kept cell.
///
/// Default datapath (tests/golden/datapath): the fields of a case say which function it is of:
/// exponential, GELU, LayerNorm, requantisation, softmax or, of pairs [n, floor(sqrt n)], square
/// root. Constants are derived from the scales and widths and compared too.
///
/// Streaming core (ITA): "ITA requantisation", "ITA streaming softmax", "ITA i-GELU with
/// requantisation", "ITA ReLU with requantisation", "ITA attention and feed-forward layer" with
/// every intermediate tensor, and "ITA cycles", which are those of the preset ita. Where a case
/// says that the hardware differs from the software that made it, the hardware is expected.
///
/// With a `datapath`, square roots, scaled integers and a streaming core's rows of softmax are its
/// own, while the Newton passes, the sum with the residual branch, the clamp and the constants stay
/// those of hw/. A file that it cannot compute, by the operation, by a shift or by a result beyond
/// 32 bits, is refused.
///
/// Returns one result per case, in file order (one for all where cases have no names). Throws
/// hw::InputError naming file, case and field if the file cannot be read or is malformed.
std::vector<VectorResult> run_vector_file(const std::string& path,
                                          VectorDatapath* datapath = nullptr);

}  // namespace systole::model
