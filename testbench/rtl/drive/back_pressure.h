#pragma once

#include <random>

#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// Withholds beats and refuses results at random.
class BackPressureInjector {
 public:
  explicit BackPressureInjector(const BackPressure& pressure)
      : pressure_(pressure), random_(pressure.seed) {}
  bool withholds() { return happens(pressure_.input_per_mille); }
  bool refuses() { return happens(pressure_.output_per_mille); }

 private:
  bool happens(unsigned per_mille) { return per_mille != 0 && random_() % 1000 < per_mille; }

  BackPressure pressure_;
  std::mt19937_64 random_;
};

/// A beat on a stream into a block: once offered, it stays until it is taken.
class OfferedBeat {
 public:
  /// Offers one if the block wants it, unless `injector` (null: none) withholds it. `drive()` puts
  /// it on the pins.
  template <typename Drive>
  void offer(bool wanted, BackPressureInjector* injector, Drive drive) {
    if (offered_ || !wanted || (injector != nullptr && injector->withholds())) return;
    drive();
    offered_ = true;
  }
  /// Says whether the beat is gone.
  bool take(bool ready) {
    const bool taken = offered_ && ready;
    if (taken) offered_ = false;
    return taken;
  }
  [[nodiscard]] bool offered() const { return offered_; }

 private:
  bool offered_ = false;
};

}  // namespace systole::testbench
