#include <cstdlib>
#include <systemc>

#include "testbench/cli/program.h"

namespace {

// The SystemC library prints a banner before it calls sc_main().
[[maybe_unused]] const int kNoBanner = ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);

}  // namespace

int sc_main(int argc, char* argv[]) { return systole::testbench::run_program(argc, argv); }
