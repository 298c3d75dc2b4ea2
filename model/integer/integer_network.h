#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/integer/integer_layers.h"
#include "model/integer/integer_llama.h"
#include "model/integer/integer_seq2seq.h"
#include "model/integer/integer_text.h"
#include "model/integer/integer_vit.h"
#include "model/network/network_document.h"
#include "model/network/network_walk.h"

/// Integer networks as network files (docs/network-format.md). What is written is read back to the
/// same constants, bit by bit.
namespace systole::model {

inline constexpr const char* kSeq2SeqFamily = "encoder-decoder";
/// The graph input of an encoder-decoder that its decoder reads.
inline constexpr const char* kTargetIds = "decoder_input_ids";

void write_network(const IntegerVit& vit, const std::string& path);
void write_network(const IntegerText& text, const std::string& path);
void write_network(const IntegerLayers& layers, const std::string& path);
/// Its architecture has kSeq2SeqFamily and the tokens that mean no text.
void write_network(const IntegerSeq2Seq& network, const std::string& path);

/// `tokeniser`: the metadata of the network that it was made of, or empty. Throws InputError for
/// one whose rows have no scales of their own, too.
void write_network(const IntegerLlama& llama, const std::string& tokeniser,
                   const std::string& path);

/// Which of them a file of integers holds: the one whose input it has.
enum class IntegerKind { kVit, kText, kSeq2Seq, kLlama, kLayers, kOperators };
[[nodiscard]] IntegerKind integer_kind(const NetworkDocument& document);

/// The datapath that a network of integers is for. Throws InputError for one of real numbers, and
/// for keys that are missing, unknown or out of range.
[[nodiscard]] hw::Machine::Datapath network_datapath(const NetworkFile& file);

/// Factors of a node: multipliers and shifts are its inputs `first` and `first` + 1.
[[nodiscard]] std::vector<hw::Dyadic> read_factors(const NetworkFile& file, const NetworkNode& node,
                                                   std::size_t first);
/// Operands of a linear node whose weights have eight bits.
inline constexpr std::size_t kUngroupedOperands = 5;
/// The weights, bias and factors of a linear node, in the places of those of `layer`.
void read_linear(const NetworkFile& file, const NetworkNode& node, IntegerLinear& layer,
                 bool may_have_bits = false);

/// Each throws InputError that names file and node where the graph is not that of such a network,
/// and as check_integer_vit() does for constants that the datapath cannot hold.
[[nodiscard]] IntegerVit read_vit_network(const NetworkFile& file);
[[nodiscard]] IntegerText read_text_network(const NetworkFile& file);
/// A text network that is a part of a file: `end` makes its result. `memory`, if not null, becomes
/// the value which its blocks attend to besides their own text; empty: none. `ids`, if not null, is
/// the graph input that it has to read.
[[nodiscard]] IntegerText read_text(const NetworkWalk& walk, const NetworkNode& end,
                                    std::string* memory, const char* ids = nullptr);
[[nodiscard]] IntegerSeq2Seq read_seq2seq_network(const NetworkFile& file);
[[nodiscard]] IntegerLlama read_llama_network(const NetworkFile& file);
[[nodiscard]] IntegerLayers read_layers_network(const NetworkFile& file);

}  // namespace systole::model
