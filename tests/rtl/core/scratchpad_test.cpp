/// rtl/core/systole_scratchpad.sv against hw::BankService and a plain memory.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "Vscratchpad_4x4x16_checked.h"
#include "base/error.h"
#include "testbench/rtl/core/scratchpad_rtl.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "tests/rtl/drive/expected_assertions.h"

namespace systole::testbench {
namespace {

const RtlOptions kScratchpadChecks{true, "", 9};

std::uint64_t pick(std::mt19937_64& random, std::uint64_t least, std::uint64_t most) {
  return least + random() % (most - least + 1);
}

/// Words at a pitch from anywhere on, and round the memory: what a tile is for a client.
class AddressStream {
 public:
  AddressStream(const ScratchpadSize& size, std::uint64_t last, std::mt19937_64& random)
      : last_(last),
        pitch_(random() % 3 == 0 ? pick(random, 1, 70) : size.word_bytes),
        at_(pick(random, 0, last_)) {
    if (random() % 2 == 0) at_ -= at_ % size.word_bytes;
  }
  [[nodiscard]] std::uint64_t next() {
    const std::uint64_t address = at_;
    at_ = at_ + pitch_ > last_ ? at_ % pitch_ : at_ + pitch_;
    return address;
  }

 private:
  std::uint64_t last_, pitch_, at_;
};

ScratchpadClient random_client(const ScratchpadSize& size, std::size_t client,
                               std::mt19937_64& random) {
  ScratchpadClient result;
  result.begin = pick(random, 0, 30);
  const std::uint64_t idle = random() % 2 == 0 ? 0 : pick(random, 0, 90);
  for (std::uint64_t run = pick(random, 0, 4); run > 0; --run) {
    // A read may reach over the end: its last bytes are not wanted.
    const std::uint64_t last =
        client < kScratchpadWriters ? size.bytes() - size.word_bytes : size.bytes() - 1;
    AddressStream first(size, last, random), second(size, last, random);
    const bool reads_both = random() % 3 != 0;
    for (std::uint64_t i = pick(random, 1, 20); i > 0; --i) {
      ScratchpadStep step;
      if (pick(random, 0, 99) >= idle) {
        if (client != 3 || reads_both || random() % 2 == 0) step.address[0] = first.next();
        if (client == 3 && (reads_both || !step.address[0])) step.address[1] = second.next();
      }
      if (client < kScratchpadWriters && step.address[0]) {
        step.written.resize(pick(random, 1, size.word_bytes));
        for (std::uint8_t& byte : step.written) byte = static_cast<std::uint8_t>(random());
      }
      result.steps.push_back(std::move(step));
    }
  }
  return result;
}

class Scratchpad : public testing::TestWithParam<std::size_t> {
 protected:
  /// Writes every byte, so that a read of any is of a known one.
  void fill(ScratchpadRtl& scratchpad, std::vector<std::uint8_t>& stored, RtlCounts& counts) const {
    ScratchpadClients clients;
    for (std::uint64_t at = 0; at < size_.bytes(); at += size_.word_bytes) {
      std::vector<std::uint8_t> word(size_.word_bytes);
      for (std::size_t i = 0; i < word.size(); ++i) word[i] = static_cast<std::uint8_t>(at * 7 + i);
      clients[0].steps.push_back({{at}, std::move(word)});
    }
    check_scratchpad(scratchpad, size_, clients, stored, counts);
  }

  const ScratchpadSize size_ = kScratchpadSizes.at(GetParam());
};

TEST_P(Scratchpad, ServesRandomClientsInTheCyclesOfTheContract) {
  const auto scratchpad = make_scratchpad(size_, kScratchpadChecks);
  std::mt19937_64 random(GetParam() + 3);
  std::vector<std::uint8_t> stored(size_.bytes());
  RtlCounts counts;
  fill(*scratchpad, stored, counts);
  std::uint64_t delayed = 0, crossings = 0;
  for (int i = 0; i < 1'500; ++i) {
    ScratchpadClients clients;
    clients.late_parameters = random() % 2 == 0;
    for (std::size_t client = 0; client < kScratchpadClients; ++client) {
      clients[client] = random_client(size_, client, random);
    }
    check_scratchpad(*scratchpad, size_, clients, stored, counts);
    ASSERT_EQ(counts.mismatches, 0U) << "clients " << i;
    std::vector<std::uint8_t> copy = stored;
    const ScratchpadResults results = model_scratchpad(size_, clients, copy);
    for (std::size_t client = 0; client < kScratchpadClients; ++client) {
      std::uint64_t at = clients[client].begin;
      for (std::size_t s = 0; s < results[client].size(); ++s) {
        delayed += results[client][s].end > at + 1 ? 1 : 0;
        at = results[client][s].end;
        const auto& first = clients[client].steps[s].address[0];
        crossings += first && *first / size_.bank_bytes() !=
                                  (*first + size_.word_bytes - 1) / size_.bank_bytes()
                         ? 1
                         : 0;
      }
    }
  }
  EXPECT_GT(counts.operations, 80'000U);
  EXPECT_GT(delayed, counts.operations / 16);
  EXPECT_GT(crossings, 2'000U);
}

// The order of priority, one conflict at a time: all five accesses want the same bank at once.
TEST_P(Scratchpad, GoesByPriority) {
  const auto scratchpad = make_scratchpad(size_, kScratchpadChecks);
  ScratchpadClients clients;
  for (std::size_t client = 0; client < kScratchpadClients; ++client) {
    ScratchpadStep step;
    step.address[0] = client * size_.word_bytes;
    if (client < kScratchpadWriters) step.written = {1};
    if (client == 3) step.address[1] = std::uint64_t{0};
    clients[client].steps = {step};
  }
  ScratchpadResults results = scratchpad->run(clients, nullptr);
  for (std::size_t client = 0; client < 3; ++client) {
    EXPECT_EQ(results[client].at(0).end, client + 1);
  }
  EXPECT_EQ(results[3].at(0).end, 5U) << "both of its reads";
  clients.late_parameters = true;
  results = scratchpad->run(clients, nullptr);
  EXPECT_EQ(results[3].at(0).end, 4U);
  EXPECT_EQ(results[2].at(0).end, 5U);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Scratchpad, testing::Values(std::size_t{0}, std::size_t{1}));

TEST(ScratchpadSizes, AreThoseThatAreBuilt) {
  EXPECT_THROW((void)make_scratchpad({4, 4, 32}), hw::InputError);
}

/// A scratchpad without clients: pins begin at random.
struct QuietScratchpad : VerilatedDut<Vscratchpad_4x4x16_checked> {
  QuietScratchpad() : VerilatedDut(kScratchpadChecks) {
    auto& pins = **this;
    pins.load_read_i = pins.write_valid_i = pins.parameters_valid_i = pins.array_valid_i = 0;
    pins.write_word_i = pins.write_here_i = pins.write_next_i = 0;
    pins.parameters_address_i = pins.array_address_i = pins.array_reads_i = 0;
    pins.parameters_late_i = 0;
    reset();
  }
};

TEST(ScratchpadProtocol, AssertionFiresWhenAWaitingStepIsWithdrawn) {
  QuietScratchpad dut;
  dut->write_valid_i = 1;
  dut->parameters_valid_i = 1;  // of the bank that the load unit writes
  expect_assertion("StepHeld_A", dut, 3, [&] { dut->parameters_valid_i = 0; });
}

TEST(ScratchpadProtocol, AssertionFiresForAReadOfTheLoadUnitThatIsNotBuilt) {
  QuietScratchpad dut;
  expect_assertion("OneOfLoads_A", dut, 2, [&] { dut->load_read_i = 1; });
}

TEST(ScratchpadProtocol, AssertionFiresForAnAccessBeyondTheEnd) {
  QuietScratchpad dut;
  dut->write_word_i = 63;
  dut->write_next_i = 1;
  expect_assertion("Inside_A", dut, 2, [&] { dut->write_valid_i = 1; });
}

// While A waits, the place of the next B may change, here into one that ends in the next bank.
TEST(ScratchpadProtocol, AnAddressThatIsNotReadMayChange) {
  QuietScratchpad dut;
  dut->write_valid_i = 1;  // of the bank of A
  dut->array_valid_i = 1;
  dut->array_reads_i = 1;
  dut.tick();
  dut->array_address_i = 63 << 8;
  dut.tick();
  EXPECT_FALSE(dut.failed());
  dut->write_valid_i = 0;
  dut.settle();
  EXPECT_TRUE(dut->array_done_o);
}

}  // namespace
}  // namespace systole::testbench
