#include "tlm/bus/link.h"

#include <gtest/gtest.h>

#include <array>

#include "support/tlm/fixed_target.h"
#include "support/tlm/systemc_test.h"
#include "support/tlm/tlm_driver.h"
#include "tlm/bus/request_batch.h"
#include "tlm/common/time.h"
#include "tlm/memory/dram.h"

namespace systole::tlm_model {
namespace {

using test::ns;

class LinkTest : public test::SystemCTest {
 protected:
  LinkTest() {
    first.socket.bind(link.ports);
    second.socket.bind(link.ports);
    link.bus.bind(near.socket);
    link.bus.bind(far.socket);
    far.latency = ns(100);
  }

  Link link{"link", 15};
  test::TlmDriver first{"first"}, second{"second"};
  test::FixedTarget near{"near"}, far{"far"};
  std::array<unsigned char, 16> data{};
};

TEST_F(LinkTest, TakesItsLatencyThereAndBackAndKeepsTheOrderOfItsPorts) {
  first.run([this] {
    EXPECT_EQ(first.read(32, data.data(), 16).delay, ns(15 + 10 + 15));
    EXPECT_EQ(near.arrivals.back(), ns(15));
    EXPECT_EQ(data[0], 33);
    EXPECT_EQ(second.read(0, data.data(), 16).delay, ns(15 + 100 + 15));
    EXPECT_EQ(far.arrivals.back(), ns(15));
  });
}

TEST_F(LinkTest, DebugAccessesPassAndDirectAccessDoesNot) {
  hw::Machine machine;
  machine.dram.mib = 1;
  Link other("other", 15);
  Dram low("low", machine.dram), high("high", machine.dram);
  test::TlmDriver third("third"), fourth("fourth");
  third.socket.bind(other.ports);
  fourth.socket.bind(other.ports);
  other.bus.bind(low.socket);
  other.bus.bind(high.socket);
  first.run([&] {
    data.fill(7);
    EXPECT_EQ(third.debug(tlm::TLM_WRITE_COMMAND, 100, data.data(), 16), 16U);
    EXPECT_EQ(low.stored(115), 7);
    EXPECT_EQ(low.stored(116), 0);
    EXPECT_EQ(high.stored(100), 0) << "the other target";
    high.stored(5) = 9;
    EXPECT_EQ(fourth.debug(tlm::TLM_READ_COMMAND, 5, data.data(), 1), 1U);
    EXPECT_EQ(data[0], 9);
    tlm::tlm_generic_payload payload;
    payload.set_address(0);
    tlm::tlm_dmi dmi;
    EXPECT_FALSE(third.socket->get_direct_mem_ptr(payload, dmi));
  });
}

TEST_F(LinkTest, ARequestOfABatchTakesAsLongAsOneByItself) {
  first.run([this] {
    RequestBatch batch;
    tlm::tlm_generic_payload payload;
    payload.set_command(tlm::TLM_READ_COMMAND);
    for (const std::uint64_t start : {0U, 40U}) {
      batch.requests.push_back(
          {start, data.data(), 1000 * start, 16, tlm::TLM_INCOMPLETE_RESPONSE});
    }
    transport_batch(batch, payload,
                    [this](auto& of, auto& delay) { first.socket->b_transport(of, delay); });
    EXPECT_EQ(batch.requests[0].time, 40'000U);
    EXPECT_EQ(batch.requests[1].time, 80'000U);
  });
}

}  // namespace
}  // namespace systole::tlm_model
