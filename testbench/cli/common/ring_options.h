#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "hw/description/core_system.h"
#include "testbench/cores/cores_simulation.h"
#include "testbench/generation/report_generation.h"
#include "testbench/generation/ring_text.h"

namespace systole::testbench {

/// What the ring of a system generates.
struct RingOptions {
  std::string model;  ///< empty: kjv
  std::optional<std::string> prompt;
  std::optional<std::uint32_t> input_tokens, output_tokens;

  [[nodiscard]] bool any() const {
    return !model.empty() || prompt || input_tokens || output_tokens;
  }
};

void add_ring_options(CLI::App& command, RingOptions& options);

/// Throws InputError if something is to be generated.
void require_no_ring_options(const RingOptions& options);

/// What the ring of a system does: its network, and the task that refers to it.
class RingWork {
 public:
  /// `site`: the ring of the system; both outlive it. Throws InputError for what does not fit.
  RingWork(const RingOptions& options, bool functional, const hw::CoreSystem& system,
           const hw::CoreSite& site);
  RingWork(const RingWork&) = delete;
  RingWork& operator=(const RingWork&) = delete;

  [[nodiscard]] RingPart& part() { return part_; }
  [[nodiscard]] GenerationReport report(bool functional, Generation generation) const;

 private:
  RingText text_;
  RingPart part_;
};

}  // namespace systole::testbench
