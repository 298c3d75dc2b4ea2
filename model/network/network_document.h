#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model/format/safetensors.h"
#include "model/network/network_ops.h"

/// A network in one safetensors file: constants as its tensors, and in its metadata, under
/// kNetworkKey, a JSON document with the operator graph (docs/network-format.md).
namespace systole::model {

inline constexpr const char* kNetworkFormat = "systole-network";  ///< metadata "format"
inline constexpr const char* kNetworkKey = "network";
inline constexpr std::uint32_t kNetworkVersion = 1;
/// Metadata with the tokeniser of a network that reads ids (model/text/tokeniser.h).
inline constexpr const char* kTokeniserKey = "tokeniser";

/// The number of tokens of a text, which the network leaves open.
inline constexpr std::int64_t kTokens = -1;
inline constexpr const char* kTokensWord = "tokens";

using NetworkShape = std::vector<std::int64_t>;  ///< sizes from 1, or kTokens

/// "[tokens, 768]".
[[nodiscard]] std::string network_shape_text(const NetworkShape& shape);

/// Real value of a code: one for all, or one for each index of an axis.
struct NetworkScale {
  double value = 0.0;
  std::optional<std::size_t> axis;
  std::string values;  ///< with an axis: the constant that has them
};

struct NetworkTensor {
  std::string type;  ///< "f32", "i64", "u8", "s8", "s16", "s32"; of a constant empty
  NetworkShape shape;
  std::optional<NetworkScale> scale;
};

// The move of the library's document asserts what always holds.
// NOLINTNEXTLINE(bugprone-exception-escape)
struct NetworkNode {
  std::string name;
  const NetworkOp* op = nullptr;
  std::vector<std::string> inputs;
  std::string output;
  nlohmann::json attributes;

  [[nodiscard]] bool is(std::string_view op_name) const { return op->name == op_name; }
};

// NOLINTNEXTLINE(bugprone-exception-escape): as above
struct NetworkDocument {
  std::string name, source;
  nlohmann::json architecture;                   ///< for people and for tokenisers: an object
  std::map<std::string, std::string> datapath;   ///< of a network of integers; else empty
  std::vector<std::string> inputs, outputs;      ///< activations
  std::map<std::string, NetworkTensor> tensors;  ///< activations; constants that have a scale
  std::vector<NetworkNode> nodes;                ///< each after those whose results it reads

  [[nodiscard]] bool is_integer() const { return !datapath.empty(); }
  [[nodiscard]] const OpForm& form(const NetworkOp& op) const {
    return is_integer() ? op.integer : op.real;
  }
};

/// Whether a file says that it is one; nothing else of it is looked at.
[[nodiscard]] bool is_network_file(const Safetensors& file);

/// A network file that has been read and checked as a whole.
class NetworkFile {
 public:
  /// Throws InputError, one line that names file, node and field, if anything is wrong: of the
  /// document, an unknown operator, operands that are missing, of another shape or type, a name
  /// used twice, a cycle, a constant that no node reads or that is not finite.
  explicit NetworkFile(Safetensors file);

  [[nodiscard]] const Safetensors& constants() const { return file_; }
  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] const NetworkDocument& document() const { return document_; }
  /// The node whose result a value is; null for a graph input and for a constant.
  [[nodiscard]] const NetworkNode* producer(const std::string& value) const;
  /// Of an activation or a constant.
  [[nodiscard]] NetworkShape shape_of(const std::string& value) const;
  /// 0 for a tensor without one.
  [[nodiscard]] double scale_of(const std::string& value) const;
  /// A real-valued constant, row-major, decoded if it has a scale.
  [[nodiscard]] std::vector<double> reals(const std::string& constant) const;

  /// Throws InputError: "FILE: node 'NAME': WHAT".
  [[noreturn]] void fail(const NetworkNode& node, const std::string& what) const;

 private:
  Safetensors file_;
  NetworkDocument document_;
  std::map<std::string, std::size_t> producers_;  ///< indices of nodes
};

/// The document of a file: its JSON, without looking at the graph as a whole.
[[nodiscard]] NetworkDocument read_network_document(const Safetensors& file);

/// Everything that joins nodes and constants; brings the nodes in order.
void check_network(NetworkDocument& document, const Safetensors& file);

}  // namespace systole::model
