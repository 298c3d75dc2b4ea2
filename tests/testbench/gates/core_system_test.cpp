/// The core in RTL behind AXI4 bridges on the bus of its machine, with its DRAM: whole programs of
/// the mapper beside the model, which has the same bus and DRAM.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hw/description/machine_file.h"
#include "model/build/host_operators.h"
#include "support/network/encoder_run.h"
#include "support/network/gates_network.h"
#include "testbench/network/matmul_graph.h"
#include "testbench/report/report_gates.h"
#include "testbench/rtl/core/core_limits.h"
#include "testbench/run/core_on_bus.h"

namespace systole::testbench {
namespace {

/// Cycles of layers together, by kind of command.
void add_kinds(const GatesComparison& layer, std::map<hw::Opcode, GatesKind>& sum) {
  for (const auto& [opcode, kind] : layer.kinds()) {
    sum[opcode].commands += kind.commands;
    sum[opcode].gates += kind.gates;
    sum[opcode].model += kind.model;
  }
}

/// One inference in the gates, on a bus and a memory like the model's.
GatesRun run_on_bus(CorePorts& core, const hw::Machine& machine, const test::Workload& workload,
                    const mapper::Mapping& mapping) {
  test::fresh_kernel();
  const auto place = [&](model::TensorId tensor) {
    return mapper::place_of(workload.graph, mapping, tensor);
  };
  return run_gates(machine, core,
                   {mapping.program, mapping.program_address, mapping.image,
                    place(input_tensor(workload.graph)), place(output_tensor(workload.graph))},
                   {workload.inputs[0]});
}

TEST(CoreSystem, RunsEncoderLayersWithTheModelsBytesOnItsBusAndDram) {
  const hw::Machine machine = hw::find_machine("tiny");
  RtlOptions options;
  options.checked = true;
  const auto core = make_core_ports(options);
  std::map<hw::Opcode, GatesKind> kinds;
  std::uint64_t commands = 0, equal = 0, worst = 0;
  for (std::uint32_t length = 3; length < 13; ++length) {
    const model::EncoderShape shape{1, 8, 1 + length % 2, 16, true, 0, false};
    const test::Workload workload = test::encoder_workload(shape, length, 1);
    const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
    ASSERT_EQ(core_program_problem(mapping.program), "");
    const SimulationResult model = workload.simulate(mapping, machine);
    const GatesComparison layer =
        compare_gates(run_on_bus(*core, machine, workload, mapping), model);
    ASSERT_EQ(layer.differing, 0U) << length << " tokens";
    ASSERT_EQ(layer.counts().mismatches, 0U) << length << " tokens";
    EXPECT_GT(layer.bytes, 0U);
    // Header and first commands come in several rounds of requests, before any chain does.
    EXPECT_EQ(layer.commands.front().gates.dispatched, layer.commands.front().model.dispatched)
        << length << " tokens";
    EXPECT_EQ(layer.gates, layer.model) << length << " tokens";
    EXPECT_EQ(layer.run.counted, model.cycles) << "register CYCLES, " << length << " tokens";
    for (const GatesCommand& command : layer.commands) {
      const std::uint64_t gates_end = command.gates.completed, model_end = command.model.completed;
      const std::uint64_t off = std::max(gates_end, model_end) - std::min(gates_end, model_end);
      if (off == 0 && command.gates.dispatched == command.model.dispatched) ++equal;
      worst = std::max(worst, off);
      ++commands;
    }
    add_kinds(layer, kinds);
    std::printf("%u tokens, %u heads: %zu commands, gates %llu cycles, model %llu\n", length,
                shape.heads, layer.commands.size(), static_cast<unsigned long long>(layer.gates),
                static_cast<unsigned long long>(layer.model));
  }
  for (const auto& [opcode, kind] : kinds) {
    std::printf(
        "%s: %llu commands, gates %llu cycles, model %llu\n",
        std::string(hw::name_of(opcode)).c_str(), static_cast<unsigned long long>(kind.commands),
        static_cast<unsigned long long>(kind.gates), static_cast<unsigned long long>(kind.model));
    // What differs is said in docs/core-rtl.md.
    EXPECT_NEAR(static_cast<double>(kind.gates), static_cast<double>(kind.model),
                0.001 * static_cast<double>(kind.model))
        << hw::name_of(opcode);
  }
  std::printf("%llu of %llu commands dispatched and complete in the same cycles, worst %llu\n",
              static_cast<unsigned long long>(equal), static_cast<unsigned long long>(commands),
              static_cast<unsigned long long>(worst));
  EXPECT_EQ(equal, commands);
}

// Softmax, GELU, LayerNorm and additions are the host's: it reads what the core asks of it from the
// registers of the gates, and the core waits.
TEST(CoreSystem, WaitsForAHostThatComputesAsTheModelDoes) {
  hw::Machine machine = hw::find_machine("tiny");
  machine.host.operators = hw::HostOperators::kFloat;
  const auto core = make_core_ports({});
  std::set<std::size_t> places;  // of calls, in the chunks that are fetched
  for (std::uint32_t length = 5; length <= 8; ++length) {
    test::fresh_kernel();
    const model::EncoderShape shape{1, 8, 1, 16, true, 0, false};
    test::Workload workload = test::encoder_workload(shape, length, 1);
    workload.graph = model::for_machine(std::move(workload.graph), machine);
    const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
    ASSERT_EQ(core_program_problem(mapping.program), "");
    const SimulationResult model = workload.simulate(mapping, machine);
    test::fresh_kernel();
    const GatesComparison layer =
        compare_gates(run_on_bus(*core, machine, workload, mapping), model);
    EXPECT_EQ(layer.differing, 0U);
    EXPECT_EQ(layer.gates, layer.model) << length << " tokens";
    EXPECT_EQ(layer.run.counted, model.cycles);
    for (std::size_t i = 0; i < layer.commands.size(); ++i) {
      const GatesCommand& command = layer.commands[i];
      EXPECT_EQ(command.gates.dispatched, command.model.dispatched) << length << " tokens: " << i;
      EXPECT_EQ(command.gates.completed, command.model.completed) << length << " tokens: " << i;
      if (command.opcode != hw::Opcode::kHost) continue;
      EXPECT_EQ(command.gates.started, command.model.started);
      places.insert(i % machine.core.fetch_commands);
    }
  }
  EXPECT_EQ(places.size(), machine.core.fetch_commands);
}

// Beats of eight bytes, and four banks of sums.
TEST(CoreSystem, RunsProductsInACoreOfAnotherSize) {
  const hw::Machine machine = core_machine(kCoreSizes[1]);
  RtlOptions options;
  options.checked = true;
  const auto core = make_core_ports(options, kCoreSizes[1]);
  test::Random random(4);
  std::size_t commands = 0;
  for (int i = 0; i < 6; ++i) {
    const MatmulShape shape{static_cast<std::uint32_t>(1 + random() % 60),
                            static_cast<std::uint32_t>(1 + random() % 60),
                            static_cast<std::uint32_t>(1 + random() % 60)};
    const test::Workload workload{
        make_matmul_graph(shape, machine.datapath, false, {i % 3 != 0, i % 2 != 0}),
        {matmul_input(shape)}};
    const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
    ASSERT_EQ(core_program_problem(mapping.program, kCoreSizes[1]), "");
    const SimulationResult model = workload.simulate(mapping, machine);
    const GatesRun gates = run_on_bus(*core, machine, workload, mapping);
    commands += gates.commands.size();
    ASSERT_EQ(gates.outputs.at(0), model.outputs.at(0))
        << shape.m << " x " << shape.n << " x " << shape.k;
  }
  EXPECT_FALSE(core->failed());
  EXPECT_GT(commands, 60U);
}

}  // namespace
}  // namespace systole::testbench
