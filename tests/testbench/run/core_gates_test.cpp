/// Programs of the mapper in the model and in the gates of a core.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/network/encoder_run.h"
#include "testbench/network/matmul_graph.h"
#include "testbench/rtl/core/core_rtl.h"
#include "tests/rtl/core/core_case.h"

namespace systole::testbench {
namespace {

/// Reads and writes of a memory that answers after some cycles.
CoreMemory plain_memory() {
  const ReadAnswers reads{CoreRtl::kBeatBytes, 20, 30, 100, 3};
  return {reads.memory(), reads.memory(), reads.memory(), WriteAnswers{10, 20, 100, 3}.memory()};
}

/// What the gates leave of the output tensor.
std::vector<std::uint8_t> gates_output(CoreRtl& core, const test::Workload& workload,
                                       const mapper::Mapping& mapping, const hw::Machine& machine,
                                       CoreRun& run) {
  std::vector<std::uint8_t> memory(std::size_t{machine.dram.mib} << 20);
  for (const hw::MemoryPiece& piece : mapping.image) {
    std::copy(piece.bytes.begin(), piece.bytes.end(),
              memory.begin() + static_cast<std::ptrdiff_t>(piece.address));
  }
  const auto place = [&](model::TensorId id) { return mapping.tensors.at(id); };
  const mapper::Location in = place(input_tensor(workload.graph));
  const model::Tensor& input = workload.graph.tensors[input_tensor(workload.graph)];
  const std::size_t in_bytes = input.cols * hw::bytes_of(input.type);
  for (std::size_t row = 0; row < input.rows; ++row) {
    std::copy_n(workload.inputs[0].begin() + static_cast<std::ptrdiff_t>(row * in_bytes), in_bytes,
                memory.begin() + static_cast<std::ptrdiff_t>(in.address + row * in.pitch));
  }
  run = core.run({mapping.program, mapping.program_address}, plain_memory(), memory, nullptr);
  const mapper::Location out = place(output_tensor(workload.graph));
  const model::Tensor& output = workload.graph.tensors[output_tensor(workload.graph)];
  const std::size_t out_bytes = output.cols * hw::bytes_of(output.type);
  std::vector<std::uint8_t> bytes;
  for (std::size_t row = 0; row < output.rows; ++row) {
    const auto at = memory.begin() + static_cast<std::ptrdiff_t>(out.address + row * out.pitch);
    bytes.insert(bytes.end(), at, at + static_cast<std::ptrdiff_t>(out_bytes));
  }
  return bytes;
}

// Products with a bias, requantised or not, as the mapper tiles them on `tiny`.
TEST(CoreGates, RunWhatTheMapperWritesWithTheModelsBytes) {
  const hw::Machine machine = hw::find_machine("tiny");
  const auto core = make_core();
  test::Random random(8);
  std::size_t commands = 0, matmuls = 0;
  for (int i = 0; i < 12; ++i) {
    const MatmulShape shape{static_cast<std::uint32_t>(1 + random() % 60),
                            static_cast<std::uint32_t>(1 + random() % 16),
                            static_cast<std::uint32_t>(1 + random() % 200)};
    const test::Workload workload{
        make_matmul_graph(shape, machine.datapath, false, {random() % 4 != 0, random() % 3 != 0}),
        {matmul_input(shape)}};
    const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
    const SimulationResult model = workload.simulate(mapping, machine);
    CoreRun run;
    ASSERT_EQ(gates_output(*core, workload, mapping, machine, run), model.outputs.at(0))
        << shape.m << " x " << shape.n << " x " << shape.k;
    commands += run.commands.size();
    for (std::size_t c = 0; c < run.commands.size(); ++c) {
      const auto* const matmul = mapping.program.commands[c].as<hw::cmd::Matmul>();
      if (matmul == nullptr) continue;
      ++matmuls;
      EXPECT_GE(run.commands[c].completed - run.commands[c].started,
                hw::array_cycles(machine.array, matmul->m, matmul->n, matmul->k, true).latency);
    }
  }
  EXPECT_FALSE(core->failed());
  EXPECT_GT(commands, 60U);
  EXPECT_GT(matmuls, 20U);
}

/// Whether all sums begin at a row of the accumulator: the gates can do no others.
bool has_whole_rows(const hw::Program& program) {
  return std::all_of(
      program.commands.begin(), program.commands.end(), [](const hw::Command& command) {
        const auto* const matmul = command.as<hw::cmd::Matmul>();
        return matmul == nullptr || (matmul->c.address % 4 == 0 && matmul->c.pitch % 4 == 0);
      });
}

/// Cycles that commands of a kind take in the gates and in the model.
struct KindCycles {
  std::uint64_t commands = 0, gates = 0, model = 0;
};

// A layer of BERT: projections, scores, softmax, context, residuals, LayerNorm, GELU.
TEST(CoreGates, RunAnEncoderLayerWithTheModelsBytes) {
  const hw::Machine machine = hw::find_machine("tiny");
  const auto core = make_core();
  std::map<hw::Opcode, KindCycles> kinds;
  std::set<hw::StageOp> stages;
  std::size_t transposed = 0, tensors = 0, layers = 0;
  for (std::uint32_t i = 0; i < 18; ++i) {
    const model::EncoderShape shape{1, 8, 1 + i % 2, 16, true};
    const std::uint32_t length = 3 + i / 2;
    const test::Workload workload = test::encoder_workload(shape, length, 1);
    const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
    if (!has_whole_rows(mapping.program)) continue;
    ++layers;
    const SimulationResult model = workload.simulate(mapping, machine);
    CoreRun run;
    ASSERT_EQ(gates_output(*core, workload, mapping, machine, run), model.outputs.at(0))
        << length << " tokens, " << shape.heads << " heads";
    ASSERT_EQ(run.commands.size(), model.traces.size());
    for (std::size_t c = 0; c < run.commands.size(); ++c) {
      const hw::Command& command = mapping.program.commands[c];
      KindCycles& kind = kinds[command.opcode()];
      ++kind.commands;
      kind.gates += run.commands[c].completed - run.commands[c].started;
      kind.model += model.traces[c].completed - model.traces[c].started;
      if (const auto* const matmul = command.as<hw::cmd::Matmul>()) {
        transposed += matmul->b_transposed ? 1 : 0;
      }
    }
    for (const hw::Chain& chain : mapping.program.chains) {
      for (const hw::Stage& stage : chain.stages) stages.insert(stage.op);
      tensors += hw::tensor_operands(chain);
    }
    std::printf("%u tokens, %u heads: %zu commands, gates %llu cycles, model %llu\n", length,
                shape.heads, run.commands.size(), static_cast<unsigned long long>(run.done),
                static_cast<unsigned long long>(model.cycles.at(0)));
  }
  EXPECT_FALSE(core->failed());
  for (const auto& [opcode, kind] : kinds) {
    std::printf("%s: %llu commands, gates %llu cycles, model %llu\n",
                std::string(hw::name_of(opcode)).c_str(),
                static_cast<unsigned long long>(kind.commands),
                static_cast<unsigned long long>(kind.gates),
                static_cast<unsigned long long>(kind.model));
    EXPECT_GT(kind.commands, 6U);
  }
  using Op = hw::StageOp;
  for (const Op op : {Op::kSoftmax, Op::kDivideRowSum, Op::kLayerNorm, Op::kGelu}) {
    EXPECT_EQ(stages.count(op), 1U) << hw::stage_info(op).name;
  }
  EXPECT_GT(transposed, 5U);
  EXPECT_GT(layers, 10U);
  EXPECT_EQ(tensors, 2 * layers) << "residuals";
}

}  // namespace
}  // namespace systole::testbench
