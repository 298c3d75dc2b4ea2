/// Programs of the mapper in the model and in the gates of a core.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/network/encoder_run.h"
#include "support/network/gates_network.h"
#include "testbench/network/matmul_graph.h"
#include "testbench/rtl/core/core_limits.h"
#include "testbench/rtl/core/core_rtl.h"
#include "tests/rtl/core/core_case.h"

namespace systole::testbench {
namespace {

/// Reads and writes of a memory that answers after some cycles.
CoreMemory plain_memory(const CoreRtl& core) {
  const ReadAnswers reads{core.size().lanes, 20, 30, 100, 3};
  return {reads.memory(), reads.memory(), reads.memory(), WriteAnswers{10, 20, 100, 3}.memory()};
}

/// What the gates leave of the output tensor.
std::vector<std::uint8_t> gates_output(CoreRtl& core, const test::Workload& workload,
                                       const mapper::Mapping& mapping, const hw::Machine& machine,
                                       CoreRun& run) {
  std::vector<std::uint8_t> memory(std::size_t{machine.dram.mib} << 20);
  for (const hw::MemoryPiece& piece : test::image_of(workload, mapping)) {
    std::copy(piece.bytes.begin(), piece.bytes.end(),
              memory.begin() + static_cast<std::ptrdiff_t>(piece.address));
  }
  run = core.run({mapping.program, mapping.program_address}, plain_memory(core), memory, nullptr);
  const mapper::TensorPlace out =
      mapper::place_of(workload.graph, mapping, output_tensor(workload.graph));
  std::vector<std::uint8_t> bytes;
  for (std::size_t row = 0; row < out.rows; ++row) {
    const auto at = memory.begin() + static_cast<std::ptrdiff_t>(out.address + row * out.pitch);
    bytes.insert(bytes.end(), at, at + static_cast<std::ptrdiff_t>(out.row_bytes()));
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

/// Layers of 3 to 11 tokens and one or two heads, as the mapper fuses them for a machine of that
/// size, with the model's bytes.
test::GatesContents run_layers(hw::Machine machine, const CoreSize& size, std::uint32_t width,
                               bool post_norm, bool causal, std::uint32_t layers) {
  const auto core = make_core({}, size);
  test::GatesContents contents;
  for (std::uint32_t i = 0; i < layers; ++i) {
    const model::EncoderShape shape{1, width, 1 + i % 2, 2 * width, post_norm, 0, causal};
    const std::uint32_t length = 3 + i / 2;
    const test::Workload workload = test::encoder_workload(shape, length, 1);
    const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
    EXPECT_EQ(core_program_problem(mapping.program, size), "");
    const SimulationResult model = workload.simulate(mapping, machine);
    CoreRun run;
    EXPECT_EQ(gates_output(*core, workload, mapping, machine, run), model.outputs.at(0))
        << length << " tokens, " << shape.heads << " heads";
    EXPECT_EQ(run.commands.size(), model.traces.size());
    contents.add(mapping);
  }
  EXPECT_FALSE(core->failed());
  EXPECT_EQ(contents.networks, layers);
  EXPECT_GT(contents.transposed, layers / 3) << "scores";
  for (const hw::StageOp op : {hw::StageOp::kSoftmax, hw::StageOp::kDivideRowSum,
                               hw::StageOp::kLayerNorm, hw::StageOp::kGelu, hw::StageOp::kAdd}) {
    EXPECT_EQ(contents.stages.count(op), 1U) << hw::stage_info(op).name;
  }
  std::printf("%zu layers\n", contents.networks);
  return contents;
}
/// On `tiny`.
test::GatesContents run_layers(bool post_norm, bool causal, hw::FusionLevel fusion) {
  hw::Machine machine = hw::find_machine("tiny");
  machine.mapper.fusion = fusion;
  return run_layers(machine, kTinyCore, 8, post_norm, causal, 18);
}

// As in BERT: projections, scores, softmax, context, residuals, LayerNorm after them, GELU.
TEST(CoreGates, RunEncoderLayersWithTheModelsBytes) {
  const test::GatesContents layers = run_layers(true, false, hw::FusionLevel::kAll);
  EXPECT_EQ(layers.commands.count(hw::Opcode::kLoadAccumulator), 0U);
  EXPECT_GT(layers.beside_rows, 4U) << "sums that do not begin at a row of the accumulator";
}

// As in GPT-2: LayerNorm before, from sums and squares that the residual leaves, and causal masks.
TEST(CoreGates, RunDecoderLayersWithTheModelsBytes) {
  const test::GatesContents layers = run_layers(false, true, hw::FusionLevel::kAll);
  EXPECT_EQ(layers.stages.count(hw::StageOp::kLayerNormApply), 1U);
  EXPECT_GE(layers.commands.at(hw::Opcode::kLoadAccumulator), 2 * layers.networks);
}

// The same with a LayerNorm of sums that are loaded.
TEST(CoreGates, RunDecoderLayersWithWholeNormsWithTheModelsBytes) {
  const test::GatesContents layers = run_layers(false, true, hw::FusionLevel::kPost);
  EXPECT_EQ(layers.stages.count(hw::StageOp::kLayerNormApply), 0U);
  EXPECT_GE(layers.commands.at(hw::Opcode::kLoadAccumulator), 2 * layers.networks);
}

// LayerNorms of parts of rows before the products that read them.
TEST(CoreGates, RunStagesBeforeAnchorsWithTheModelsBytes) {
  hw::Machine machine = core_machine(kCoreSizes[1]);
  machine.postop.max_stages = kCoreSizes[1].stages;
  const test::GatesContents layers = run_layers(machine, kCoreSizes[1], 16, false, true, 6);
  EXPECT_GT(layers.staged, layers.networks);
}

// A pass for each operator, and more chains than the core has slots.
TEST(CoreGates, RunUnfusedLayersWithTheModelsBytes) {
  const test::GatesContents layers = run_layers(false, false, hw::FusionLevel::kNone);
  EXPECT_GE(layers.commands.at(hw::Opcode::kLoadAccumulator), 5 * layers.networks);
}

}  // namespace
}  // namespace systole::testbench
