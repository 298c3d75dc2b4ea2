#include "hw/axi/axi_subordinate.h"

#include <gtest/gtest.h>

#include <vector>

namespace systole::hw {
namespace {

/// Asks for reads of a beat with these IDs, one a cycle from 1 on, answers them in `done`, and says
/// in which order the beats come.
std::vector<std::uint32_t> order_of(const std::vector<std::uint32_t>& ids,
                                    const std::vector<std::uint64_t>& done) {
  AxiSubordinate port({});
  std::vector<std::uint32_t> order;
  std::size_t asked = 0;
  for (std::uint64_t cycle = 1; cycle < 100; ++cycle) {
    AxiPins pins;
    port.drive(pins, cycle);
    pins.ar = {asked < ids.size(), pins.ar.ready, 0, 64 * asked, 0, 4, AxiBurst::kIncr};
    if (pins.ar.valid) pins.ar.id = ids[asked];
    pins.r.ready = true;
    if (pins.r.valid) {
      order.push_back(pins.r.id);
      EXPECT_TRUE(pins.r.last);
    }
    port.edge(pins, cycle, [&](const AxiSubordinate::Request& request) {
      port.answer(request, done[asked++], AxiResponse::kOkay);
    });
  }
  EXPECT_TRUE(port.idle());
  return order;
}

using Ids = std::vector<std::uint32_t>;

TEST(AxiSubordinate, AnswersInTheOrderOfTheBusButForAnId) {
  EXPECT_EQ(order_of({0, 1, 2}, {20, 21, 22}), (Ids{0, 1, 2}));
  EXPECT_EQ(order_of({0, 1, 2}, {22, 21, 20}), (Ids{2, 1, 0}));
  EXPECT_EQ(order_of({0, 1, 0}, {30, 31, 20}), (Ids{0, 0, 1}));
  EXPECT_EQ(order_of({7, 7, 1}, {30, 20, 25}), (Ids{1, 7, 7}));
}

// Both are done when the first beat can be offered: the one that was done first goes first.
TEST(AxiSubordinate, OffersFirstWhatWasDoneFirst) {
  EXPECT_EQ(order_of({0, 1, 2, 3}, {40, 50, 50, 41}), (Ids{0, 3, 1, 2}));
  EXPECT_EQ(order_of({0, 1, 2, 3}, {10, 12, 11, 11}), (Ids{0, 2, 3, 1}));
}

}  // namespace
}  // namespace systole::hw
