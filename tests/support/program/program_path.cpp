#include "tests/support/program/program_run.h"

namespace systole {

const char* program_path() { return SYSTOLE_PROGRAM; }

}  // namespace systole
