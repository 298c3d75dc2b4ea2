#pragma once

#include <chrono>
#include <cstddef>

namespace systole::testbench {

/// A progress bar on standard error: only if that is a terminal, and only once the work has taken
/// longer than a second. Disappears at the end of its life.
class Progress {
 public:
  explicit Progress(std::size_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::size_t done);

 private:
  using Time = std::chrono::steady_clock::time_point;
  const std::size_t total_;
  const bool terminal_;
  Time next_;  ///< when to draw
  bool drawn_ = false;
};

}  // namespace systole::testbench
