#include "tlm/bus/crossbar.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "support/tlm/fixed_target.h"
#include "support/tlm/systemc_test.h"
#include "support/tlm/tlm_driver.h"
#include "tlm/bus/request_batch.h"
#include "tlm/memory/dram.h"

namespace systole::tlm_model {
namespace {

struct CrossbarTest : public test::SystemCTest {
  CrossbarTest() : bar("bar"), low("low", 1024), high("high", 1024), one("one"), two("two") {
    bar.connect_target(low.socket, 0x1000, 1024);
    bar.connect_target(high.socket, 0x8000, 512);
    one.socket.bind(bar.initiators);
    two.socket.bind(bar.initiators);
  }
  Crossbar bar;
  test::FixedTarget low, high;
  test::TlmDriver one, two;
};

TEST_F(CrossbarTest, FindsTheTargetAndAddsNoTime) {
  one.run([&] {
    std::vector<unsigned char> data(4);
    tlm::tlm_generic_payload payload;
    test::TlmDriver::fill(payload, tlm::TLM_READ_COMMAND, 0x8010, data.data(), 4);
    const auto answer = one.send(payload, test::ns(7));
    EXPECT_EQ(answer.status, tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(answer.delay, test::ns(17));
    EXPECT_EQ(payload.get_address(), 0x8010U) << "restored";
    EXPECT_EQ(data[0], 0x11) << "byte 16 holds 17";
    EXPECT_EQ(high.addresses, std::vector<std::uint64_t>{0x10});
    // At the same time by another: no turns.
    EXPECT_EQ(two.read(0x8020, data.data(), 4).delay, test::ns(10));
    EXPECT_EQ(two.read(0x1020, data.data(), 4).delay, test::ns(10));
    EXPECT_EQ(low.addresses, std::vector<std::uint64_t>{0x20});
  });
}

TEST_F(CrossbarTest, RefusesWhatNoTargetAnswers) {
  one.run([&] {
    std::vector<unsigned char> data(64);
    for (const std::uint64_t address : {0xfffULL, 0x1400ULL, 0x13fdULL, 0x81fdULL, 0x0ULL}) {
      const auto answer = one.read(address, data.data(), 4);
      EXPECT_EQ(answer.status, tlm::TLM_ADDRESS_ERROR_RESPONSE) << address;
      EXPECT_EQ(answer.delay, sc_core::SC_ZERO_TIME);
      EXPECT_EQ(one.debug(tlm::TLM_READ_COMMAND, address, data.data(), 4), 0U);
    }
    EXPECT_TRUE(low.addresses.empty());
    EXPECT_TRUE(high.addresses.empty());
  });
  EXPECT_THROW(bar.connect_target(low.socket, 0x13ff, 16), hw::InputError);
}

TEST_F(CrossbarTest, GrantsNoMoreThanTheRangeShows) {
  tlm::tlm_generic_payload payload;
  one.run([&] {
    tlm::tlm_dmi dmi;
    payload.set_address(0x8001);
    ASSERT_TRUE(one.socket->get_direct_mem_ptr(payload, dmi));
    EXPECT_EQ(dmi.get_start_address(), 0x8000U);
    EXPECT_EQ(dmi.get_end_address(), 0x81ffU);
    EXPECT_EQ(dmi.get_dmi_ptr(), high.bytes.data());
    EXPECT_EQ(dmi.get_read_latency(), test::ns(10)) << "nothing for the way";
    payload.set_address(0x0);
    EXPECT_FALSE(one.socket->get_direct_mem_ptr(payload, dmi));
  });
}

/// Requests in one call, in the past too.
struct BatchOf {
  explicit BatchOf(const std::vector<std::uint64_t>& addresses) {
    batch.direct = true;
    for (const std::uint64_t address : addresses) {
      batch.requests.push_back({address, nullptr, 50'000, 64, tlm::TLM_INCOMPLETE_RESPONSE});
    }
    payload.set_command(tlm::TLM_READ_COMMAND);
  }
  void send(test::TlmDriver& by) {
    transport_batch(batch, payload, [&](auto& same, auto& delay) {
      ++calls;
      by.socket->b_transport(same, delay);
    });
  }
  RequestBatch batch;
  tlm::tlm_generic_payload payload;
  int calls = 0;
};

// Times are those of as many calls; a memory with contents takes them without data.
TEST_F(CrossbarTest, PassesOnBatchesOfOneTarget) {
  hw::Machine machine;
  Dram dram("dram", machine.dram);
  bar.connect_target(dram.socket, 0x100000, dram.capacity());
  hw::DramTiming timing(machine.dram);
  one.run([&] {
    sc_core::wait(test::ns(100));
    BatchOf together({0x100000, 0x100800, 0x100040});
    together.send(one);
    EXPECT_EQ(together.calls, 1);
    for (const RequestBatch::Request& request : together.batch.requests) {
      EXPECT_EQ(request.status, tlm::TLM_OK_RESPONSE);
      EXPECT_EQ(request.time, timing.access(request.address - 0x100000, 64, false, 50'000).end);
    }
    BatchOf apart({0x1000, 0x8000, 0x1040});
    apart.batch.requests[0].time = apart.batch.requests[1].time = 200'000;
    apart.batch.requests[2].time = 200'000;
    apart.send(one);
    EXPECT_EQ(apart.calls, 3) << "targets that know no batches";
    EXPECT_EQ(low.addresses, (std::vector<std::uint64_t>{0, 0x40}));
    EXPECT_EQ(high.addresses, std::vector<std::uint64_t>{0});
    BatchOf split({0x100000, 0x8000});
    split.send(one);
    EXPECT_EQ(split.calls, 2) << "each alone";
    EXPECT_EQ(split.batch.requests[0].status, tlm::TLM_GENERIC_ERROR_RESPONSE)
        << "alone it needs data";
  });
}

}  // namespace
}  // namespace systole::tlm_model
