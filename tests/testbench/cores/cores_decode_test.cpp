#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/description/machine_text.h"
#include "support/random/random_machine.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "testbench/cores/cores_simulation.h"
#include "testbench/cores/head_split.h"
#include "testbench/network/decoder_run.h"
#include "testbench/network/networks.h"

/// One token after the other on several cores, which share each token by heads.
namespace systole::testbench {
namespace {

SizeOptions size_of(std::int64_t heads, std::int64_t past) {
  SizeOptions size;
  size.length = 5;
  size.layers = 2;
  size.heads = heads;
  size.width = 16 * heads;
  size.hidden = 96;
  size.decode = true;
  size.past = past;
  return size;
}

/// Steps on one core, and what a plan for several has of them.
struct Decoder {
  Decoder(const SizeOptions& size, const hw::Machine& machine, bool with_values = true)
      : run(seeded_work(network_size("gpt2", size), machine, with_values), machine) {}

  CorePlan plan(const hw::CoreSystem& system) {
    return plan_heads(system, {std::shared_ptr<void>(), &run.graph()}, run.inputs().size(),
                      [this](std::size_t step) { run.move(step); });
  }
  DecoderRun run;
};

SimulationResult on_one_core(Decoder& decoder, const hw::Machine& machine) {
  SimulationOptions options;
  options.next_step = [&](std::size_t i) -> const mapper::Mapping& { return decoder.run.step(i); };
  test::fresh_kernel();
  return simulate(decoder.run.graph(), decoder.run.first(), machine,
                  tlm_model::make_models(machine), decoder.run.inputs(), options);
}

class CoresDecode : public test::SystemCTest {};

// More cores than heads among them, cached tokens, machines of any size.
TEST_F(CoresDecode, GivesTheBitsOfOneCoreOnEveryMachine) {
  test::Random random(31);
  std::size_t runs = 0, cached = 0;
  while (runs < 8) {
    hw::Machine machine = test::random_machine_without_search(random);
    machine.dram.mib = 128;
    const std::int64_t heads = test::between(random, 1, 4), past = test::between(random, 0, 1) * 6;
    const std::size_t cores = static_cast<std::size_t>(test::between(random, 1, 4));
    std::unique_ptr<Decoder> decoder;
    CorePlan plan;
    try {
      decoder = std::make_unique<Decoder>(size_of(heads, past), machine);
      plan = decoder->plan(hw::equal_cores(machine, cores));
    } catch (const hw::InputError&) {
      continue;  // too small
    }
    SCOPED_TRACE(hw::to_toml(machine));
    SCOPED_TRACE(std::to_string(cores) + " cores, " + std::to_string(heads) + " heads");
    const SimulationResult expected = on_one_core(*decoder, machine);
    plan.move(0);
    CoresOptions options;
    options.check = true;
    test::fresh_kernel();
    const CoresResult result = simulate(plan, decoder->run.inputs(), options);
    EXPECT_EQ(result.check.mismatches, 0U) << result.check.first;
    EXPECT_GT(result.check.bytes, 0U);
    EXPECT_EQ(result.outputs, expected.outputs);
    for (const CoreShare& core : result.cores) {
      EXPECT_EQ(core.running + core.wait + core.done + core.host, core.total);
    }
    options.check = options.functional = options.alone = false;
    test::fresh_kernel();
    EXPECT_EQ(simulate(plan, decoder->run.inputs(), options).cycles, result.cycles);
    ++runs;
    cached += past != 0 ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(cached, 0U);
}

// Each step reads as many keys as there are: the work of a core grows.
TEST_F(CoresDecode, EveryStepHasItsProgramOnEveryCore) {
  const hw::Machine machine = hw::find_machine("transformer");
  Decoder decoder(size_of(4, 0), machine);
  const CorePlan plan = decoder.plan(hw::equal_cores(machine, 2));
  ASSERT_EQ(plan.programs.size() % 5, 0U);
  const std::size_t of_step = plan.programs.size() / 5;
  std::uint64_t before = 0;
  for (std::size_t step = 0; step < 5; ++step) {
    std::uint64_t macs = 0;
    for (std::size_t i = 0; i < of_step; ++i) {
      const CoreProgram& program = plan.programs[step * of_step + i];
      for (const hw::Operator& op : program.mapping->program.operators) macs += op.macs;
      for (const model::Tensor& tensor : program.graph->tensors) {
        EXPECT_TRUE(tensor.kind != model::Tensor::Kind::kConstant || tensor.data.empty());
      }
    }
    EXPECT_GT(macs, before);
    before = macs;
  }
  EXPECT_EQ(plan.tasks.size(), plan.programs.size());
}

}  // namespace
}  // namespace systole::testbench
