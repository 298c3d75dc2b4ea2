#pragma once

#include <string>

namespace systole::testbench {

struct AccuracyOptions {
  std::string model;       ///< empty: all that are shipped
  std::string input;       ///< pictures or texts; empty: the digits
  std::string checkpoint;  ///< empty: the one beside the model
  bool json = false;
};

/// `systole model --accuracy`: prints what the integer model reaches beside the real one, of a text
/// encoder without classes how similar its states are. Returns the exit code. Throws InputError.
int show_accuracy(const AccuracyOptions& options);

}  // namespace systole::testbench
