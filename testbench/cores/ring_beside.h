#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hw/description/core_system.h"
#include "hw/program/program.h"
#include "testbench/cores/cores_simulation.h"
#include "testbench/generation/generation.h"
#include "testbench/generation/ring_run.h"
#include "testbench/wave/wave.h"
#include "tlm/mixed_system.h"

namespace systole::testbench {

/// The ring in a run of other cores: what it does, and its part of the accounts.
class RingBeside {
 public:
  /// `part` must outlive it. `functional` off: the same passes without values.
  RingBeside(const RingPart& part, bool functional);

  /// For the system; its programs come from this object.
  [[nodiscard]] tlm_model::RingSite site();
  [[nodiscard]] const hw::MemoryImage& image() const { return image_; }
  void attach(tlm_model::MixedSystem& system);
  /// Off: its host has nothing for it to do, in a run of another core alone.
  void set_running(bool on) { runs_ = on; }
  /// Each of its cores, by the names of their modules.
  [[nodiscard]] std::vector<WaveCore> wave_cores() const;

  /// Throws InputError if a core had no program that it could run.
  [[nodiscard]] Generation result() const;
  /// What it did, in cycles of its clock: `path` by phase of its first core.
  [[nodiscard]] CoreShare share() const;
  [[nodiscard]] RequestTimes requests() const;

 private:
  [[nodiscard]] std::vector<const hw::dfx::Pass*> next(tlm_model::dfx::RingHost& host);

  const RingPart& part_;
  const GenerationTask task_;
  RingRun run_;
  const hw::MemoryImage image_;
  RtlReport rtl_;
  bool runs_ = true;
  tlm_model::MixedSystem* system_ = nullptr;
};

/// What the logits of a text are on the ring alone, with a DDR on each card, in a copy
/// of this process: made before this process elaborates, run when it is asked.
class LogitsAlone {
 public:
  explicit LogitsAlone(const RingPart& part);
  ~LogitsAlone();

  /// Those of the run beside other cores, as they come.
  void add(std::uint32_t position, const std::vector<hw::Half>& logits);
  /// Compares all of them, a row for each position.
  [[nodiscard]] CheckResult compare();

 private:
  struct Alone;
  std::unique_ptr<Alone> alone_;
  std::string found_;  ///< a line for each row: position, and what its bits hash to
  CheckResult result_;
};

}  // namespace systole::testbench
