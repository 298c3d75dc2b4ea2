/// The core in RTL behind AXI4 bridges on the bus of its machine, with its DRAM: whole programs of
/// the mapper beside the model, which has the same bus and DRAM.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/network/encoder_run.h"
#include "support/network/gates_network.h"
#include "testbench/rtl/core/core_ports.h"
#include "tlm/axi/axi_bridge.h"
#include "tlm/bus/system_bus.h"
#include "tlm/memory/dram.h"

namespace systole::tlm_model {
namespace {

using testbench::CorePorts;

/// The bus and the DRAM of a machine with the gates of a core.
class GatesOnTheBus {
 public:
  GatesOnTheBus(const hw::Machine& machine, CorePorts& core)
      : machine_(machine), core_(core), bus_("bus", machine.bus), dram_("dram", machine, true) {
    bus_.connect_target(dram_.socket, hw::kDramBase, std::uint64_t{machine.dram.mib} << 20);
    constexpr std::array<const char*, CorePorts::kPorts> kNames = {"program", "loads", "operands",
                                                                   "stores"};
    for (std::size_t i = 0; i < CorePorts::kPorts; ++i) {
      hw::AxiSubordinate::Params params;
      params.bytes = testbench::CoreRtl::kBeatBytes;
      bridges_.push_back(std::make_unique<AxiBridge>(kNames.at(i), machine.bus, params,
                                                     core.port(static_cast<CorePorts::Port>(i))));
      bus_.connect_initiator(bridges_.back()->socket);
    }
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }

  void write(std::uint64_t address, std::vector<std::uint8_t> bytes) {
    move(tlm::TLM_WRITE_COMMAND, address, bytes);
  }
  std::vector<std::uint8_t> read(const test::TensorPlace& place) {
    std::vector<std::uint8_t> all;
    for (std::uint64_t row = 0; row < place.rows; ++row) {
      std::vector<std::uint8_t> bytes(place.row_bytes);
      move(tlm::TLM_READ_COMMAND, place.address + row * place.pitch, bytes);
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
  }

  testbench::CoreRun run(const hw::Program& program, std::uint64_t address) {
    core_.start({program, address, machine_.dma.slots, machine_.array.overlap});
    for (const auto& bridge : bridges_) bridge->start();
    sc_core::sc_start();
    return core_.run();
  }

 private:
  void move(tlm::tlm_command command, std::uint64_t address, std::vector<std::uint8_t>& bytes) {
    tlm::tlm_generic_payload payload;
    payload.set_command(command);
    payload.set_address(address);
    payload.set_data_ptr(bytes.data());
    payload.set_data_length(static_cast<unsigned>(bytes.size()));
    payload.set_streaming_width(payload.get_data_length());
    ASSERT_EQ(bus_.targets[0]->transport_dbg(payload), bytes.size());
  }

  const hw::Machine machine_;
  CorePorts& core_;
  SystemBus bus_;
  Dram dram_;
  std::vector<std::unique_ptr<AxiBridge>> bridges_;
};

/// Cycles of each command: start, and to its end, in the gates and in the model.
void print_commands(const mapper::Mapping& mapping, const testbench::CoreRun& run,
                    const testbench::SimulationResult& model) {
  const std::uint64_t begin = model.traces.front().dispatched - run.commands.front().dispatched;
  for (std::size_t i = 0; i < run.commands.size(); ++i) {
    const testbench::CoreCommandTimes& gates = run.commands[i];
    const CommandTrace& trace = model.traces[i];
    const auto cycles = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    std::printf("%2zu %-8s starts %5llu and %5llu, takes %4llu and %4llu\n", i,
                std::string(hw::name_of(mapping.program.commands[i].opcode())).c_str(),
                cycles(gates.started), cycles(trace.started - begin),
                cycles(gates.completed - gates.started), cycles(trace.completed - trace.started));
  }
}

TEST(CoreSystem, RunsEncoderLayersWithTheModelsBytesOnItsBusAndDram) {
  const hw::Machine machine = hw::find_machine("tiny");
  testbench::RtlOptions options;
  options.checked = true;
  const auto core = testbench::make_core_ports(options);
  test::GatesContents contents;
  for (std::uint32_t length = 3; length < 13; ++length) {
    const model::EncoderShape shape{1, 8, 1 + length % 2, 16, true, 0, false};
    const test::Workload workload = test::encoder_workload(shape, length, 1);
    const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
    if (!test::has_whole_rows(mapping.program)) continue;
    const testbench::SimulationResult model = workload.simulate(mapping, machine);
    test::fresh_kernel();
    GatesOnTheBus gates(machine, *core);
    for (const hw::MemoryPiece& piece : test::image_of(workload, mapping)) {
      gates.write(piece.address, piece.bytes);
    }
    const testbench::CoreRun run = gates.run(mapping.program, mapping.program_address);
    const test::TensorPlace out =
        test::place_of(workload, mapping, testbench::output_tensor(workload.graph));
    ASSERT_EQ(gates.read(out), model.outputs.at(0)) << length << " tokens";
    ASSERT_EQ(run.commands.size(), model.traces.size());
    contents.add(mapping, run, model);
    if (length == 8) print_commands(mapping, run, model);
    const std::uint64_t begin = model.traces.front().dispatched;
    std::printf("%u tokens, %u heads: %zu commands, gates %llu cycles, model %llu\n", length,
                shape.heads, run.commands.size(),
                static_cast<unsigned long long>(run.commands.back().completed -
                                                run.commands.front().dispatched),
                static_cast<unsigned long long>(model.traces.back().completed - begin));
  }
  contents.print();
  EXPECT_FALSE(core->failed());
  EXPECT_GT(contents.networks, 5U);
  // What differs is said in docs/core-rtl.md: gates are never sooner than the model's array.
  EXPECT_GT(contents.kinds.at(hw::Opcode::kMatmul).gates,
            contents.kinds.at(hw::Opcode::kMatmul).model);
}

}  // namespace
}  // namespace systole::tlm_model
