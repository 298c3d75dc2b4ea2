#pragma once

#include <cstdint>
#include <string>
#include <systemc>
#include <vector>

#include "base/accounting.h"
#include "tlm/common/time.h"
#include "tlm/common/wave_states.h"

namespace systole::tlm_model {

/// Where a module shows values whose times it knows, such as those of a transaction that has been
/// planned: no simulated event is needed for them.
///
/// A time may lie before the present one, but not before what the module says has settled (see
/// Watched). What changes twice at one time shows its last value only.
class SignalRecorder {
 public:
  using Signal = std::uint32_t;
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};  ///< the signal has no value

  /// What a signal shows of values that hold for a while each.
  enum class Kind : std::uint8_t {
    kLatest,   ///< the one that began last; none: no value
    kHighest,  ///< the largest, below 64; none: 0
    kUnion,    ///< bit i for each value i that holds, below 64; none: 0
    kNumber,   ///< that of set() and add(); 0 at first
  };

  virtual ~SignalRecorder() = default;

  /// A signal of `width` bits with a dotted path as its name. To be called before the simulation.
  virtual Signal add_signal(const std::string& name, unsigned width, Kind kind) = 0;
  /// The value holds from `from` until `to`, ps; not at all if that is no later.
  virtual void hold(Signal signal, std::uint64_t from, std::uint64_t to, std::uint64_t value) = 0;
  /// From `at` ps on, a kNumber shows this value, or kNone.
  virtual void set(Signal signal, std::uint64_t at, std::uint64_t value) = 0;
  /// From `at` ps on, a kNumber shows so much more.
  virtual void add(Signal signal, std::uint64_t at, std::int64_t change) = 0;
  /// Names of the initiators of the bus, by number.
  virtual void name_initiators(const std::vector<std::string>& names) = 0;

  /// Whether what is shown is still recorded: modules need not show more.
  [[nodiscard]] bool records() const noexcept { return records_; }

  /// A place in kWaveStates; several hold: the later one.
  Signal add_state(const std::string& name) { return add_signal(name, 6, Kind::kHighest); }

 protected:
  void stop_recording() noexcept { records_ = false; }

 private:
  bool records_ = true;
};

/// A module with such values. Without a recorder it spends nothing on them.
class Watched {
 public:
  virtual ~Watched() = default;
  /// Adds its signals, and shows what happens from now on. The recorder outlives the simulation.
  virtual void watch(SignalRecorder& recorder) = 0;
  /// Nothing will be shown from before this time, ps; now or earlier.
  [[nodiscard]] virtual std::uint64_t settled_ps() const { return to_ps(sc_core::sc_time_stamp()); }
};

/// Shows an account as a signal of wave_states.h.
class AccountSignal final : public hw::AccountWatch {
 public:
  /// Of an account in cycles of `clock`, or in ps if that is null.
  AccountSignal(SignalRecorder& recorder, const std::string& name, const hw::BlockAccount& account,
                const Clock* clock);

  void spend(std::uint64_t from, std::uint64_t to, std::uint8_t state) override;

 private:
  SignalRecorder& recorder_;
  const SignalRecorder::Signal signal_;
  const Clock* const clock_;
  std::vector<std::uint8_t> states_;  ///< by what the account calls them
};

}  // namespace systole::tlm_model
