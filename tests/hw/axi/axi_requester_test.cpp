#include "hw/axi/axi_requester.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

namespace systole::hw {
namespace {

struct AnyRequest {
  AnyRequest(std::mt19937_64& random, bool write) {
    const std::uint64_t most = random() % 8 == 0 ? 6000 : 300;
    data.resize(1 + random() % most);
    enables.resize(data.size());
    for (std::uint8_t& byte : data) byte = static_cast<std::uint8_t>(random());
    for (std::uint8_t& enable : enables) enable = random() % 3 == 0 ? 0 : 0xff;
    request = {random() % 10'000, data.data(), random() % 2 == 0 ? nullptr : enables.data(),
               static_cast<std::uint32_t>(data.size()), write};
  }
  [[nodiscard]] bool enabled(std::size_t offset) const {
    return request.enables == nullptr || request.enables[offset] != 0;
  }
  std::vector<std::uint8_t> data, enables;
  AxiRequest request;
};

void expect_legal(const AxiAddress& burst, unsigned width) {
  EXPECT_EQ(burst.burst, AxiBurst::kIncr);
  EXPECT_LE(1U << burst.size, width);
  const AxiRange range = axi_range(burst);
  EXPECT_EQ(range.begin / kAxiBoundary, (range.end - 1) / kAxiBoundary);
}

TEST(AxiRequester, CutsRequestsIntoLegalBurstsOfTheirBytesAlone) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 3000; ++i) {
    const unsigned width = 1U << random() % 8;
    const bool write = random() % 2 == 0;
    const AnyRequest any(random, write);
    const std::uint64_t begin = any.request.address, end = begin + any.request.bytes;
    std::uint64_t next = begin;
    std::map<std::uint64_t, std::uint8_t> written;
    for (const AxiBurstBeats& burst : axi_bursts(any.request, width)) {
      expect_legal(burst.address, width);
      ASSERT_EQ(burst.address.address, next);
      ASSERT_EQ(burst.data.size(), write ? axi_beats(burst.address) : 0U);
      next = axi_range(burst.address).end;
      if (write && next < end && next % kAxiBoundary != 0) {
        ASSERT_EQ(axi_beats(burst.address), 256U) << "as long as may be";
      }
      for (unsigned beat = 0; beat < burst.data.size(); ++beat) {
        const AxiRange lanes = axi_beat(burst.address, beat);
        std::uint64_t strobes = 0;
        for (std::uint64_t byte = lanes.begin; byte < lanes.end; ++byte) {
          if (!burst.strobes[beat][byte % width]) continue;
          written[byte] = burst.data[beat][byte % width];
          ++strobes;
        }
        ASSERT_EQ(burst.strobes[beat].count(), strobes) << "outside the beat";
      }
    }
    if (write) {
      ASSERT_GE(next, end);
      ASSERT_LT(next - end, width);
      for (std::uint64_t byte = begin; byte < next; ++byte) {
        const bool wanted = byte < end && any.enabled(byte - begin);
        ASSERT_EQ(written.count(byte), wanted ? 1U : 0U);
        if (wanted) ASSERT_EQ(written[byte], any.data[byte - begin]);
      }
    } else {
      ASSERT_EQ(next, end) << "a byte that was not asked for is read, or one is not";
    }
  }
}

TEST(AxiRequester, TakesTheBytesOfAReadToTheirPlaces) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 600; ++i) {
    const unsigned width = 1U << random() % 8;
    AnyRequest any(random, false);
    std::vector<std::uint8_t> expected = any.data;
    std::vector<AxiBurstBeats> bursts = axi_bursts(any.request, width);
    for (AxiBurstBeats& burst : bursts) {
      burst.data.resize(axi_beats(burst.address));
      for (unsigned beat = 0; beat < burst.data.size(); ++beat) {
        for (std::uint8_t& lane : burst.data[beat]) lane = static_cast<std::uint8_t>(random());
        const AxiRange lanes = axi_beat(burst.address, beat);
        for (std::uint64_t byte = lanes.begin; byte < lanes.end; ++byte) {
          const std::size_t offset = byte - any.request.address;
          if (any.enabled(offset)) expected[offset] = burst.data[beat][byte % width];
        }
      }
    }
    take_read_bytes(bursts, any.request, width);
    ASSERT_EQ(any.data, expected);
  }
}

TEST(AxiRequester, RefusesBadParameters) {
  EXPECT_THROW(AxiRequester({3, 8, 8, 4, 0, 1}), std::invalid_argument);
  EXPECT_THROW(AxiRequester({256, 8, 8, 4, 0, 1}), std::invalid_argument);
  EXPECT_THROW(AxiRequester({16, 0, 8, 4, 0, 1}), std::invalid_argument);
  EXPECT_THROW(AxiRequester({16, 8, 8, 0, 0, 1}), std::invalid_argument);
  EXPECT_THROW(AxiRequester({16, 8, 8, 4, 1000, 1}), std::invalid_argument);
  EXPECT_THROW((void)AxiRequester({}).ask({}, 0), std::invalid_argument);
}

}  // namespace
}  // namespace systole::hw
