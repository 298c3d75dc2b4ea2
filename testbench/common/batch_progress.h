#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "testbench/common/progress.h"

namespace systole::testbench {

/// How far a command is that runs many simulations in processes of their own, section by section
/// of its result. While one lives, run_side_by_side(), ChildProcess and Reproduction report to it.
class BatchProgress {
 public:
  BatchProgress();
  ~BatchProgress();
  BatchProgress(const BatchProgress&) = delete;
  BatchProgress& operator=(const BatchProgress&) = delete;

  /// That of this process, null without one: a copy of the process reports nothing.
  [[nodiscard]] static BatchProgress* current();

  /// A section is complete.
  void complete(const std::string& section);
  /// `done` of `total` simulations of the present batch have ended.
  void simulations(std::size_t done, std::size_t total);
  /// Time passes: what it says is drawn again if that is due.
  void tick();

 private:
  static BatchProgress* current_;

  StatusLine line_;
  const pid_t process_;
  std::size_t sections_ = 0, done_ = 0, total_ = 0;
  std::string last_;  ///< section
};

}  // namespace systole::testbench
