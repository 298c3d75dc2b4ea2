#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace systole::testbench {

/// A simulation in a separate process, which begins as a copy of this one: the kernel of SystemC
/// elaborates once per process. To be made before this process elaborates.
class AloneRun {
 public:
  /// The copy waits for start(), calls `work` with its text, and sends back what that returns.
  explicit AloneRun(const std::function<std::string(const std::string& order)>& work);
  ~AloneRun();
  AloneRun(const AloneRun&) = delete;
  AloneRun& operator=(const AloneRun&) = delete;

  /// `order` is one line.
  void start(const std::string& order);
  /// Waits for the result. Throws std::runtime_error if the copy has none.
  [[nodiscard]] std::string result();

 private:
  pid_t child_ = -1;
  int orders_ = -1, results_ = -1;  ///< ends of pipes
};

}  // namespace systole::testbench
