# cmake -D SOURCE=... -D OUT=... -P commit.cmake: writes what the program says of its commit, where that
# has changed. Built from an archive without git, there is none.
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-toplevel
  OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
get_filename_component(source ${SOURCE} REALPATH)
set(commit "")
if(NOT failed AND top STREQUAL source)
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT [[
#include "testbench/cli/common/version.h"

namespace systole::testbench {
const char* const kCommit = "@commit@";
}  // namespace systole::testbench
]] @ONLY)
