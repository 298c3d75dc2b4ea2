# systole::verilated_rtl: the Verilated blocks and Verilator's runtime. Makefile.verilator builds
# them, for every preset the same, and knows itself what is out of date.
find_package(ZLIB REQUIRED)  # the FST writer of Verilator's runtime
find_program(MAKE_PROGRAM make REQUIRED)
find_program(VERILATOR_PROGRAM verilator REQUIRED)
execute_process(COMMAND ${VERILATOR_PROGRAM} --getenv VERILATOR_ROOT
  OUTPUT_VARIABLE VERILATOR_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

set(RTL_OUT build/rtl)
set(RTL_LIBRARY ${PROJECT_SOURCE_DIR}/${RTL_OUT}/libsystole_rtl.a)
include(ProcessorCount)
ProcessorCount(RTL_JOBS)
add_custom_target(build_verilated_rtl
  COMMAND ${MAKE_PROGRAM} --no-print-directory -s -j${RTL_JOBS} -f Makefile.verilator OUT=${RTL_OUT} lib
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
  BYPRODUCTS ${RTL_LIBRARY}
  COMMENT "Verilated RTL")
file(MAKE_DIRECTORY ${PROJECT_SOURCE_DIR}/${RTL_OUT}/include)

add_library(systole_verilated_rtl INTERFACE)
add_library(systole::verilated_rtl ALIAS systole_verilated_rtl)
add_dependencies(systole_verilated_rtl build_verilated_rtl)
target_include_directories(systole_verilated_rtl SYSTEM INTERFACE
  ${PROJECT_SOURCE_DIR}/${RTL_OUT}/include ${VERILATOR_ROOT}/include ${VERILATOR_ROOT}/include/vltstd)
target_link_libraries(systole_verilated_rtl INTERFACE ${RTL_LIBRARY} ZLIB::ZLIB pthread atomic)
