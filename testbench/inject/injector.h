#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "testbench/inject/injection.h"
#include "tlm/system.h"

namespace systole::testbench {

/// Flips bits in a run: of one injection, or of many in copies of the process, each of which goes
/// on from the step before which its bits flip.
class Injector final : public tlm_model::UseObserver {
 public:
  /// `results` outlives the injector and is shared by all copies of the process.
  Injector(tlm_model::System& system, InjectionResult* results)
      : system_(system), results_(results) {}

  /// The injections with these positions in `results`, all with toggles, in copies. `done` is
  /// called after each.
  void inject_in_copies(std::vector<std::size_t> positions, std::function<void()> done);
  /// One in this process. `as_early`: before the first step that allows it, not the last.
  void inject(std::size_t position, bool as_early);
  /// The injection of this process; nothing: it runs without errors.
  [[nodiscard]] std::optional<std::size_t> own() const { return own_; }

  std::uint64_t step() override;
  [[nodiscard]] std::uint64_t last_step() const override { return steps_ - 1; }
  void use(tlm_model::StoredUse /*use*/) override {}
  [[nodiscard]] std::optional<tlm_model::MatmulSplit> split() override { return split_; }
  void between_parts() override;
  [[nodiscard]] std::optional<hw::ArrayFlip> array_flip() override { return array_flip_; }

 private:
  void flip();
  /// Flips what is due before a step.
  void flip_before(std::uint64_t step);

  tlm_model::System& system_;
  InjectionResult* const results_;
  std::vector<std::size_t> waiting_;  ///< by the step of the first toggle
  std::size_t next_ = 0;
  std::function<void()> done_;
  std::optional<std::size_t> own_;
  FlipPlan plan_;  ///< of own_
  std::optional<tlm_model::MatmulSplit> split_;
  std::optional<hw::ArrayFlip> array_flip_;
  std::uint64_t steps_ = 0;
};

}  // namespace systole::testbench
