#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "model/build/operator_graph.h"
#include "model/data/dataset.h"
#include "model/graph/graph.h"
#include "model/integer/integer_llama.h"
#include "model/integer/integer_seq2seq.h"
#include "model/integer/integer_text.h"
#include "model/integer/integer_vit.h"
#include "model/text/token_ids.h"
#include "testbench/network/network_size.h"

namespace systole::testbench {

/// A network ready to run: of a file, or of a shape with seeded weights.
struct Network {
  std::string name;
  model::Graph graph;
  std::optional<model::IntegerVit> vit;          ///< of a file, a vision model
  std::optional<model::IntegerText> text;        ///< of a file, a text network
  std::optional<model::IntegerLlama> llama;      ///< of a file, a Llama
  std::optional<model::IntegerSeq2Seq> seq2seq;  ///< of a file, an encoder-decoder
  /// Of a file of any operators: how pictures become its input, which else has seeded codes.
  std::optional<model::PictureInput> pictures;
  std::optional<NetworkSize> size;  ///< of a mere shape, or of layers in a file
  hw::Machine::Datapath datapath;   ///< of those: what their inputs fit
};

/// A user's chain of operators (model/seeded/seeded_chain.h), for the machine's datapath. Throws
/// InputError.
[[nodiscard]] Network chain_network(const std::string& path, const hw::Machine& machine);

/// Reads an integer model by name or path and checks that the machine's datapath can compute it. A
/// text network, a Llama or an encoder-decoder has no graph yet. `mask`: a file for load_keep() of
/// testbench/network/network_mask.h; empty: the masks that the model has. Throws InputError.
[[nodiscard]] Network read_network(const std::string& name_or_path, const hw::Machine& machine,
                                   const std::string& mask = {});

/// Makes the graph of a text network that of texts of `length` tokens, 1 to its positions. `mask`
/// as above; it belongs to one length.
void set_text_length(Network& network, std::uint32_t length, const hw::Machine& machine,
                     const std::string& mask = {});

/// Makes the graph of a Llama of a file that of prompts of `length` tokens, 1 to its positions. One
/// with experts gets those that the tokens of `ids` go to; without ids, seeded ones.
void set_llama_length(Network& network, std::uint32_t length, const hw::Machine& machine,
                      const std::vector<std::int32_t>& ids = {});

/// Makes the graph of an encoder-decoder that of texts of `source` and `target` tokens, both parts
/// at once (model/build/seq2seq_graph.h).
void set_pair_length(Network& network, std::uint32_t source, std::uint32_t target,
                     const hw::Machine& machine);

/// Tokens that both texts of an encoder-decoder may have.
[[nodiscard]] std::uint32_t pair_positions(const model::IntegerSeq2Seq& network);

/// Throws InputError if the machine's datapath cannot compute what `needed` says of model `name`.
void check_datapath(const std::string& name, const hw::Machine& machine,
                    const hw::Machine::Datapath& needed);

/// Of seeded weights; inputs have the seeds after it.
inline constexpr std::uint64_t kWeightSeed = 1;

/// Throws InputError if the weights alone are too much for the machine's DRAM.
void require_room(const NetworkSize& size, const hw::Machine& machine);

/// The graph of a shape with seeded weights, all tokens at once; `with_weights` off leaves them
/// out; `mask` as above.
/// A Llama of that size, whose seed is always the same; throws InputError if its weights shall have
/// four bits and are no whole groups.
[[nodiscard]] model::IntegerLlama seeded_llama(const NetworkSize& size, const hw::Machine& machine,
                                               bool with_weights);

/// Rows of the residual stream that a network begins with.
using MakeEmbedding = std::function<std::vector<std::int32_t>()>;

/// The routing of `tokens` tokens of a network with experts: what the routers of `all`, a graph
/// with all experts, decide for an embedding; without one, a seeded one of that kind, uniform if
/// there is none. Throws InputError for a host that does not route, and for a kind beside an
/// embedding.
[[nodiscard]] model::Routing routing_for(const std::string& name, const model::LlamaShape& shape,
                                         std::uint32_t tokens,
                                         const std::optional<model::RoutingKind>& kind,
                                         const hw::Machine& machine, model::Graph all,
                                         const MakeEmbedding& embedding);

[[nodiscard]] model::Graph seeded_graph(const NetworkSize& size, const hw::Machine& machine,
                                        bool with_weights, const std::string& mask = {});

/// The network of that shape with seeded weights; `with_weights` off leaves them out, for runs
/// without values; `mask` as above. Throws InputError if the weights alone are too much for the
/// machine's DRAM.
[[nodiscard]] Network seeded_network(const NetworkSize& size, const hw::Machine& machine,
                                     bool with_weights = true, const std::string& mask = {});

/// Either, by name or path: throws InputError for an unknown name, and if a size is given to a
/// model that has its own. Of a text network the length alone may be given; it is otherwise
/// kDefaultTextLength, or its positions if they are fewer. Source and target of an encoder-decoder
/// have the same.
[[nodiscard]] Network load_network(const std::string& name_or_path, const SizeOptions& options,
                                   const hw::Machine& machine, bool with_weights = true);

/// The same without a size.
[[nodiscard]] Network load_network(const std::string& name_or_path, const hw::Machine& machine);

/// Bytes of an input tensor of `type` for the values of model::seeded_embedding().
[[nodiscard]] std::vector<std::uint8_t> embedding_bytes(const std::vector<std::int32_t>& values,
                                                        hw::DType type);

/// Bytes of the graph's input tensor for `count` inferences of a network with seeded weights, or of
/// any operators without pictures: seeds kWeightSeed + 1, kWeightSeed + 2, ... Zeros without
/// values.
[[nodiscard]] std::vector<std::vector<std::uint8_t>> seeded_inputs(const Network& network,
                                                                   std::size_t count,
                                                                   bool with_values = true);

/// Bytes of the input tensor for a text of a text network: its embedded tokens with the padding, as
/// many as the graph has rows.
[[nodiscard]] std::vector<std::uint8_t> text_input(const Network& network,
                                                   const model::TokenText& text);

/// NAME under the directory that the environment variable SYSTOLE_DATA names, else the one
/// fixed at build time: "data/kjv.safetensors".
[[nodiscard]] std::string data_file(const std::string& name);

/// The pictures that the models were trained for: data_file("data/digits.safetensors").
[[nodiscard]] std::string default_data();

/// The pictures that a network of a file takes.
[[nodiscard]] model::PictureFormat picture_format(const Network& network);

/// Bytes of the input tensor of a network of a file for each of the first `limit` pictures (all if
/// 0). Throws InputError if the pictures have another size than the model takes.
[[nodiscard]] std::vector<std::vector<std::uint8_t>> network_inputs(const Network& network,
                                                                    const model::Dataset& data,
                                                                    std::size_t limit);

/// Whether the output of the network is a logit for each class.
[[nodiscard]] bool classifies(const Network& network);

/// The class whose logit is the largest, of the bytes of the graph's output tensor.
[[nodiscard]] std::int32_t class_of(const model::Graph& graph,
                                    const std::vector<std::uint8_t>& logits);

/// Fraction of the outputs (bytes of the graph's output tensor, in the order of the inputs) whose
/// largest logit is the input's label; there may be more labels.
[[nodiscard]] double accuracy_of(const model::Graph& graph,
                                 const std::vector<std::uint32_t>& labels,
                                 const std::vector<std::vector<std::uint8_t>>& outputs);

}  // namespace systole::testbench
