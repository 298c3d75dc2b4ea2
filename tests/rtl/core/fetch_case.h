#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hw/program/program_image.h"
#include "testbench/rtl/core/command_fetch_rtl.h"
#include "tests/hw/program/random_program.h"
#include "tests/rtl/dma/read_answers.h"

namespace systole::testbench {

/// A program of random commands in a memory, and how long each of them waits to be taken.
class RandomFetch {
 public:
  explicit RandomFetch(hw::test::Random& random)
      : bytes_(1 << 14),
        address_(static_cast<std::uint64_t>(hw::test::pick(random, 0, 3200))),
        waits_(static_cast<std::size_t>(hw::test::pick(random, 1, 40))),
        slots_(random() % 2 == 0 ? hw::SlotOrder::kIssue : hw::SlotOrder::kCompletion),
        answers_{CommandFetchRtl::kBeatBytes, 1 + random() % 20, 0,
                 random() % 2 == 0 ? 0 : random() % 700, random()} {
    answers_.most = answers_.least + random() % 30;
    for (std::uint8_t& byte : bytes_) byte = static_cast<std::uint8_t>(random());
    hw::Program program;
    for (std::size_t i = 1; i < waits_.size(); ++i) {
      program.commands.push_back(hw::test::random_command(random));
    }
    program.commands.emplace_back();  // end
    const std::vector<std::uint8_t> image = hw::encode_program(program);
    std::copy(image.begin(), image.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(address_));
    const std::uint64_t slowest = random() % 3 == 0 ? 0 : random() % 60;
    for (std::uint64_t& wait : waits_) wait = slowest == 0 ? 0 : random() % (slowest + 1);
  }

  [[nodiscard]] FetchCase test() const {
    return {bytes_, address_, static_cast<std::uint32_t>(waits_.size()), waits_, slots_};
  }
  [[nodiscard]] const ReadAnswers& answers() const { return answers_; }
  /// Of the program.
  [[nodiscard]] std::uint8_t& byte(std::size_t at) { return bytes_[address_ + at]; }

 private:
  std::vector<std::uint8_t> bytes_;
  std::uint64_t address_;
  std::vector<std::uint64_t> waits_;
  hw::SlotOrder slots_;
  ReadAnswers answers_;
};

}  // namespace systole::testbench
