/// The border between integer time inside a block and sc_time. All conversions are exact or round
/// up to a clock edge; none goes through a double.
#pragma once

#include <cstdint>
#include <systemc>

namespace systole::tlm_model {

/// Picoseconds of `time`. Needs the default resolution of 1 ps, see require_ps_resolution().
[[nodiscard]] inline std::uint64_t to_ps(const sc_core::sc_time& time) { return time.value(); }
[[nodiscard]] inline sc_core::sc_time from_ps(std::uint64_t ps) {
  return sc_core::sc_time::from_value(ps);
}

/// Modules that use to_ps() and from_ps() call this in their constructor. Reports an error if the
/// simulation does not count in picoseconds.
inline void require_ps_resolution() {
  if (sc_core::sc_get_time_resolution() != sc_core::sc_time(1, sc_core::SC_PS)) {
    SC_REPORT_ERROR("/systole/time", "the time resolution must be 1 ps");
  }
}

/// Edges of a clock that starts at time 0. Edge n is at floor(n * 10^6 / mhz) ps, so a period that
/// is no whole number of picoseconds does not drift. Exact up to 2^64 / 10^6 cycles and
/// 2^64 / mhz ps (five hours at 1 GHz).
class Clock {
 public:
  /// `mhz` in 1 .. 10^6.
  explicit Clock(std::uint32_t mhz)
      : mhz_(mhz), whole_period_ps_(mhz != 0 && kMillion % mhz == 0 ? kMillion / mhz : 0) {
    if (mhz < 1 || mhz > kMillion) {
      SC_REPORT_ERROR("/systole/time", "a clock frequency must be in 1 .. 1000000 MHz");
    }
  }

  [[nodiscard]] std::uint64_t edge_ps(std::uint64_t cycle) const noexcept {
    return whole_period_ps_ != 0 ? cycle * whole_period_ps_ : cycle * kMillion / mhz_;
  }
  /// First edge at or after `ps`. Inverse of edge_ps().
  [[nodiscard]] std::uint64_t cycle_from_ps(std::uint64_t ps) const noexcept {
    return (ps * mhz_ + kMillion - 1) / kMillion;
  }
  [[nodiscard]] sc_core::sc_time edge(std::uint64_t cycle) const { return from_ps(edge_ps(cycle)); }
  [[nodiscard]] std::uint64_t cycle_from(const sc_core::sc_time& time) const noexcept {
    return cycle_from_ps(to_ps(time));
  }
  [[nodiscard]] std::uint32_t mhz() const noexcept { return mhz_; }
  /// Whether times `ps` apart are as many cycles apart, cycles_in() of them, wherever they begin.
  [[nodiscard]] bool divides(std::uint64_t ps) const noexcept {
    return whole_period_ps_ != 0 && ps % whole_period_ps_ == 0;
  }
  [[nodiscard]] std::uint64_t cycles_in(std::uint64_t ps) const noexcept {
    return ps / whole_period_ps_;
  }

  /// Waits, in an SC_THREAD, for the edge of `cycle`; not at all if that has passed.
  void wait_until(std::uint64_t cycle) const {
    const sc_core::sc_time at = edge(cycle);
    if (at > sc_core::sc_time_stamp()) sc_core::wait(at - sc_core::sc_time_stamp());
  }

 private:
  static constexpr std::uint64_t kMillion = 1'000'000;
  std::uint32_t mhz_;
  std::uint64_t whole_period_ps_;  ///< saves a division; 0 if the period is no whole number
};

}  // namespace systole::tlm_model
