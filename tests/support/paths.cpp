#include "support/paths.h"

namespace systole::test {

std::string source_path(const std::string& name) { return SYSTOLE_SOURCE_DIR "/" + name; }

}  // namespace systole::test
