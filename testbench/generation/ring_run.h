#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/program/program.h"
#include "mapper/ring/pass.h"
#include "testbench/generation/generation.h"
#include "tlm/ring/ring_system.h"

namespace systole::testbench {

/// A text as the cores of a ring work on it: their memories, their programs pass after pass, and
/// what comes out.
class RingRun {
 public:
  /// Both must outlive it. Throws InputError if the network does not fit the machine, or the text
  /// the network.
  RingRun(const hw::Machine& machine, const GenerationTask& task);

  /// For the system; blocks in RTL have the options of their core and count into `report`.
  [[nodiscard]] std::vector<tlm_model::dfx::RingPlace> places(
      const std::function<RtlOptions(std::uint32_t core)>& rtl, RtlReport& report) const;
  /// The next pass of each core; none: the end.
  [[nodiscard]] std::vector<const hw::dfx::Pass*> next(tlm_model::dfx::RingHost& host);
  /// Before it runs: fills the memories of the cards.
  void attach(tlm_model::dfx::RingSystem& system);
  /// What is in the DDR of each core before the first pass, where that is a part of a memory at
  /// `bases`, by core; nothing in a run without values.
  [[nodiscard]] hw::MemoryImage ddr_image(const std::vector<std::uint64_t>& bases) const;
  /// Of the passes; null: none.
  void set_wave(Wave* wave) { wave_ = wave; }

  /// After the run.
  [[nodiscard]] Generation result() const;

 private:
  /// What the cores do next; without ids: nothing.
  struct Step {
    std::vector<std::uint32_t> ids;
    std::uint32_t position = 0;
    bool logits = false;
  };

  [[nodiscard]] Step generation_step() const;
  [[nodiscard]] Step text_step();
  void take_logits(tlm_model::dfx::RingHost& host);
  /// Columns of core `core`, up to the end of the vocabulary.
  [[nodiscard]] std::uint32_t columns_of(std::size_t core) const;
  /// Over PCIe, out of the cores' register files.
  [[nodiscard]] std::vector<hw::Half> read_logits(tlm_model::dfx::RingHost& host) const;
  /// Without time.
  [[nodiscard]] std::vector<hw::Half> logits() const;
  /// Of all cores' winners, which they have exchanged; of equal ones the first.
  [[nodiscard]] std::uint32_t largest() const;

  const hw::Machine& machine_;
  const GenerationTask& task_;
  std::vector<std::unique_ptr<mapper::dfx::PassMaker>> makers_;  ///< by core
  Generation result_;
  std::vector<hw::dfx::Pass> passes_;  ///< by core
  tlm_model::dfx::RingSystem* system_ = nullptr;
  Wave* wave_ = nullptr;
  std::size_t text_ = 0;
  std::uint32_t position_ = 0;  ///< of the current text: tokens so far
  bool has_logits_ = false;
};

}  // namespace systole::testbench
