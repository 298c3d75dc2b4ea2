#pragma once

#include <string>
#include <string_view>

#include "base/accounting.h"

/// The tables of the documentation that follow from the code, in Markdown.
namespace systole::testbench {

/// Keys of one section of a machine file, and the rules that begin with one of them. Throws
/// std::invalid_argument for a section without keys.
[[nodiscard]] std::string keys_table(std::string_view section);

/// What a block counts, without its timelines. Initiators and channels, of which there are any
/// number, are written as INITIATOR and channelN.
[[nodiscard]] std::string counters_table(const hw::BlockReport& report);

/// Parts of a block's timelines: busy, the causes of stalls, idle, total.
[[nodiscard]] std::string stalls_table(const hw::BlockReport& report);

/// Every stage of the post-op chain with its operands and its cost.
[[nodiscard]] std::string stages_table();

/// Every operator of a network file.
[[nodiscard]] std::string network_ops_table();

/// Every field of an encoded instruction of a core for text generation.
[[nodiscard]] std::string instruction_fields_table();

/// Cycles of a lone 128x768x768 product on square arrays of 16, 32 and 128 PEs a side.
[[nodiscard]] std::string array_cycles_table();

}  // namespace systole::testbench
