# Debian's libsystemc-dev ships pkg-config files but no CMake package.
# Provides SystemC::systemc, the name that upstream's own package uses.
find_package(PkgConfig QUIET)
pkg_check_modules(SystemC_PC QUIET systemc)
find_path(SystemC_INCLUDE_DIR systemc HINTS ${SystemC_PC_INCLUDEDIR} $ENV{SYSTEMC_HOME}/include)
find_library(SystemC_LIBRARY systemc HINTS ${SystemC_PC_LIBDIR} $ENV{SYSTEMC_HOME}/lib)
set(SystemC_VERSION ${SystemC_PC_VERSION})

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SystemC
  REQUIRED_VARS SystemC_LIBRARY SystemC_INCLUDE_DIR
  VERSION_VAR SystemC_VERSION)

if(SystemC_FOUND AND NOT TARGET SystemC::systemc)
  add_library(SystemC::systemc UNKNOWN IMPORTED)
  set_target_properties(SystemC::systemc PROPERTIES
    IMPORTED_LOCATION "${SystemC_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${SystemC_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS SC_INCLUDE_DYNAMIC_PROCESSES)
endif()
