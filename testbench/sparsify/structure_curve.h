#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hw/machine/machine.h"
#include "model/graph/graph.h"
#include "testbench/sparsify/attention_subject.h"

/// What a network loses and saves without some of its heads, neurons or tokens.
namespace systole::testbench {

enum class Structure : std::uint8_t { kHeads, kNeurons, kTokens };
inline constexpr Structure kStructures[] = {Structure::kHeads, Structure::kNeurons,
                                            Structure::kTokens};
/// "heads", "neurons", "tokens".
[[nodiscard]] const char* structure_name(Structure structure);

/// The order in which parts of an integer network go, least important first. What a part adds to
/// the network is measured on its calibration inputs: of heads and neurons the magnitude of their
/// codes times that of the weights that read them, as a share of the layer's; of tokens the square
/// of what the outputs of some inputs change by without this token alone.
class StructureRanking {
 public:
  /// `subject` outlives this object. Throws InputError for tokens of a network of one block, or
  /// with masks.
  StructureRanking(const IntegerSubject& subject, Structure structure);

  /// Parts that may go: all, but for one head and one neuron of every layer, and the first token.
  [[nodiscard]] std::size_t parts() const { return parts_; }
  /// Layer and index in it of heads or neurons, least important first; of tokens empty.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, std::uint32_t>> order() const;
  /// The network without the least important `share` of all parts, to nearest; `gone` becomes how
  /// many that are. Inputs are those of reordered().
  [[nodiscard]] model::Graph without(double share, std::size_t& gone) const;
  /// The values of an input of the subject in the order in which without() has its tokens.
  [[nodiscard]] std::vector<std::int32_t> reordered(const std::vector<std::int32_t>& input) const;
  /// The first `values` of an output of the subject, in that order.
  [[nodiscard]] std::vector<std::int32_t> reordered_output(const std::vector<std::int32_t>& output,
                                                           std::size_t values) const;

 private:
  struct Part {
    std::uint32_t layer = 0, index = 0;
    double importance = 0.0;
  };
  /// By layer, of the columns of tensors_: sums of magnitudes over the calibration inputs.
  [[nodiscard]] std::vector<std::vector<double>> column_sums() const;
  void rank_columns();
  void rank_tokens();
  [[nodiscard]] model::Graph without_parts(std::size_t count) const;
  [[nodiscard]] model::Graph without_tokens(std::size_t count) const;

  const IntegerSubject& subject_;
  const Structure structure_;
  std::vector<model::TensorId> tensors_;  ///< by layer: of whose columns parts are
  std::vector<Part> order_;               ///< least important first
  std::vector<std::uint32_t> tokens_;     ///< most important first; empty: as they are
  std::size_t parts_ = 0;
};

struct StructurePoint {
  double wanted = 0.0;   ///< share of parts
  std::size_t gone = 0;  ///< parts
  /// Of the labelled inputs; none without labels.
  std::optional<double> accuracy;
  /// Root mean square of what outputs differ by from those of the whole network, to that of these.
  double error = 0.0;
  std::uint64_t macs = 0;
  double cycles = 0.0, dram_bytes = 0.0, joules = 0.0;  ///< of an inference
};

struct StructureCurve {
  std::string model, machine;
  Structure structure = Structure::kHeads;
  std::size_t inputs = 0, parts = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> order;  ///< StructureRanking::order()
  std::vector<StructurePoint> points;                          ///< the first: the whole network
};

/// The whole network, and then without each of the shares, in this order; each in a separate
/// process, side by side. Nothing is fine-tuned. Throws InputError for a machine that cannot run
/// the network.
[[nodiscard]] StructureCurve structure_curve(const AttentionSubject& subject, Structure structure,
                                             const std::vector<double>& shares,
                                             const hw::Machine& machine);

/// At most kTextWidth columns.
[[nodiscard]] std::string curve_text(const StructureCurve& curve);
/// A line for each point, after one of names.
[[nodiscard]] std::string curve_csv(const StructureCurve& curve);
[[nodiscard]] nlohmann::ordered_json curve_json(const StructureCurve& curve);

}  // namespace systole::testbench
