/// rtl/axi/systole_axi_sram.sv against a plain memory, with the requester of hw/axi/ on its pins.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "Vaxi_sram_4_checked.h"
#include "base/error.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "tests/rtl/axi/axi_sram_case.h"
#include "tests/rtl/drive/expected_assertions.h"

namespace systole::testbench {
namespace {

class AxiSram : public testing::TestWithParam<unsigned> {
 protected:
  AxiSram() : width(GetParam()), rtl(make_axi_sram(width, {true, "", 3})), plain(width) {}
  void TearDown() override { EXPECT_FALSE(rtl->failed()); }

  [[nodiscard]] hw::AxiRequester::Params params(unsigned stalls) const {
    hw::AxiRequester::Params params;
    params.bytes = width;
    params.stalls_per_mille = stalls;
    return params;
  }

  /// A legal burst of any kind, mostly in the memory, with random strobes in the lanes of its
  /// beats.
  hw::AxiBurstBeats random_burst(std::mt19937_64& random) {
    hw::AxiBurstBeats burst;
    burst.write = random() % 2 != 0;
    hw::AxiAddress& address = burst.address;
    address.burst = static_cast<hw::AxiBurst>(random() % 3);
    address.size = static_cast<std::uint8_t>(random() % (width == 4 ? 3 : 5));
    const std::uint64_t bytes = std::uint64_t{1} << address.size;
    address.len = static_cast<std::uint8_t>(random() % 40);
    if (address.burst == hw::AxiBurst::kFixed) address.len %= 16;
    if (address.burst == hw::AxiBurst::kWrap) {
      address.len = static_cast<std::uint8_t>((2U << random() % 4) - 1);
    }
    const std::uint64_t range = random() % 8 == 0 ? plain.map_end() + 64 : plain.memory_end();
    do {
      address.address =
          random() % 6 == 0 ? plain.memory_end() + random() % (5 * width) : random() % range;
      if (address.burst == hw::AxiBurst::kWrap) address.address -= address.address % bytes;
    } while (hw::axi_range(address).begin / hw::kAxiBoundary !=
             (hw::axi_range(address).end - 1) / hw::kAxiBoundary);
    if (!burst.write) return burst;
    burst.data.resize(hw::axi_beats(address));
    burst.strobes.resize(burst.data.size());
    for (unsigned beat = 0; beat < burst.data.size(); ++beat) {
      const hw::AxiRange lanes = hw::axi_beat(address, beat);
      for (std::uint64_t byte = lanes.begin; byte < lanes.end; ++byte) {
        burst.data[beat][byte % width] = static_cast<std::uint8_t>(random());
        burst.strobes[beat][byte % width] = random() % 4 != 0;
      }
    }
    return burst;
  }

  /// Fills the memory, which comes up with anything.
  void clear(SramRun& run) {
    std::vector<std::uint8_t> zeros(plain.memory_end(), 0);
    hw::AxiRequest request{0, zeros.data(), nullptr, static_cast<std::uint32_t>(zeros.size()),
                           true};
    std::vector<hw::AxiBurstBeats> bursts = hw::axi_bursts(request, width);
    for (hw::AxiBurstBeats& burst : bursts) plain.serve(burst);
    (void)run.run(bursts);
  }

  /// The bytes of a read that belong to its beats, and its response.
  void expect_same(const hw::AxiBurstBeats& found, const hw::AxiBurstBeats& expected) const {
    ASSERT_EQ(found.response, expected.response);
    if (expected.write) return;
    ASSERT_EQ(found.data.size(), expected.data.size());
    for (unsigned beat = 0; beat < found.data.size(); ++beat) {
      const hw::AxiRange lanes = hw::axi_beat(expected.address, beat);
      for (std::uint64_t byte = lanes.begin; byte < lanes.end; ++byte) {
        ASSERT_EQ(found.data[beat][byte % width], expected.data[beat][byte % width])
            << "beat " << beat << " of " << found.data.size() << ", byte " << byte << ", burst "
            << static_cast<int>(expected.address.burst);
      }
    }
  }

  const unsigned width;
  const std::unique_ptr<AxiSramRtl> rtl;
  PlainSram plain;
};

TEST_P(AxiSram, DoesWhatAPlainMemoryDoesWithAnyBurst) {
  for (const unsigned stalls : {0U, 300U, 800U}) {
    std::mt19937_64 random(stalls + 1);
    SramRun run(*rtl, params(stalls));
    if (stalls == 0) clear(run);
    std::uint64_t errors = 0;
    for (int i = 0; i < 2500; ++i) {
      std::vector<hw::AxiBurstBeats> bursts = {random_burst(random)};
      hw::AxiBurstBeats expected = bursts[0];
      plain.serve(expected);
      (void)run.run(bursts);
      expect_same(bursts[0], expected);
      if (HasFatalFailure()) FAIL() << "burst " << i << " with " << stalls << " stalls";
      errors += expected.response == hw::AxiResponse::kOkay ? 0 : 1;
    }
    EXPECT_GT(errors, 200U);
    EXPECT_TRUE(run.checker().quiet());
  }
}

// Several at a time, wherever the requester may begin one: bytes are those of requests in order.
TEST_P(AxiSram, DoesWhatAPlainMemoryDoesWithManyRequestsAtATime) {
  std::mt19937_64 random(7);
  SramRun run(*rtl, params(200));
  clear(run);
  struct Case {
    std::vector<std::uint8_t> data, enables, expected;
    hw::AxiRequest request;
  };
  std::vector<std::uint8_t> bytes(plain.memory_end(), 0);
  for (int round = 0; round < 60; ++round) {
    std::vector<Case> cases(20);
    const std::size_t first = run.requester().counts().requests;
    std::uint64_t edge = run.now();
    for (Case& one : cases) {
      const std::uint64_t address = random() % (plain.memory_end() - 1);
      const auto length = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(1 + random() % 700, plain.memory_end() - address));
      for (std::uint32_t i = 0; i < length; ++i) {
        one.data.push_back(static_cast<std::uint8_t>(random()));
        one.enables.push_back(random() % 5 == 0 ? 0 : 0xff);
      }
      one.request = {address, one.data.data(), random() % 2 == 0 ? nullptr : one.enables.data(),
                     length, random() % 2 == 0};
      one.expected = one.data;
      for (std::uint32_t i = 0; i < length; ++i) {
        if (one.request.enables != nullptr && one.enables[i] == 0) continue;
        std::uint8_t& here = bytes[address + i];
        (one.request.write ? here : one.expected[i]) = one.request.write ? one.data[i] : here;
      }
      edge += random() % 10;
      (void)run.requester().ask(hw::axi_bursts(one.request, width), edge);
    }
    std::size_t left = cases.size();
    while (left != 0) {
      run.cycle([&](std::size_t number, std::uint64_t, hw::AxiResponse response,
                    const std::vector<hw::AxiBurstBeats>& bursts) {
        Case& one = cases.at(number - first);
        EXPECT_EQ(response, hw::AxiResponse::kOkay);
        if (!one.request.write) hw::take_read_bytes(bursts, one.request, width);
        --left;
      });
    }
    for (const Case& one : cases) ASSERT_EQ(one.data, one.expected) << round;
  }
  EXPECT_TRUE(run.requester().idle());
  EXPECT_TRUE(run.checker().quiet());
}

TEST_P(AxiSram, TakesABeatACycle) {
  SramRun run(*rtl, params(0));
  clear(run);
  for (const unsigned beats : {1U, 2U, 17U, 64U}) {
    std::vector<std::uint8_t> data(beats * width);
    for (const bool write : {false, true}) {
      hw::AxiRequest request{0, data.data(), nullptr, static_cast<std::uint32_t>(data.size()),
                             write};
      std::vector<hw::AxiBurstBeats> bursts = hw::axi_bursts(request, width);
      ASSERT_EQ(bursts.size(), 1U);
      EXPECT_EQ(run.run(bursts), beats + 2);
    }
  }
}

TEST(AxiSramSizes, RefusesBeatsWiderThanItsPort) {
  VerilatedDut<Vaxi_sram_4_checked> dut(RtlOptions{true, "", 3});
  dut->b_ready_i = dut->r_ready_i = 1;
  dut->ar_valid_i = dut->aw_valid_i = dut->w_valid_i = dut->w_last_i = 1;
  dut->ar_len_i = dut->aw_len_i = 0;
  dut->ar_size_i = dut->aw_size_i = 3;
  dut->ar_addr_i = dut->aw_addr_i = 0;
  dut->w_strb_i = 0xf;
  int responses = 0;
  for (int cycle = 0; cycle < 4; ++cycle) {
    dut.settle();
    if (dut->b_valid_o) EXPECT_EQ(dut->b_resp_o, 2);
    if (dut->r_valid_o) EXPECT_EQ(dut->r_resp_o, 2);
    responses += dut->b_valid_o + dut->r_valid_o;
    dut.tick();
  }
  EXPECT_EQ(responses, 2);
}

TEST_P(AxiSram, BeginsNoRequestBeforeItsEdge) {
  SramRun run(*rtl, params(0));
  std::vector<std::uint8_t> data(8 * width);
  const hw::AxiRequest request{0, data.data(), nullptr, static_cast<std::uint32_t>(data.size()),
                               false};
  for (const std::uint64_t later : {0U, 1U, 10U}) {
    const std::uint64_t begin = run.now();
    (void)run.requester().ask(hw::axi_bursts(request, width), begin + later);
    EXPECT_EQ(run.requester().next_cycle(), begin + later + 1);
    std::uint64_t end = 0;
    while (end == 0) {
      run.cycle([&](std::size_t, std::uint64_t cycle, hw::AxiResponse,
                    const std::vector<hw::AxiBurstBeats>&) { end = cycle; });
    }
    EXPECT_EQ(end - begin, later + 8 + 2);
  }
}

TEST_P(AxiSram, ARequestHasTheWorstResponseOfItsBursts) {
  SramRun run(*rtl, params(0));
  for (const bool write : {false, true}) {
    for (const bool first : {true, false}) {
      std::vector<hw::AxiBurstBeats> bursts(2);
      for (hw::AxiBurstBeats& burst : bursts) {
        burst.write = write;
        if (write) burst.data.resize(1), burst.strobes.resize(1);
      }
      bursts[first ? 0 : 1].address.address = plain.map_end();
      (void)run.requester().ask(bursts, run.now());
      hw::AxiResponse found = hw::AxiResponse::kOkay;
      bool over = false;
      while (!over) {
        run.cycle([&](std::size_t, std::uint64_t, hw::AxiResponse response,
                      const std::vector<hw::AxiBurstBeats>&) {
          found = response;
          over = true;
        });
      }
      EXPECT_EQ(found, hw::AxiResponse::kDecErr) << write << first;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, AxiSram, testing::Values(4U, 16U));

TEST(AxiSramSizes, OthersThanThoseBuiltAreRefused) {
  EXPECT_THROW((void)make_axi_sram(8), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench
