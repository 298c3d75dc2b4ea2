#include "tests/testbench/program_run.h"

namespace systole {

const char* program_path() { return SYSTOLE_PROGRAM; }

}  // namespace systole
