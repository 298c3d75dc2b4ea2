#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/network/network_document.h"

namespace systole::model {

/// What one node of a network costs, whatever runs it.
struct NodeCounts {
  const NetworkNode* node = nullptr;
  NetworkShape result;               ///< with the number of tokens filled in
  std::uint64_t macs = 0;            ///< multiply-accumulates
  std::uint64_t constant_bytes = 0;  ///< in the file; a constant counts for its first reader
  std::uint64_t result_bytes = 0;    ///< elements of the result in its type
};

/// Node by node, for texts of that many tokens. `file` outlives the result. Throws InputError if
/// the network has fewer positions, or if a mask or the like needs another number.
[[nodiscard]] std::vector<NodeCounts> count_network(const NetworkFile& file, std::uint32_t tokens);

/// Whether the network leaves the number of tokens open.
[[nodiscard]] bool has_open_tokens(const NetworkFile& file);

/// The longest text that the network has positions for; nothing if it has no table of them.
[[nodiscard]] std::optional<std::uint32_t> most_tokens(const NetworkFile& file);

/// The graph for the `dot` of Graphviz: a node for each operator, an edge for each activation.
[[nodiscard]] std::string network_dot(const NetworkFile& file);

}  // namespace systole::model
