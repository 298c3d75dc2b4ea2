#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "model/checkpoint/text_checkpoint.h"
#include "model/checkpoint/vit_checkpoint.h"
#include "model/data/dataset.h"
#include "model/graph/graph.h"
#include "model/mask/attention_mask.h"
#include "model/text/token_ids.h"

namespace systole::testbench {

/// How well a network does its task.
struct TaskQuality {
  /// Fractions of the labelled inputs: of the real-valued network, and of the integer one that the
  /// quantiser makes of it. None without labels.
  std::optional<double> real, integer;
  /// Of a text network without classes or labels: root mean square of what its hidden states differ
  /// by from those without the mask, to that of these.
  std::optional<double> error;
};

/// The integer network that the quantiser makes, with inputs as its graph takes them.
struct IntegerSubject {
  model::Graph graph;
  std::uint32_t layers = 0, heads = 0;
  std::size_t tokens = 0;
  bool masked = false;  ///< the network has attention masks
  std::vector<std::vector<std::int32_t>> calibration, test;
  std::vector<std::uint32_t> labels;  ///< of `test`; empty: not known
};

/// A real-valued encoder with inputs: what `systole sparsify` gathers attention from, prunes and
/// measures. Of pictures in splits, "calib" is what attention is averaged over and the quantiser
/// calibrated with, "test" what is classified; others are both.
class AttentionSubject {
 public:
  /// A vision transformer or a text encoder, by name or path. `limit`: of each split, 0: all.
  /// Of texts with padding those of the most common length are taken, without theirs. Throws
  /// InputError for files that are no such network or inputs, and for a decoder, which masks later
  /// tokens.
  AttentionSubject(const std::string& model, const std::string& input, std::size_t limit);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::size_t inputs() const;
  [[nodiscard]] const model::EncoderShape& encoder() const;
  [[nodiscard]] model::AttentionShape shape() const;
  /// The network has a class token in front.
  [[nodiscard]] bool has_class_token() const { return vit_.has_value(); }

  /// Attention after the softmax, averaged over the inputs: [layers, heads, tokens, tokens].
  [[nodiscard]] std::vector<double> averages() const;
  /// The masks that the network itself has, of all layers; nothing if a layer has none.
  [[nodiscard]] std::optional<model::AttentionMask> own_mask() const;

  /// Under a mask in the place of the network's own; null: as the network is. The quantiser uses
  /// `datapath`. `integer` off leaves the integer network out. Throws InputError where the
  /// quantiser does.
  [[nodiscard]] TaskQuality quality(const model::AttentionMask* mask,
                                    const hw::Machine::Datapath& datapath,
                                    bool integer = true) const;
  /// The integer network as it is, for that datapath. Throws InputError where the quantiser does.
  [[nodiscard]] IntegerSubject integers(const hw::Machine::Datapath& datapath) const;
  /// The integer network under a mask, as `machine` runs it.
  [[nodiscard]] model::Graph graph(const model::AttentionMask* mask,
                                   const hw::Machine& machine) const;

 private:
  [[nodiscard]] model::VitCheckpoint vit_under(const model::AttentionMask* mask) const;
  [[nodiscard]] model::TextCheckpoint text_under(const model::AttentionMask* mask) const;
  [[nodiscard]] double hidden_error(const model::AttentionMask* mask) const;

  std::string name_;
  std::optional<model::VitCheckpoint> vit_;
  model::Dataset calibration_, test_;
  std::optional<model::TextCheckpoint> text_;
  model::TokenIds ids_;
};

}  // namespace systole::testbench
