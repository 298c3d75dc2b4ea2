#pragma once

#include <string>

#include "model/integer/integer_layers.h"
#include "model/integer/integer_text.h"
#include "model/integer/integer_vit.h"
#include "model/network/network_document.h"

/// Integer networks as network files (docs/network-format.md). What is written is read back to the
/// same constants, bit by bit.
namespace systole::model {

void write_network(const IntegerVit& vit, const std::string& path);
void write_network(const IntegerText& text, const std::string& path);
void write_network(const IntegerLayers& layers, const std::string& path);

/// Which of them a file of integers holds: the one whose input it has.
enum class IntegerKind { kVit, kText, kLayers };
[[nodiscard]] IntegerKind integer_kind(const NetworkDocument& document);

/// Each throws InputError that names file and node where the graph is not that of such a network,
/// and as check_integer_vit() does for constants that the datapath cannot hold.
[[nodiscard]] IntegerVit read_vit_network(const NetworkFile& file);
[[nodiscard]] IntegerText read_text_network(const NetworkFile& file);
[[nodiscard]] IntegerLayers read_layers_network(const NetworkFile& file);

}  // namespace systole::model
