#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "model/data/image.h"
#include "model/graph/graph.h"
#include "model/network/network_document.h"

/// Networks of integers of any operators: convolutional ones, and chains of a user's own.
namespace systole::model {

/// How pictures become the input of such a network: what the host does before an inference.
struct PictureInput {
  PictureFormat format;
  /// Of its `normalise`, by channel: (sample * multiplier + addend) / 2^shift, half up, clamped to
  /// -127 to 127; empty: samples as they are.
  std::vector<std::int32_t> multiplier, addend;
  std::uint32_t shift = 0;

  /// Bytes of the input tensor, a row for each pixel and a column for each channel.
  [[nodiscard]] std::vector<std::uint8_t> bytes(const Image& image) const;
};

struct OperatorNetwork {
  std::string name;
  std::string source;  ///< where the constants come from, for people
  hw::Machine::Datapath datapath;
  Graph graph;
  std::optional<PictureInput> pictures;  ///< else its input is a tensor of codes
};

/// Whether an operator is one that such a network may have.
[[nodiscard]] bool is_graph_op(const NetworkNode& node);

/// Every node as the stages and products of docs/network-format.md: those of a node NAME are NAME,
/// NAME.bias, NAME.requantise and the like. The first graph input is that of an inference; others
/// are constants, whose bytes `others` has by name. The result of the network is the only output.
/// Throws InputError that names file and node for a network of real numbers, an operator that only
/// Transformers have, an open number of tokens, several inputs or outputs, and constants that the
/// datapath cannot hold.
[[nodiscard]] OperatorNetwork make_operator_network(
    const NetworkFile& file, const std::map<std::string, std::vector<std::uint8_t>>& others = {});

}  // namespace systole::model
