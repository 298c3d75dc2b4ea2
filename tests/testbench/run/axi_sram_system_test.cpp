/// The SRAM in RTL as a target of a machine's bus: bus, bridge and pins together.
#include <gtest/gtest.h>
#include <tlm_utils/simple_initiator_socket.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/tlm/systemc_test.h"
#include "testbench/rtl/axi/axi_sram_rtl.h"
#include "testbench/rtl/dma/axi_dma_rtl.h"
#include "tlm/axi/axi_bridge.h"
#include "tlm/axi/axi_target_bridge.h"
#include "tlm/bus/system_bus.h"
#include "tlm/dma/request_dma.h"

namespace systole::tlm_model {
namespace {

constexpr std::uint64_t kSramBase = 0x7000'0000;
constexpr unsigned kSramWidth = 16;
constexpr std::uint64_t kSramBytes = testbench::AxiSramRtl::kWords * kSramWidth;
constexpr std::uint64_t kRegisterBytes = testbench::AxiSramRtl::kRegisters * kSramWidth;

/// A process of the test's own, with a socket.
class SramUser : public sc_core::sc_module {
 public:
  tlm_utils::simple_initiator_socket<SramUser> socket{"socket"};

  SramUser(const sc_core::sc_module_name& name, std::function<void(SramUser&)> work)
      : sc_module(name), work_(std::move(work)) {
    SC_HAS_PROCESS(SramUser);
    SC_THREAD(run);
  }

  /// Returns the status; `delay` is waited for.
  tlm::tlm_response_status transport(tlm::tlm_command command, std::uint64_t address,
                                     std::uint8_t* data, std::uint32_t bytes,
                                     std::vector<std::uint8_t>* enables = nullptr,
                                     std::uint32_t streaming = ~0U,
                                     sc_core::sc_time delay = sc_core::SC_ZERO_TIME) {
    tlm::tlm_generic_payload payload;
    payload.set_command(command);
    describe_request(payload, address, data, bytes);
    payload.set_streaming_width(std::min(streaming, bytes));
    if (enables != nullptr) {
      payload.set_byte_enable_ptr(enables->data());
      payload.set_byte_enable_length(static_cast<unsigned>(enables->size()));
    }
    socket->b_transport(payload, delay);
    wait(delay);
    return payload.get_response_status();
  }

  bool done = false;

 private:
  void run() {
    work_(*this);
    done = true;
  }
  std::function<void(SramUser&)> work_;
};

class AxiSramSystem : public test::SystemCTest, public testing::WithParamInterface<unsigned> {
 protected:
  AxiSramSystem() {
    testbench::RtlOptions options;
    options.checked = true;
    rtl = testbench::make_axi_sram(kSramWidth, options);
    hw::AxiRequester::Params params;
    params.bytes = kSramWidth;
    params.stalls_per_mille = GetParam();
    bridge = std::make_unique<AxiTargetBridge>("bridge", machine.bus, params, *rtl);
    // The range is longer than what the RTL answers.
    bus.connect_target(bridge->socket, kSramBase, 2 * kSramBytes);
  }
  void TearDown() override { EXPECT_FALSE(rtl->failed()); }

  void add_user(std::function<void(SramUser&)> work) {
    const std::string name = "user" + std::to_string(users.size());
    users.push_back(std::make_unique<SramUser>(name.c_str(), std::move(work)));
    bus.connect_initiator(users.back()->socket);
  }
  void run() {
    sc_core::sc_start();
    for (const auto& user : users) EXPECT_TRUE(user->done);
  }

  const hw::Machine machine = hw::find_machine("transformer");
  SystemBus bus{"bus", machine.bus};
  std::unique_ptr<testbench::AxiSramRtl> rtl;
  std::unique_ptr<AxiTargetBridge> bridge;
  std::vector<std::unique_ptr<SramUser>> users;
};

/// Random transactions of one user in its part of the memory, against a plain one.
void random_transactions(SramUser& user, std::uint64_t begin, std::uint64_t end, int count,
                         std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> plain(end - begin, 0);
  ASSERT_EQ(user.transport(tlm::TLM_WRITE_COMMAND, kSramBase + begin, plain.data(),
                           static_cast<std::uint32_t>(plain.size())),
            tlm::TLM_OK_RESPONSE);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t offset = random() % plain.size();
    const std::uint64_t most = random() % 3 == 0 ? 600 : 40;
    const auto bytes =
        static_cast<std::uint32_t>(std::min(1 + random() % most, plain.size() - offset));
    std::vector<std::uint8_t> data(bytes), enables(1 + random() % 40);
    for (std::uint8_t& byte : data) byte = static_cast<std::uint8_t>(random());
    for (std::uint8_t& enable : enables) enable = random() % 3 == 0 ? 0 : 0xff;
    const bool some = random() % 2 == 0, write = random() % 2 == 0;
    std::vector<std::uint8_t> expected = data;
    for (std::uint32_t b = 0; b < bytes; ++b) {
      if (some && enables[b % enables.size()] == 0) continue;
      (write ? plain[offset + b] : expected[b]) = write ? data[b] : plain[offset + b];
    }
    ASSERT_EQ(
        user.transport(write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND,
                       kSramBase + begin + offset, data.data(), bytes, some ? &enables : nullptr),
        tlm::TLM_OK_RESPONSE);
    ASSERT_EQ(data, expected) << "transaction " << i << " of user " << begin;
    if (random() % 4 == 0) sc_core::wait(random() % 300, sc_core::SC_NS);
  }
}

TEST_P(AxiSramSystem, AnswersThousandsOfTransactionsLikeAPlainMemory) {
  for (std::uint64_t user = 0; user < 3; ++user) {
    add_user([user](SramUser& self) {
      const std::uint64_t third = kSramBytes / 3;
      random_transactions(self, user * third, (user + 1) * third, 1500, user + 10);
    });
  }
  run();
  EXPECT_EQ(bridge->counts().requests, 3U * 1501);
  EXPECT_EQ(bridge->counts().errors, 0U);
  EXPECT_EQ(bus.core().decode_errors, 0U);
}

TEST_P(AxiSramSystem, CarriesErrorsOverAndDoesNothing) {
  add_user([](SramUser& self) {
    std::uint8_t data[64] = {};
    data[9] = 0xa5;
    const auto read = tlm::TLM_READ_COMMAND, write = tlm::TLM_WRITE_COMMAND;
    const std::uint64_t registers = kSramBase + kSramBytes;
    EXPECT_EQ(self.transport(read, registers, data, 4), tlm::TLM_OK_RESPONSE);
    std::uint32_t identity = 0;
    std::memcpy(&identity, data, 4);
    EXPECT_EQ(identity, testbench::AxiSramRtl::kIdentity);
    EXPECT_EQ(self.transport(write, registers, data, 4), tlm::TLM_GENERIC_ERROR_RESPONSE);
    EXPECT_EQ(self.transport(read, registers + kRegisterBytes, data, 4),
              tlm::TLM_ADDRESS_ERROR_RESPONSE);
    EXPECT_EQ(self.transport(read, registers + kRegisterBytes, data, 64),
              tlm::TLM_ADDRESS_ERROR_RESPONSE);
    EXPECT_EQ(data[9], 0xa5) << "what was refused brings nothing";
    // The last word of the memory, and the register after it.
    EXPECT_EQ(self.transport(write, registers - 16, data, 32), tlm::TLM_GENERIC_ERROR_RESPONSE);
    EXPECT_EQ(self.transport(read, registers + kRegisterBytes - 16, data, 32),
              tlm::TLM_ADDRESS_ERROR_RESPONSE);
    std::uint8_t scratch[4] = {1, 2, 3, 4};
    std::vector<std::uint8_t> enables = {0xff, 0};
    EXPECT_EQ(self.transport(write, registers + 16, scratch, 4, &enables), tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(self.transport(read, registers + 16, data, 4), tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(std::vector<int>(data, data + 4), (std::vector<int>{1, 0, 3, 0}));
    // What is no access to the RTL.
    EXPECT_EQ(self.transport(read, kSramBase, data, 0), tlm::TLM_BURST_ERROR_RESPONSE);
    EXPECT_EQ(self.transport(read, kSramBase, data, 8, nullptr, 4), tlm::TLM_BURST_ERROR_RESPONSE);
    EXPECT_EQ(self.transport(read, kSramBase, nullptr, 8), tlm::TLM_GENERIC_ERROR_RESPONSE);
    std::vector<std::uint8_t> none;
    none.reserve(1);
    EXPECT_EQ(self.transport(read, kSramBase, data, 8, &none), tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
    EXPECT_EQ(self.transport(tlm::TLM_IGNORE_COMMAND, kSramBase, data, 8), tlm::TLM_OK_RESPONSE);
  });
  run();
  EXPECT_EQ(bridge->counts().errors, 5U);
}

// An initiator that runs ahead of simulated time.
TEST_P(AxiSramSystem, ARequestOfALaterTimeHoldsUpNoEarlierOne) {
  sc_core::sc_time early, late;
  const auto at = [](int us) { return sc_core::sc_time(us, sc_core::SC_US); };
  add_user([&](SramUser& self) {
    std::uint8_t data[16] = {};
    (void)self.transport(tlm::TLM_WRITE_COMMAND, kSramBase, data, 16, nullptr, ~0U, at(10));
    late = sc_core::sc_time_stamp();
  });
  add_user([&](SramUser& self) {
    std::uint8_t data[16] = {};
    sc_core::wait(at(1));
    (void)self.transport(tlm::TLM_READ_COMMAND, kSramBase + 64, data, 16);
    early = sc_core::sc_time_stamp();
  });
  run();
  EXPECT_LT(early, at(2));
  EXPECT_GT(late, at(10));
  EXPECT_LT(late, at(11));
}

// Batches of requests, overlapping in time.
TEST_P(AxiSramSystem, ServesADmaPort) {
  add_user([](SramUser&) {});
  RequestDma port("port", machine, 8);
  bus.connect_initiator(port.socket);
  struct Runner : sc_core::sc_module {
    Runner(const sc_core::sc_module_name& name, std::function<void()> work)
        : sc_module(name), work_(std::move(work)) {
      SC_HAS_PROCESS(Runner);
      SC_THREAD(run);
    }
    void run() { work_(); }
    std::function<void()> work_;
  };
  bool same = false;
  Runner runner("runner", [&] {
    std::mt19937_64 random(5);
    std::vector<std::uint8_t> out(3000), in(3000);
    for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>(random());
    port.write(kSramBase + 100, out.data(), out.size());
    port.synchronise();
    port.read(kSramBase + 100, in.data(), in.size());
    same = in == out;
  });
  run();
  EXPECT_TRUE(same);
  EXPECT_GT(bridge->counts().address_waits, 0U) << "requests of a batch are not under way together";
}

// RTL on both sides of the bus: what the DMA copies within the SRAM.
TEST_P(AxiSramSystem, ServesADmaInRtl) {
  std::vector<std::uint8_t> bytes(1000);
  const auto dma = testbench::make_axi_dma(4, {true, "", 3});
  hw::AxiSubordinate::Params params;
  params.bytes = 4;
  AxiBridge manager("manager", machine.bus, params, *dma);
  bus.connect_initiator(manager.socket);
  add_user([&](SramUser& self) {
    std::mt19937_64 random(6);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    (void)self.transport(tlm::TLM_WRITE_COMMAND, kSramBase + 7, bytes.data(), 1000);
    dma->copy(kSramBase + 7, kSramBase + 2050, 1000);
    manager.start();
    wait(manager.stopped());
    std::vector<std::uint8_t> copied(1000);
    (void)self.transport(tlm::TLM_READ_COMMAND, kSramBase + 2050, copied.data(), 1000);
    EXPECT_EQ(copied, bytes);
  });
  run();
  EXPECT_FALSE(dma->error());
}

INSTANTIATE_TEST_SUITE_P(Stalls, AxiSramSystem, testing::Values(0U, 400U));

// A lone request takes the bus's cycles and those of the RTL: beats + 2.
using AxiSramCycles = AxiSramSystem;
TEST_P(AxiSramCycles, AddsNoCycleToBusAndRtl) {
  struct Seen {
    bool write;
    std::uint32_t bytes;
    std::uint64_t asked, answered;
  };
  std::vector<Seen> seen;
  bus.observe([&](const BusTransaction& transaction, const std::string&) {
    seen.push_back({transaction.write, transaction.bytes, transaction.asked, transaction.answered});
  });
  add_user([](SramUser& self) {
    std::vector<std::uint8_t> data(1024);
    for (const std::uint32_t bytes : {16U, 32U, 160U, 1024U}) {
      for (const auto command : {tlm::TLM_READ_COMMAND, tlm::TLM_WRITE_COMMAND}) {
        (void)self.transport(command, kSramBase, data.data(), bytes);
        sc_core::wait(777, sc_core::SC_NS);
      }
    }
  });
  run();
  ASSERT_EQ(seen.size(), 8U);
  const hw::Machine::Bus& params = machine.bus;
  for (const Seen& one : seen) {
    const std::uint64_t bus_beats = (one.bytes + params.width_bytes - 1) / params.width_bytes;
    EXPECT_EQ(one.answered - one.asked, params.request_latency + params.response_latency +
                                            bus_beats - 1 + one.bytes / kSramWidth + 2)
        << one.bytes << (one.write ? " written" : " read");
  }
}
INSTANTIATE_TEST_SUITE_P(Stalls, AxiSramCycles, testing::Values(0U));

}  // namespace
}  // namespace systole::tlm_model
