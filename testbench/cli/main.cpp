#include <systemc>

#include "testbench/cli/program.h"

int sc_main(int argc, char* argv[]) { return systole::testbench::run_command_line(argc, argv); }
