#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hw/memory/word_code.h"
#include "testbench/inject/injection.h"
#include "tlm/common/stored_use.h"

namespace systole::testbench {

/// The uses of all stored bytes in a run without errors, by address.
class UseLog final : public tlm_model::UseObserver {
 public:
  std::uint64_t step() override { return steps_++; }
  [[nodiscard]] std::uint64_t last_step() const override { return steps_ == 0 ? 0 : steps_ - 1; }
  void use(tlm_model::StoredUse use) override;
  void product(const tlm_model::ArrayProduct& product) override { products_.push_back(product); }

  /// How bits of a byte that flip at the begin of `cycle`, of the core's clock, meet the uses.
  /// `flips`: how many, for the code of the memory.
  /// Throws std::logic_error if reads in another order of time than of steps are too many for a
  /// plan.
  [[nodiscard]] FlipPlan resolve(hw::Space space, std::uint64_t address, std::uint64_t cycle,
                                 const hw::WordCode& code = {}, std::uint32_t flips = 1) const;

  /// The same for a bit of a register of the array: at most one product is in flight in it.
  [[nodiscard]] FlipPlan resolve(const hw::ArrayFlip& flip, std::uint64_t cycle) const;

 private:
  struct Found {
    const tlm_model::StoredUse* use;
    std::int64_t cycle;  ///< of its first use of the byte
  };
  /// What a code that sees the flips does at the first use of the word.
  [[nodiscard]] FlipPlan::Fate checked(hw::Space space, std::uint64_t address, std::uint64_t cycle,
                                       const hw::WordCode& code, std::uint32_t flips) const;
  /// Uses of a byte in the order of steps.
  [[nodiscard]] std::vector<Found> uses_of(hw::Space space, std::uint64_t address) const;
  [[nodiscard]] static std::uint64_t page_of(hw::Space space, std::uint64_t address);

  std::uint64_t steps_ = 0;
  std::vector<tlm_model::StoredUse> uses_;
  std::vector<tlm_model::ArrayProduct> products_;                        ///< by their begin
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> pages_;  ///< positions in uses_
};

}  // namespace systole::testbench
