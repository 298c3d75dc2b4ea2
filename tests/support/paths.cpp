#include "support/paths.h"

namespace systole {

std::string source_path(const std::string& name) { return SYSTOLE_SOURCE_DIR "/" + name; }

}  // namespace systole
