#pragma once

#include <string>
#include <vector>

#include "model/checkpoint/text_checkpoint.h"
#include "model/checkpoint/vit_checkpoint.h"
#include "model/network/network_document.h"

/// Real-valued networks as network files (docs/network-format.md). What is written is read back to
/// the same numbers, bit by bit.
namespace systole::model {

void write_network(const VitCheckpoint& checkpoint, const std::string& name,
                   const std::string& path);
/// `head`: what makes the next word of the last norm's output, [vocabulary, width]; empty: none.
void write_network(const TextCheckpoint& checkpoint, const std::vector<double>& head,
                   const std::string& name, const std::string& path);

/// Throws InputError for a network of integers, and that names the node where the graph is not that
/// of such a network. Pictures that a `normalise` reads are bytes, see load_vit_checkpoint().
[[nodiscard]] VitCheckpoint read_vit_checkpoint(const NetworkFile& file);

struct TextWithHead {
  TextCheckpoint text;
  std::vector<double> head;  ///< [vocabulary, width]; empty: the network has none
};
[[nodiscard]] TextWithHead read_text_checkpoint(const NetworkFile& file);

/// Whether the network reads pictures.
[[nodiscard]] bool reads_pictures(const NetworkDocument& document);

}  // namespace systole::model
