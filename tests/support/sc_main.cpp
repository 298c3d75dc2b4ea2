#include <gtest/gtest.h>

#include <systemc>

// libsystemc brings main(); with gtest_main the link order would decide whether any test runs.
int sc_main(int argc, char* argv[]) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
