#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace systole::testbench {

/// When the operations of blocks in RTL happen in the system around them: their waveforms then have
/// its time.
class SystemTime {
 public:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  explicit SystemTime(std::uint32_t clock_mhz) : clock_mhz_(clock_mhz) {}

  /// Operations from now on begin in this cycle; kNone: at no time of the system.
  void begin_at(std::uint64_t cycle) noexcept { cycle_ = cycle; }
  [[nodiscard]] std::uint64_t cycle() const noexcept { return cycle_; }
  /// ps, rounded down like the edges of the system's clocks.
  [[nodiscard]] std::uint64_t edge_ps(std::uint64_t cycle) const noexcept {
    constexpr std::uint64_t kMillion = 1'000'000;
    return cycle * kMillion / clock_mhz_;
  }

 private:
  const std::uint32_t clock_mhz_;
  std::uint64_t cycle_ = kNone;
};

/// An engine whose operations are RTL's.
template <typename Engine>
class TimedRtl : public Engine {
 public:
  /// `time`: null if nothing is recorded.
  explicit TimedRtl(std::shared_ptr<SystemTime> time) : time_(std::move(time)) {}
  void begin_at(std::uint64_t cycle) override {
    if (time_) time_->begin_at(cycle);
  }

 protected:
  const std::shared_ptr<SystemTime> time_;
};

}  // namespace systole::testbench
