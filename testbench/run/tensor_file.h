#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/number/dtype.h"
#include "mapper/mapping.h"
#include "mapper/program_file.h"
#include "model/format/safetensors_writer.h"
#include "model/graph/graph.h"

/// What a run took and gave, in a safetensors file (docs/cli.md).
namespace systole::testbench {

/// Bytes of a tensor for each inference: from a safetensors file that has it under its name, with
/// its type, as [inferences, rows, cols] or, for one, [rows, cols]. At most `limit` of them, 0:
/// all. Throws InputError.
[[nodiscard]] std::vector<std::vector<std::uint8_t>> read_values(const std::string& path,
                                                                 const mapper::TensorPlace& tensor,
                                                                 std::size_t limit);

/// The tensor NAME as [inferences, rows, cols], from its bytes for each inference.
[[nodiscard]] model::TensorData tensor_of_inferences(
    const std::string& name, hw::DType type, std::uint32_t rows, std::uint32_t cols,
    const std::vector<std::vector<std::uint8_t>>& inferences);

/// Places of the names that match a regular expression (ECMAScript, the whole name). Throws
/// InputError that names --tensors for no expression, and for one that matches none of them;
/// `which` says of which tensors the names are: "that ...".
[[nodiscard]] std::vector<std::size_t> find_names(const std::string& expression,
                                                  const std::vector<std::string>& names,
                                                  const std::string& which);

/// Tensors of the graph that match a regular expression (ECMAScript, the whole name) and that the
/// program leaves in memory: neither constants nor what exists within a fused group alone. Throws
/// InputError that names --tensors for no expression, and for one that matches none.
[[nodiscard]] std::vector<model::TensorId> find_tensors(const std::string& expression,
                                                        const model::Graph& graph,
                                                        const mapper::Mapping& mapping);

/// The same of the tensors for which `is_left` says that they are in memory.
[[nodiscard]] std::vector<model::TensorId> find_tensors(const std::string& expression,
                                                        const model::Graph& graph,
                                                        const std::vector<bool>& is_left);

/// By tensor of the graph: whether the program leaves it in memory.
[[nodiscard]] std::vector<bool> written_tensors(const model::Graph& graph,
                                                const mapper::Mapping& mapping);

}  // namespace systole::testbench
