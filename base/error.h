#pragma once

#include <stdexcept>

namespace systole::hw {

/// Untrusted input (a file, a command line) that cannot be used. The text is one line: what and
/// where ("file: place"), what was wrong, what was expected. The program prints it and exits
/// with 2.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace systole::hw
