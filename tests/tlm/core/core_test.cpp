#include "tlm/core/core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hw/array/accumulator.h"
#include "support/report_values.h"
#include "support/tlm/core_rig.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"

namespace systole::tlm_model {
namespace {

using test::CoreRig;
using test::kBank;
using test::kNoStages;
using test::load_command;
using test::matmul_command;
using test::move_command;
using test::roomy;
using test::store_command;

class CoreTest : public test::SystemCTest {};

TEST_F(CoreTest, IdentifiesItself) {
  CoreRig rig(roomy());
  rig.run([&] {
    EXPECT_EQ(rig.get(Core::kId), 0x53595354U);
    EXPECT_EQ(rig.get(Core::kStatus), 0U);
    EXPECT_EQ(rig.get(Core::kCycles), 0U);
    rig.set(Core::kProgram, 0x123456789abcULL);
    EXPECT_EQ(rig.get(Core::kProgram), 0x123456789abcULL);
  });
}

TEST_F(CoreTest, RunsFromStartToInterruptToAcknowledgement) {
  CoreRig rig(roomy());
  rig.run([&] {
    rig.begin({matmul_command({16, 16, 16}, 0, kBank, 0)});
    const std::uint64_t started = rig.core.processor.cycle();
    EXPECT_EQ(rig.get(Core::kStatus), 1U) << "busy";
    EXPECT_FALSE(rig.interrupt.read());
    sc_core::wait(rig.interrupt.posedge_event());
    const std::uint64_t finished = rig.core.processor.cycle();
    EXPECT_EQ(finished, rig[0].completed) << "nothing but the matmul to wait for";
    EXPECT_EQ(rig.get(Core::kStatus), 2U) << "interrupt pending";
    EXPECT_EQ(rig.get(Core::kCycles), finished - started);
    sc_core::wait(1, sc_core::SC_US);
    EXPECT_TRUE(rig.interrupt.read()) << "until it is acknowledged";
    rig.set(Core::kControl, Core::kAcknowledge);
    sc_core::wait(rig.interrupt.negedge_event());
    EXPECT_EQ(rig.get(Core::kStatus), 0U);
    EXPECT_EQ(rig.get(Core::kCycles), finished - started);
  });
}

TEST_F(CoreTest, IgnoresAStartWhileItIsBusy) {
  CoreRig rig(roomy());
  rig.run([&] {
    rig.begin({matmul_command({64, 64, 64}, 0, kBank, 0)});
    sc_core::wait(150, sc_core::SC_NS);
    EXPECT_EQ(rig.get(Core::kStatus), 1U);
    rig.set(Core::kControl, Core::kStart);
    sc_core::wait(rig.interrupt.posedge_event());
    sc_core::wait(10, sc_core::SC_US);
    EXPECT_EQ(rig.completion_order.size(), 1U) << "the program ran once";
    EXPECT_EQ(rig.get(Core::kStatus), 2U);
  });
}

TEST_F(CoreTest, StartsAgainWithTheAcknowledgement) {
  CoreRig rig(roomy());
  rig.run([&] {
    rig.execute({matmul_command({16, 16, 16}, 0, kBank, 0)});
    rig.set(Core::kControl, Core::kStart | Core::kAcknowledge);
    sc_core::wait(rig.interrupt.negedge_event());
    EXPECT_EQ(rig.get(Core::kStatus), 1U);
    sc_core::wait(rig.interrupt.posedge_event());
    EXPECT_EQ(rig.completion_order.size(), 2U);
    rig.set(Core::kControl, 0);
    EXPECT_EQ(rig.get(Core::kStatus), 2U) << "writing nothing changes nothing";
  });
}

TEST_F(CoreTest, FindsNoProgramInEmptyMemory) {
  expect_report("/systole/core");
  CoreRig rig(roomy());
  rig.run([&] {
    rig.set(Core::kControl, Core::kStart);
    sc_core::wait(rig.interrupt.posedge_event());
    EXPECT_EQ(rig.get(Core::kStatus), 2U | 8U);
  });
}

TEST_F(CoreTest, AnswersBadAccessesWithAnError) {
  CoreRig rig(roomy());
  rig.run([&] {
    std::uint64_t value[2] = {1, 2};
    const auto read = [&](std::uint64_t offset, std::size_t bytes) {
      return rig.host.read(hw::kRegistersBase + offset, value, bytes).status;
    };
    const auto write = [&](std::uint64_t offset, std::size_t bytes) {
      return rig.host.write(hw::kRegistersBase + offset, value, bytes).status;
    };
    for (const std::size_t bytes : {1U, 4U, 7U, 16U}) {
      EXPECT_EQ(read(Core::kId, bytes), tlm::TLM_BURST_ERROR_RESPONSE) << bytes;
      EXPECT_EQ(write(Core::kProgram, bytes), tlm::TLM_BURST_ERROR_RESPONSE) << bytes;
    }
    EXPECT_EQ(read(4, 8), tlm::TLM_ADDRESS_ERROR_RESPONSE) << "between two registers";
    EXPECT_EQ(read(Core::kRegisterBytes, 8), tlm::TLM_ADDRESS_ERROR_RESPONSE) << "after them";
    EXPECT_EQ(read(Core::kControl, 8), tlm::TLM_ADDRESS_ERROR_RESPONSE) << "write only";
    for (const std::uint64_t offset : {Core::kId, Core::kStatus, Core::kCycles}) {
      EXPECT_EQ(write(offset, 8), tlm::TLM_ADDRESS_ERROR_RESPONSE) << "read only";
    }
    tlm::tlm_generic_payload payload;
    unsigned char enables[8] = {};
    const std::uint64_t id = hw::kRegistersBase + Core::kId;
    test::TlmDriver::fill(payload, tlm::TLM_READ_COMMAND, id, value, 8);
    payload.set_byte_enable_ptr(enables);
    payload.set_byte_enable_length(8);
    EXPECT_EQ(rig.host.send(payload).status, tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
    test::TlmDriver::fill(payload, tlm::TLM_READ_COMMAND, id, value, 8);
    payload.set_streaming_width(4);
    EXPECT_EQ(rig.host.send(payload).status, tlm::TLM_BURST_ERROR_RESPONSE);
    test::TlmDriver::fill(payload, tlm::TLM_IGNORE_COMMAND, id, value, 8);
    EXPECT_EQ(rig.host.send(payload).status, tlm::TLM_COMMAND_ERROR_RESPONSE);
    EXPECT_EQ(rig.get(Core::kProgram), 0U) << "a refused write leaves no trace";
  });
}

TEST_F(CoreTest, AMatmulStartsInTheCycleInWhichItsOperandsArrive) {
  CoreRig rig(roomy());
  rig.run([&] {
    rig.execute({load_command(0, 4096, 256), load_command(kBank, 8192, 256),
                 matmul_command({16, 16, 16}, 0, kBank, 0)});
  });
  EXPECT_GT(rig[1].completed, rig[0].completed);
  EXPECT_EQ(rig[2].started, rig[1].completed);
  EXPECT_TRUE(rig[2].was_blocked);
  EXPECT_EQ(rig[2].blocker, 1U);
}

TEST_F(CoreTest, AStoreStartsInTheCycleOfTheLastResult) {
  CoreRig rig(roomy());
  rig.run([&] {
    rig.execute({matmul_command({16, 16, 16}, 0, kBank, 0), store_command(0, 4096, 16, 16)},
                {kNoStages});
  });
  EXPECT_GT(rig[0].completed, rig[0].released);
  EXPECT_EQ(rig[1].started, rig[0].completed);
}

TEST_F(CoreTest, ALoadOverwritesAnOperandWhenItHasBeenRead) {
  CoreRig rig(roomy());
  rig.run([&] {
    rig.execute({matmul_command({128, 64, 64}, 0, kBank, 0), load_command(0, 4096, 64)});
  });
  EXPECT_EQ(rig[1].started, rig[0].released + hw::kMatmulReleaseCycles);
  EXPECT_LT(rig[1].started, rig[0].completed);
}

TEST_F(CoreTest, ALoadOverwritesALoadWhenItIsComplete) {
  CoreRig rig(roomy());
  rig.run([&] { rig.execute({load_command(0, 4096, 64), load_command(32, 8192, 64)}); });
  EXPECT_LT(rig[0].released, rig[0].completed) << "its data are on their way";
  EXPECT_EQ(rig[1].started, rig[0].completed);
}

TEST_F(CoreTest, IndependentLoadsOverlap) {
  CoreRig rig(roomy());
  rig.run([&] { rig.execute({load_command(0, 4096, 64), load_command(64, 4160, 64)}); });
  EXPECT_EQ(rig[1].started, rig[0].released);
  EXPECT_LT(rig[1].started, rig[0].completed);
}

TEST_F(CoreTest, AResultInDramIsReadWhenItsWriteIsAcknowledged) {
  CoreRig rig(roomy());
  rig.run([&] {
    rig.execute({store_command(0, 4096, 4, 16), load_command(0, 4096, 64)}, {kNoStages});
  });
  EXPECT_EQ(rig[1].started, rig[0].completed);
}

TEST_F(CoreTest, AStoreIsCompleteWhenItsLastWriteIsAcknowledged) {
  hw::Machine machine = roomy();
  CoreRig rig(machine);
  rig.run([&] { rig.execute({store_command(0, 4096, 4, 16)}, {kNoStages}); });
  // Request, memory controller, response: all at 1 GHz.
  EXPECT_GE(rig[0].completed - rig[0].released, 4U + 20 + 3);
}

TEST_F(CoreTest, AUnitKeepsItsOrder) {
  CoreRig rig(roomy());
  rig.run([&] {
    rig.execute({matmul_command({128, 64, 64}, 0, kBank, 0), load_command(0, 4096, 64),
                 load_command(3 * kBank, 8192, 64), move_command(12288, 2 * kBank, 16, 16)},
                {kNoStages});
  });
  EXPECT_FALSE(rig[2].was_blocked) << "nothing is in its way";
  EXPECT_GE(rig[2].started, rig[1].released) << "but the load before it";
  EXPECT_EQ(rig[3].started, rig[3].dispatched) << "another unit overtakes";
}

/// Values of a block's account, closed when its last command left it.
std::map<std::string, std::uint64_t> account(const ExecutionUnit& unit, std::uint64_t end) {
  hw::BlockReport report = unit.report(end);
  report.counters.clear();
  return test::values_of(report);
}

TEST_F(CoreTest, UnitsAccountForEveryCycle) {
  CoreRig rig(roomy());
  std::uint64_t begin = 0;
  rig.run([&] {
    sc_core::wait(500, sc_core::SC_NS);
    rig.execute({load_command(0, 4096, 40, 10), load_command(kBank, 8192, 512),
                 matmul_command({37, 32, 16}, 0, kBank, 0), store_command(0, 16384, 37, 32)},
                {kNoStages});
    begin = rig.core.processor.start_cycle();
  });
  const auto load = account(rig.core.load, rig[1].released);
  EXPECT_EQ(load.at("idle"), begin);
  // Beats of 16 bytes, as far as the unit was there: it leaves when all requests are issued.
  EXPECT_EQ(load.at("busy"), std::min<std::uint64_t>(rig[0].released - rig[0].started, 10 * 3) +
                                 std::min<std::uint64_t>(rig[1].released - rig[1].started, 32));
  EXPECT_EQ(load.at("stalled.no_command"), rig[0].dispatched - begin);

  const auto array = account(rig.core.array, rig[2].released);
  EXPECT_EQ(array.at("idle"), begin);
  EXPECT_EQ(array.at("busy"), 2U * 37) << "two folds";
  EXPECT_EQ(array.at("stalled.weight_preload"), 16U) << "the second one's are hidden";
  EXPECT_EQ(array.at("stalled.wait_load"), rig[1].completed - rig[2].dispatched);

  const auto store = account(rig.core.store, rig[3].released);
  EXPECT_EQ(store.at("idle"), begin);
  EXPECT_EQ(store.at("busy"), 37U * 2) << "two vectors of 16 lanes a row";
  EXPECT_EQ(store.at("stalled.wait_compute"), rig[2].completed - rig[3].dispatched);
  for (const auto* unit : {&load, &array, &store}) {
    std::uint64_t sum = 0;
    for (const auto& [name, value] : *unit) sum += name == "total" ? 0 : value;
    EXPECT_EQ(sum, unit->at("total"));
  }
}

TEST_F(CoreTest, RunsTheSameWithoutValues) {
  const std::vector<hw::Command> commands = {
      load_command(0, 4096, 16, 16), load_command(kBank, 8192, 256),
      matmul_command({16, 16, 16}, 0, kBank, 0), store_command(0, 16384, 16, 16)};
  std::vector<std::uint64_t> completed[2];
  for (const bool functional : {true, false}) {
    test::fresh_kernel();
    CoreRig rig(roomy(), functional);
    rig.run([&] { rig.execute(commands, {kNoStages}); });
    for (std::uint32_t i = 0; i < 4; ++i) completed[functional].push_back(rig[i].completed);
  }
  EXPECT_EQ(completed[0], completed[1]);
}

}  // namespace
}  // namespace systole::tlm_model
