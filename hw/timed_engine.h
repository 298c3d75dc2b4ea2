#pragma once

#include <cstdint>

namespace systole::hw {

/// What has operations at a time that the machine around it knows. Results do not depend on it: it
/// is for waveforms.
class TimedEngine {
 public:
  virtual ~TimedEngine() = default;
  /// What the next call asks for begins in this core cycle.
  virtual void begin_at(std::uint64_t /*cycle*/) {}
  /// Whether values may be asked for at another time than cycles, and by another thread.
  [[nodiscard]] virtual bool is_timeless() const noexcept { return false; }
};

}  // namespace systole::hw
