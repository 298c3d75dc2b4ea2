#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace systole::model {

/// Outcome of one case of a vector file.
struct VectorResult {
  std::string name;
  std::uint64_t checked = 0;  ///< values compared: outputs, intermediates and derived constants
  std::uint64_t failed = 0;
  std::string first_failure;  ///< empty if none failed
};

/// Recomputes every case of an I-BERT vector file with the functions of hw/ and compares all exact
/// results it lists: outputs, intermediates (exponentials, row statistics, Newton passes) and the
/// constants that follow from the scales. The field `op` chooses the operation: "IntGELU",
/// "IntSoftmax(output_bit=8)", "IntLayerNorm(output_bit=32)", "fixedpoint_mul (QuantAct
/// requantisation)" or "I-Sqrt (paper Algorithm 4)". An undefined exact result (null) is compared
/// with the convention of hw/: the bias for a LayerNorm row without variance, zero for a softmax
/// row without a kept cell.
///
/// Returns one result per case, in file order (one for all of a square root file). Throws
/// hw::InputError naming file, case and field if the file cannot be read or is malformed.
std::vector<VectorResult> run_vector_file(const std::string& path);

}  // namespace systole::model
