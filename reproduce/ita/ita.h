#pragma once

#include <cstdint>
#include <vector>

#include "hw/stream/stream_core.h"
#include "reproduce/reproduction.h"

namespace systole::testbench {

/// ITA's layers and MobileBERT on the preset ita, beside what was measured and published.
[[nodiscard]] Reproduction reproduce_ita();

/// The products of one block of MobileBERT, by layer that is started on its own.
[[nodiscard]] std::vector<std::vector<hw::stream::Work>> mobilebert_block(std::size_t tokens,
                                                                          std::size_t length);
/// Multiply-accumulates of such a block, heads of 32 features.
[[nodiscard]] std::uint64_t mobilebert_block_macs(std::uint64_t tokens);

}  // namespace systole::testbench
