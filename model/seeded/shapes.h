#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hw/machine/machine.h"
#include "model/graph/graph.h"
#include "model/integer/integer_vit.h"
#include "model/metadata/vit_shape.h"

namespace systole::model {

/// What a network does with its Transformer layers.
enum class NetworkKind {
  kEncoder,  ///< text, all tokens at once (BERT)
  kDecoder,  ///< text, a token after the other; a score for each token up to its own (GPT-2)
  kVision,   ///< an encoder of image patches and a class token
};

struct NamedShape {
  std::string_view name;
  NetworkKind kind;
  EncoderShape shape;
  std::uint32_t positions;   ///< tokens at most; of a vision model, always
  std::uint32_t vocabulary;  ///< of its input, 0 without one
};

/// Networks known by name; their weights are not here.
[[nodiscard]] const std::vector<NamedShape>& named_shapes();

/// The shape of that name; an unknown name throws InputError that lists what exists.
[[nodiscard]] const NamedShape& find_named_shape(std::string_view name);
/// Its layers alone.
[[nodiscard]] inline EncoderShape find_shape(std::string_view name) {
  return find_named_shape(name).shape;
}

struct SeededOptions {
  hw::Machine::Datapath datapath;
  /// Leave out the weights: the graph has every operator and immediate, but cannot be executed.
  bool shape_only = false;
  /// Attention mask of each layer (model/checkpoint/keep_mask.h); none: dense attention.
  std::vector<std::vector<std::uint8_t>> keep = {};
  std::uint32_t batch = 1;  ///< sequences of `length` tokens each
  bool int4 = false;        ///< weights are int4
};

/// The layers of make_seeded_encoder().
[[nodiscard]] IntegerEncoder make_seeded_layers(const EncoderShape& shape, std::uint32_t length,
                                                std::uint64_t seed,
                                                const SeededOptions& options = {});

/// Real value of a step of seeded_embedding().
[[nodiscard]] double seeded_embedding_scale(const EncoderShape& shape,
                                            const hw::Machine::Datapath& datapath);

/// An encoder of that shape on `length` tokens with random weights, for throughput and for tests of
/// shapes without a checkpoint. Same arguments, same bits. Its scales are chosen such that with
/// seeded_embedding() as input all activations use their codes well: neither all zero nor
/// saturated. The graph is that of make_encoder_graph(); its name is `name`. Throws InputError if a
/// count is 0, the heads do not divide the width, the accumulator could overflow, or the masks are
/// not one of the right size for each layer. There are at most 65536 tokens in all sequences.
[[nodiscard]] Graph make_seeded_encoder(std::string name, const EncoderShape& shape,
                                        std::uint32_t length, std::uint64_t seed,
                                        const SeededOptions& options = {});

/// Values for the input "embedding" of such a graph of `length` tokens in all. Those of a shorter
/// one are the first of a longer one.
[[nodiscard]] std::vector<std::int32_t> seeded_embedding(const EncoderShape& shape,
                                                         std::uint32_t length, std::uint64_t seed,
                                                         const hw::Machine::Datapath& datapath);

}  // namespace systole::model
