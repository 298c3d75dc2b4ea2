#include "testbench/cores/alone_run.h"

#include <gtest/gtest.h>

#include <deque>
#include <stdexcept>
#include <string>

namespace systole::testbench {
namespace {

TEST(AloneRunTest, GivesBackWhatTheWorkMakesOfItsOrder) {
  int here = 0;
  std::deque<AloneRun> runs;
  for (int i = 0; i < 3; ++i) {
    runs.emplace_back([&here, i](const std::string& order) {
      here = 7;
      return order + std::string(100'000, static_cast<char>('a' + i));
    });
  }
  for (AloneRun& run : runs) run.start("1 2 3 ");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(runs[i].result(), "1 2 3 " + std::string(100'000, static_cast<char>('a' + i)));
  }
  EXPECT_EQ(here, 0) << "another process did it";
}

TEST(AloneRunTest, SaysThatThereIsNoResult) {
  AloneRun throws([](const std::string&) -> std::string { throw std::runtime_error("no"); });
  throws.start("1");
  EXPECT_THROW(static_cast<void>(throws.result()), std::runtime_error);
  AloneRun silent([](const std::string&) { return std::string(); });
  silent.start("1");
  EXPECT_THROW(static_cast<void>(silent.result()), std::runtime_error);
}

// One that is never started ends with its owner.
TEST(AloneRunTest, MayStayWithoutAnOrder) {
  const AloneRun unused([](const std::string&) { return std::string("x"); });
}

}  // namespace
}  // namespace systole::testbench
