#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mapper/mapping.h"

namespace systole::testbench {

/// What the mapper decided for one operator.
struct OperatorSummary {
  std::string name;
  std::uint32_t m = 0, n = 0, k = 0;  ///< k is 0 without a matmul
  std::uint32_t tile_m = 0, tile_n = 0, tile_k = 0;
  std::uint64_t tiles = 0;  ///< of its result
  std::uint64_t commands = 0;
  std::uint64_t cycles = 0;  ///< expected, alone
  std::uint64_t load_bytes = 0;
  bool on_chip = false;  ///< the result stays in the scratchpad
  std::vector<std::string> stages;
};

[[nodiscard]] std::vector<OperatorSummary> summarise(const mapper::Mapping& mapping);

/// At most kTextWidth columns. `files` have been written (empty names aside).
[[nodiscard]] std::string mapping_text(const std::string& model, const std::string& machine,
                                       const mapper::Mapping& mapping,
                                       const std::vector<std::string>& files);
[[nodiscard]] nlohmann::ordered_json mapping_json(const std::string& model,
                                                  const std::string& machine,
                                                  const mapper::Mapping& mapping);

}  // namespace systole::testbench
