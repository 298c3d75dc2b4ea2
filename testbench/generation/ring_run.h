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

/// Texts as the cores of a ring work on them: their memories, their programs pass after pass, and
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
  /// The texts again, as if nothing had been generated.
  void restart();
  /// So far, by text.
  [[nodiscard]] const std::vector<std::vector<std::uint32_t>>& generated() const {
    return generated_;
  }
  /// When the first token of the first text was chosen, since the last start; 0: it was not.
  [[nodiscard]] std::uint64_t first_token_ps() const { return first_token_ps_; }
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
  /// What the cores do next; without rows: nothing.
  struct Step {
    std::vector<mapper::dfx::PassRow> rows;
    std::size_t first_logits = 0;  ///< rows from this one on have logits
  };

  /// The next tokens of as many texts as can run together, or of a prompt as can.
  [[nodiscard]] Step next_step();
  [[nodiscard]] Step prompt_step() const;
  /// Rows that all cores have registers for.
  [[nodiscard]] std::uint32_t max_rows() const;
  /// Texts side by side that are not over.
  [[nodiscard]] std::uint32_t texts() const;
  /// Tokens that a text runs through the network.
  [[nodiscard]] std::uint32_t length() const;
  [[nodiscard]] std::uint32_t token_of(std::uint32_t text, std::uint32_t position) const;
  /// Of a row of the last pass; `number`: which of those with logits.
  void take_logits(tlm_model::dfx::RingHost& host, const mapper::dfx::PassRow& row,
                   std::uint32_t number);
  /// Columns of core `core`, up to the end of the vocabulary.
  [[nodiscard]] std::uint32_t columns_of(std::size_t core) const;
  /// Over PCIe, out of the cores' register files.
  [[nodiscard]] std::vector<hw::Half> read_logits(tlm_model::dfx::RingHost& host,
                                                  std::uint32_t number) const;
  /// Without time.
  [[nodiscard]] std::vector<hw::Half> logits(std::uint32_t number) const;
  /// Of all cores' winners, which they have exchanged; of equal ones the first.
  [[nodiscard]] std::uint32_t largest(std::uint32_t number) const;

  const hw::Machine& machine_;
  const GenerationTask& task_;
  std::vector<std::unique_ptr<mapper::dfx::PassMaker>> makers_;  ///< by core
  Generation result_;
  std::vector<hw::dfx::Pass> passes_;  ///< by core
  tlm_model::dfx::RingSystem* system_ = nullptr;
  Wave* wave_ = nullptr;
  std::vector<std::vector<std::uint32_t>> generated_;  ///< by text
  std::uint64_t first_token_ps_ = 0;
  std::size_t window_ = 0;      ///< of task.texts: the first that runs now
  std::uint32_t position_ = 0;  ///< tokens so far, of the texts side by side
  std::uint32_t turn_ = 0;      ///< the first of them that is yet to come
  Step step_;                   ///< the last one
};

}  // namespace systole::testbench
