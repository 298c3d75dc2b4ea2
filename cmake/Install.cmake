# What `cmake --install` and packages leave: the program with its data, and the rooms below it as a CMake
# package, so that users' own SystemC can be built with them: find_package(Systole), systole::tlm.
include(CMakePackageConfigHelpers)

# The program with what comes with it, laid out as here (base/installation.h).
function(install_program component bin share)
  install(TARGETS systole DESTINATION ${bin} COMPONENT ${component} ${ARGN})
  install(DIRECTORY traces DESTINATION ${share} COMPONENT ${component} ${ARGN})
  install(DIRECTORY testbench/page DESTINATION ${share}/testbench COMPONENT ${component} ${ARGN}
    FILES_MATCHING PATTERN "*.js" PATTERN "*.css" PATTERN "*.html")
  install(DIRECTORY third_party/echarts DESTINATION ${share}/third_party COMPONENT ${component} ${ARGN})
endfunction()

if(SYSTOLE_PROGRAM)
  install_program(program ${CMAKE_INSTALL_BINDIR} ${CMAKE_INSTALL_DATADIR}/systole)
  install(DIRECTORY python/systole python/systole_convert
    DESTINATION ${CMAKE_INSTALL_DATADIR}/systole/python COMPONENT program
    PATTERN "__pycache__" EXCLUDE PATTERN "*.pyc" EXCLUDE)
  # What `systole rtl add` builds users' RTL with.
  install(DIRECTORY base hw DESTINATION ${CMAKE_INSTALL_DATADIR}/systole/include COMPONENT program
    FILES_MATCHING PATTERN "*.h")
  install(DIRECTORY testbench/rtl DESTINATION ${CMAKE_INSTALL_DATADIR}/systole/include/testbench
    COMPONENT program FILES_MATCHING PATTERN "*.h")
  install(DIRECTORY rtl DESTINATION ${CMAKE_INSTALL_DATADIR}/systole COMPONENT program)
  install(FILES cmake/systole.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    RENAME systole COMPONENT program)
  set(page ${CMAKE_CURRENT_BINARY_DIR}/systole.1)
  install(CODE "execute_process(COMMAND ${PROJECT_SOURCE_DIR}/script/man $<TARGET_FILE:systole> ${page}
    COMMAND_ERROR_IS_FATAL ANY)" COMPONENT program)
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
  # What a wheel carries beside the Python package.
  install_program(python systole/bin systole/share/systole EXCLUDE_FROM_ALL)
endif()

set(rooms base hw model mapper analysis tlm)
list(TRANSFORM rooms PREPEND systole_ OUTPUT_VARIABLE libraries)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Systole)
install(TARGETS ${libraries} EXPORT SystoleTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  COMPONENT development)
install(EXPORT SystoleTargets NAMESPACE systole:: DESTINATION ${package} COMPONENT development)
foreach(room ${rooms})
  install(DIRECTORY ${room} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/systole COMPONENT development
    FILES_MATCHING PATTERN "*.h")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/version.h CONTENT [[
#pragma once

/// The version of these headers, for users' own code: major.minor.patch.
#define SYSTOLE_VERSION_MAJOR @PROJECT_VERSION_MAJOR@
#define SYSTOLE_VERSION_MINOR @PROJECT_VERSION_MINOR@
#define SYSTOLE_VERSION_PATCH @PROJECT_VERSION_PATCH@
]] @ONLY)
configure_package_config_file(cmake/SystoleConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/SystoleConfig.cmake
  INSTALL_DESTINATION ${package})
# Before 1.0 a minor version may change interfaces.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/SystoleConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/version.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/systole COMPONENT development)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/SystoleConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/SystoleConfigVersion.cmake cmake/FindSystemC.cmake
  DESTINATION ${package} COMPONENT development)

# `cpack -G DEB` in the build folder.
set(CPACK_PACKAGE_NAME systole)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Cycle-level models of Transformer inference accelerators")
set(CPACK_PACKAGE_CONTACT "the Systole maintainers <systole@example.org>")
set(CPACK_COMPONENTS_ALL program development)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION electronics)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# To build users' own SystemC with it, and to look at waveforms.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, cmake, pkg-config, libsystemc-dev, libboost-dev, libhwy-dev, \
libtomlplusplus-dev, libfmt-dev, nlohmann-json3-dev, libutf8proc-dev, gtkwave")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
include(CPack)
