#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "mapper/program_file.h"

namespace systole::testbench {

/// Bytes of a tensor for each inference: from a safetensors file that has it under its name, with
/// its type, as [inferences, rows, cols] or, for one, [rows, cols]. At most `limit` of them, 0:
/// all. Throws InputError.
[[nodiscard]] std::vector<std::vector<std::uint8_t>> read_values(const std::string& path,
                                                                 const mapper::TensorPlace& tensor,
                                                                 std::size_t limit);

/// A tensor and its bytes for each inference, all of one size.
struct RunValues {
  const mapper::TensorPlace& tensor;
  const std::vector<std::vector<std::uint8_t>>& inferences;
};

/// Writes tensors as [inferences, rows, cols] to a safetensors file, whole or not at all. Throws
/// InputError if it cannot.
void write_values(const std::string& path, const std::vector<RunValues>& tensors);

}  // namespace systole::testbench
