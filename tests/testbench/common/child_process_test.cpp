#include "testbench/common/child_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace systole::testbench {
namespace {

struct Numbers {
  std::uint64_t whole;
  double real;
};

TEST(ChildProcess, HandsBackWhatTheWorkGave) {
  const Numbers numbers = in_child([] { return Numbers{~std::uint64_t{0}, 0.5}; });
  EXPECT_EQ(numbers.whole, ~std::uint64_t{0});
  EXPECT_EQ(numbers.real, 0.5);
}

TEST(ChildProcess, IsAnother) {
  int mine = 1;
  const pid_t child = in_child([&] {
    mine = 2;
    return ::getpid();
  });
  EXPECT_EQ(mine, 1);
  EXPECT_NE(child, ::getpid());
}

TEST(ChildProcess, PassesOnWhatWentWrong) {
  try {
    (void)in_child([]() -> int { throw std::invalid_argument("too little of it"); });
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(error.what(), std::string("too little of it"));
  }
}

TEST(ChildProcess, NoticesAnEndWithoutAResult) {
  EXPECT_THROW((void)in_child([]() -> int { ::_exit(0); }), std::runtime_error);
  EXPECT_THROW((void)run_in_child([]() -> Bytes { ::_exit(0x7F); }), std::runtime_error);
}

TEST(ChildProcess, EndsACopyThatNobodyWaitsFor) {
  const ChildProcess endless([]() -> Bytes {
    for (;;) ::usleep(1000);
  });
}

}  // namespace
}  // namespace systole::testbench
