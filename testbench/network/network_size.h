#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/number/int4.h"
#include "hw/number/weight_groups.h"
#include "model/build/llama_routing.h"
#include "model/metadata/llama_shape.h"
#include "model/metadata/resnet_shape.h"
#include "model/seeded/shapes.h"

namespace systole::testbench {

/// What a user says about the size of a network known by its shape; the table
/// (model/seeded/shapes.h) has the rest.
struct SizeOptions {
  std::optional<std::int64_t> length, batch, layers, heads, kv_heads, width, hidden, window,
      weight_bits, experts, active_experts;
  std::string routing;        ///< "uniform" or "worst", "" for what the values decide
  std::string weight_format;  ///< of MX, "" for those of `weight_bits`
  bool decode = false;
  std::optional<std::int64_t> past;  ///< with `decode`

  [[nodiscard]] bool any() const {
    return length || batch || layers || heads || kv_heads || width || hidden || window ||
           weight_bits || experts || active_experts || !routing.empty() || !weight_format.empty() ||
           decode || past;
  }
};

/// A network by its shape, working on `batch` sequences of `length` tokens each, or on one token
/// after the other.
struct NetworkSize {
  std::string name;
  model::NetworkKind kind = model::NetworkKind::kEncoder;
  model::EncoderShape shape;
  std::optional<model::LlamaShape>
      llama;  ///< all of one, whose layers and sizes are in `shape` too
  /// All of a residual network, of which `shape` has the number of blocks; its length is a picture.
  std::optional<model::ResNetShape> resnet;
  std::uint32_t length = 0, batch = 1;
  std::uint32_t positions = 0;  ///< tokens of a sequence that the network has positions for
  bool four_bits = false;       ///< weights of the blocks: int4, of a Llama in groups
  hw::WeightFormat mx = hw::WeightFormat::kInt8;  ///< of a Llama's blocks, if it is one of MX
  std::optional<model::RoutingKind> routing;      ///< of experts; none: by the values
  bool decode = false;                            ///< one by one, with a cache of keys and values
  std::uint32_t past = 0;  ///< tokens before them, whose keys and values are cached

  /// Tokens of a sequence, those that are cached included.
  [[nodiscard]] std::uint32_t tokens() const { return past + length; }
  /// Tokens that run at once, those of all sequences.
  [[nodiscard]] std::uint32_t tokens_at_once() const { return batch * (decode ? 1 : length); }

  /// Whether the weights of its blocks are int4 on that machine: of a Llama where the array takes
  /// them and the load unit expands no groups.
  [[nodiscard]] bool int4(const hw::Machine& machine) const {
    return four_bits && (!llama || (machine.array.split != hw::ArraySplit::kNone &&
                                    machine.dma.expander_lanes == 0));
  }
  /// Of the weights of its blocks on that machine.
  [[nodiscard]] hw::WeightFormat format(const hw::Machine& machine) const {
    return four_bits && llama && !int4(machine) ? hw::WeightFormat::kGroups : mx;
  }
  /// Of all weights of the blocks, and of a Llama's output matrix, as they reside in memory.
  [[nodiscard]] double weight_bytes(const hw::Machine& machine) const {
    if (resnet) return resnet->weights();
    const double d = shape.width;
    if (llama) {
      const double heads = 2.0 * llama->query_width() + 2.0 * llama->kv_width();
      const double mlps = std::max(1U, llama->experts), router = llama->experts;
      return shape.layers * d *
                 (bytes_of_weight(machine) * (heads + 3.0 * mlps * shape.hidden) + router) +
             d * llama->vocabulary;
    }
    return bytes_of_weight(machine) * shape.layers * (4 * d * d + 2 * d * shape.hidden);
  }

 private:
  /// Of the blocks.
  [[nodiscard]] double bytes_of_weight(const hw::Machine& machine) const {
    if (int4(machine) && machine.array.split != hw::ArraySplit::kNone) return 1.0 / hw::kInt4Pair;
    if (machine.dma.expander_lanes == 0) return 1.0;
    return static_cast<double>(hw::packed_group_bytes(format(machine), 2)) /
           (2.0 * hw::kGroupWeights);
  }
};

/// Of a text, unless its length is given: the survey's shortest.
inline constexpr std::uint32_t kDefaultTextLength = 128;

/// Whether that name is in the table of shapes.
[[nodiscard]] bool is_shape_name(const std::string& name);

/// All names of shapes.
[[nodiscard]] std::vector<std::string> shape_names();

/// Whether `option` asks for four bits. Throws InputError for other bits than 8 or 4.
[[nodiscard]] bool wants_four_bits(std::int64_t bits, std::string_view option = "--weight-bits");

/// The format that --weight-format names. Throws InputError for another, and beside --weight-bits.
[[nodiscard]] hw::WeightFormat wanted_mx_format(const std::string& name, bool with_bits);

/// Throws InputError for a number out of range, heads that do not divide the width, more tokens
/// than the network has positions for, a vision model whose tokens are neither the patches and the
/// class token nor one more, a distillation token, or tokens one by one of a network that is no
/// decoder, or of a batch of one that is no Llama.
[[nodiscard]] NetworkSize network_size(const std::string& name, const SizeOptions& options);

/// The same for any length of text up to `longest`, as if the table of positions were longer.
[[nodiscard]] NetworkSize network_size(const std::string& name, const SizeOptions& options,
                                       std::uint32_t longest);

/// Tokens of a text of a network with that many positions: `length`, or what is usual. Throws
/// InputError for more than there are positions.
[[nodiscard]] std::uint32_t text_length(const std::string& name, std::uint32_t positions,
                                        const std::optional<std::int64_t>& length);

/// Throws InputError that says so if `options` has anything: a model in a file has its own size.
void require_no_size(const std::string& model, const SizeOptions& options);

}  // namespace systole::testbench
