#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/description/machine_text.h"
#include "support/network/encoder_run.h"
#include "support/network/random_convolutions.h"
#include "support/random/random_fusion.h"
#include "support/random/random_graph.h"
#include "support/random/random_machine.h"
#include "support/tlm/systemc_test.h"
#include "testbench/network/decoder_run.h"
#include "testbench/report/measurement.h"
#include "testbench/run/simulation.h"
#include "testbench/run/tensor_file.h"

/// Values computed beside the simulation: the same bytes and statistics with any number of threads.
namespace systole::testbench {
namespace {

using test::Random;
using test::Workload;

/// All that a run leaves, but the host's time.
struct Left {
  std::string statistics;
  std::vector<std::vector<std::uint8_t>> outputs;
  std::vector<std::vector<std::vector<std::uint8_t>>> tensors;
  CheckResult check;
};

class ValueThreads : public test::SystemCTest {
 protected:
  static Left left_by(const Workload& workload, const mapper::Mapping& mapping,
                      const hw::Machine& machine, SimulationOptions options, unsigned threads) {
    options.threads = threads;
    return left_by(machine, options, workload.simulate(mapping, machine, options));
  }
  static Left left_by(const hw::Machine& machine, const SimulationOptions& options,
                      SimulationResult result) {
    Left left;
    left.outputs = result.outputs;
    left.tensors = result.tensors;
    left.check = result.check;
    result.wall_seconds = 0.0;
    left.statistics = to_json(measure(machine, "network", 1, options, std::move(result))).dump();
    return left;
  }
  static void expect_same(const Left& one, const Left& other) {
    EXPECT_EQ(one.statistics, other.statistics);
    EXPECT_EQ(one.outputs, other.outputs);
    EXPECT_EQ(one.tensors, other.tensors);
    EXPECT_EQ(one.check.bytes, other.check.bytes);
    EXPECT_EQ(one.check.mismatches, other.check.mismatches) << other.check.first;
    EXPECT_EQ(one.check.first, other.check.first);
  }

  /// Checked and with all tensors that commands leave in memory.
  static void expect_same_with_any(const Workload& workload, Random& random) {
    const auto [machine, mapping] = test::random_fit(random, workload.graph);
    SCOPED_TRACE(hw::to_toml(machine));
    SimulationOptions options;
    options.check = true;
    for (model::TensorId id = 0; id < workload.graph.tensors.size(); ++id) {
      if (written_tensors(workload.graph, mapping)[id]) options.tensors.push_back(id);
    }
    const Left one = left_by(workload, mapping, machine, options, 1);
    // The check compares every result with the last that its tensor held.
    if (!test::writes_twice(workload.graph)) {
      EXPECT_EQ(one.check.mismatches, 0U) << one.check.first;
    }
    EXPECT_GT(one.check.bytes, 0U);
    EXPECT_EQ(one.outputs, test::expected_outputs(workload));
    expect_same(one, left_by(workload, mapping, machine, options, 2));
    // Without a look at each result nobody waits before the last.
    options.check = false;
    options.tensors.clear();
    const Left unseen = left_by(workload, mapping, machine, options, 1);
    EXPECT_EQ(unseen.outputs, one.outputs);
    expect_same(unseen, left_by(workload, mapping, machine, options, 4));
  }
};

TEST_F(ValueThreads, EncodersAreTheSame) {
  Random random(1);
  for (int i = 0; i < 100 && !HasFailure(); ++i) {
    const std::uint32_t heads = test::between(random, 1, 3);
    const model::EncoderShape shape{test::between(random, 1, 2), 16 * heads, heads,
                                    16 * test::between(random, 1, 4), i % 2 == 0};
    expect_same_with_any(
        test::encoder_workload(shape, test::between(random, 1, 40), test::between(random, 1, 3)),
        random);
  }
}

TEST_F(ValueThreads, ConvolutionsAreTheSame) {
  Random random(2);
  for (std::uint64_t i = 0; i < 100 && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
    expect_same_with_any(test::random_convolutions(i), random);
  }
}

TEST_F(ValueThreads, ChainsOfAnyStagesAreTheSame) {
  Random random(3);
  for (std::uint64_t i = 0; i < 100 && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
    Workload workload{test::RandomFusion(i, static_cast<test::Anchor>(i % test::kAnchors)).take(),
                      {}};
    workload.inputs.push_back(
        test::random_bytes(random, workload.graph.tensors[input_tensor(workload.graph)].bytes()));
    expect_same_with_any(workload, random);
  }
}

/// Fails in one of its calls, which it takes at any time, as models do.
class FailingPostop final : public hw::PostopEngine {
 public:
  FailingPostop(std::uint32_t lanes, std::uint64_t call) : model_(lanes), failing_call_(call) {}
  [[nodiscard]] bool is_timeless() const noexcept override { return true; }
  void apply(const hw::Chain& chain, const hw::ChainOperands& operands) override {
    if (calls_++ == failing_call_) throw std::invalid_argument("chain: no such value");
    model_.apply(chain, operands);
  }
  hw::ChainCycles cycles(const hw::Chain& chain, std::uint64_t rows, std::uint64_t cols) override {
    return model_.cycles(chain, rows, cols);
  }

 private:
  hw::PostopModel model_;
  std::uint64_t failing_call_, calls_ = 0;
};

/// What a run with such a unit ends with; empty: it ended well.
std::string failure_of(const Workload& workload, const mapper::Mapping& mapping,
                       const hw::Machine& machine, unsigned threads, std::uint64_t call) {
  tlm_model::Engines engines = tlm_model::make_models(machine);
  engines.postop = std::make_unique<FailingPostop>(machine.postop.lanes, call);
  SimulationOptions options;
  options.threads = threads;
  options.check = call % 2 == 0;
  try {
    static_cast<void>(workload.simulate(mapping, machine, std::move(engines), options));
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

TEST_F(ValueThreads, AFailureEndsTheRunWhereverItHappens) {
  expect_report("uncaught exception");
  const Workload workload = test::encoder_workload({1, 32, 2, 64, true}, 19, 2);
  const hw::Machine machine = hw::find_machine("tiny");
  const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
  std::uint64_t call = 0;
  for (; call < 10000; ++call) {
    const std::string alone = failure_of(workload, mapping, machine, 1, call);
    const std::string beside = failure_of(workload, mapping, machine, 2, call);
    if (alone.empty()) {
      EXPECT_EQ(beside, "");
      break;
    }
    EXPECT_NE(alone.find("chain: no such value"), std::string::npos) << alone;
    EXPECT_NE(beside.find("chain: no such value"), std::string::npos) << beside;
  }
  EXPECT_GT(call, 10U);
  EXPECT_LT(call, 10000U);
}

// The simulation ends before the actions do.
TEST_F(ValueThreads, ARunThatEndsEarlyDoesNotHang) {
  expect_report("uncaught exception");
  const Workload workload = test::encoder_workload({1, 32, 2, 64, true}, 19, 2);
  const hw::Machine machine = hw::find_machine("tiny");
  const mapper::Mapping mapping = mapper::map_graph(workload.graph, machine);
  for (std::uint64_t after = 0; after < 60; ++after) {
    SimulationOptions options;
    options.threads = 2;
    options.check = after % 2 == 0;
    std::uint64_t commands = 0;
    options.observer = [&](const tlm_model::CommandTrace&) {
      if (commands++ == after) throw std::runtime_error("enough");
    };
    EXPECT_ANY_THROW(static_cast<void>(workload.simulate(mapping, machine, options))) << after;
  }
}

// Each step has its own program, which takes the place of the one before.
TEST_F(ValueThreads, DecodersAreTheSame) {
  const hw::Machine machine = hw::find_machine("transformer");
  for (const char* model : {"gpt2", "smollm2-135m"}) {
    SizeOptions size;
    size.decode = true;
    size.layers = 1;
    size.width = 32;
    size.heads = 2;
    size.hidden = 64;
    size.length = 8;
    size.past = 5;
    if (std::string(model) != "gpt2") size.kv_heads = 1;
    const auto run = [&](unsigned threads) {
      test::fresh_kernel();
      DecoderRun steps(seeded_work(network_size(model, size), machine, true), machine);
      SimulationOptions options;
      options.threads = threads;
      options.check = true;
      options.next_step = [&](std::size_t step) -> const mapper::Mapping& {
        return steps.step(step);
      };
      return left_by(machine, options,
                     simulate(steps.graph(), steps.first(), machine,
                              tlm_model::make_models(machine), steps.inputs(), options));
    };
    const Left one = run(1);
    EXPECT_EQ(one.outputs.size(), 8U);
    expect_same(one, run(2));
    expect_same(one, run(4));
  }
}

}  // namespace
}  // namespace systole::testbench
