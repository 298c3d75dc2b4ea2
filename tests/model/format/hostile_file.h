#pragma once

#include <string>

namespace systole::model {

/// What a reader has to refuse.
struct HostileFile {
  const char* name;
  std::string bytes;
  const char* hint;  // must be part of the message
};

}  // namespace systole::model
