#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/ring/instruction.h"
#include "model/checkpoint/text_checkpoint.h"

namespace systole::testbench {

/// A text of which only the time counts.
struct DfxTask {
  std::string shape;  ///< of model::gpt_shape()
  std::uint32_t cores = 1;
  std::uint32_t input = 4, output = 4;  ///< tokens
  std::string machine = "dfx";
  std::vector<std::string> settings = {};  ///< "ring.hop_ns=300"
  std::uint32_t layers = 0;                ///< of the network's, which are alike; 0: all

  [[nodiscard]] hw::Machine make_machine() const;
  [[nodiscard]] model::TextShape make_shape() const;
};

/// What came out of one.
struct DfxRun {
  DfxTask task;
  nlohmann::ordered_json figures;

  [[nodiscard]] double number(const char* name) const { return figures.at(name).get<double>(); }
  /// From the host's start to its notice of the end.
  [[nodiscard]] double milliseconds() const { return number("total_ms"); }
  [[nodiscard]] double first_token_milliseconds() const { return number("first_ms"); }
  /// Without the host's time.
  [[nodiscard]] double pass_milliseconds() const { return number("pass_ms"); }
  [[nodiscard]] double last_pass_milliseconds() const { return number("last_ms"); }
  [[nodiscard]] double tokens_per_second() const { return 1e3 * task.output / milliseconds(); }
  /// Cycles of core 0 in that phase, of all passes.
  [[nodiscard]] double cycles(hw::dfx::Phase phase) const {
    return figures.at("phases").at(static_cast<std::size_t>(phase)).get<double>();
  }
  /// Of all phases.
  [[nodiscard]] double share(hw::dfx::Phase phase) const;
  /// Cycles of a layer in a pass.
  [[nodiscard]] double layer_cycles() const;
  /// Exchanges of a layer in a pass.
  [[nodiscard]] double layer_syncs() const;
  /// What they take of core 0's time.
  [[nodiscard]] double layer_sync_microseconds() const;
  /// Over a link in a pass, of a layer: mean of all links, without what follows the LM head.
  [[nodiscard]] double layer_link_bytes() const;
};

/// Simulates them, as many at a time as the host has processors; in the order of the tasks.
[[nodiscard]] std::vector<DfxRun> run_dfx(const std::vector<DfxTask>& tasks);

}  // namespace systole::testbench
