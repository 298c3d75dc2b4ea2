#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "hw/description/machine_file.h"
#include "model/graph/reference.h"
#include "support/program/program_run.h"
#include "support/tlm/fresh_kernel.h"
#include "testbench/network/decoder_run.h"
#include "testbench/network/networks.h"
#include "testbench/network/tensors.h"
#include "testbench/run/simulation.h"

namespace systole::testbench {
namespace {

using nlohmann::json;

SizeOptions small_llama_size(std::int64_t length, std::int64_t batch) {
  SizeOptions options;
  options.length = length;
  options.batch = batch;
  options.layers = 2;
  options.heads = 6;
  options.kv_heads = 2;
  options.width = 48;
  options.hidden = 96;
  return options;
}

json small_llama(Words more) {
  const Words arguments = words_of(
      "run -m transformer --model qwen2.5-0.5b --layers 2 --d 48 --heads 6 --ffn 96 --kv-heads 2 "
      "--json",
      more);
  return document_of(output_of(arguments));
}

/// Machine, sequences, window (0: none).
class LlamaRunOn
    : public testing::TestWithParam<std::tuple<const char*, std::int64_t, std::int64_t>> {};

TEST_P(LlamaRunOn, GivesTheLogitsOfAllTokensAtOnce) {
  const auto [name, batch, window] = GetParam();
  const hw::Machine machine = hw::find_machine(name);
  const auto sized = [window = window](SizeOptions options) {
    if (window != 0) options.window = window;
    return network_size("qwen2.5-0.5b", options);
  };
  const Network prompt = seeded_network(sized(small_llama_size(7, batch)), machine);
  model::Reference reference(prompt.graph, {true, true});
  const model::Tensor& input = prompt.graph.tensors[input_tensor(prompt.graph)];
  reference.set_input(input.name, widen(seeded_inputs(prompt, 1).front(), input.type));
  reference.run();
  const std::vector<std::uint8_t>& expected = reference.bytes(output_tensor(prompt.graph));

  for (const std::int64_t past : {0, 4}) {
    SizeOptions options = small_llama_size(7 - past, batch);
    options.decode = true;
    options.past = past;
    DecoderRun run(seeded_work(sized(options), machine, true), machine);
    SimulationOptions simulation;
    simulation.check = true;
    simulation.next_step = [&](std::size_t i) -> const mapper::Mapping& { return run.step(i); };
    test::fresh_kernel();
    const SimulationResult result =
        simulate(run.graph(), run.first(), machine, tlm_model::make_models(machine), run.inputs(),
                 simulation);
    EXPECT_EQ(result.check.mismatches, 0U) << result.check.first;
    ASSERT_EQ(result.outputs.size(), static_cast<std::size_t>(7 - past));
    EXPECT_EQ(result.outputs.back(), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, LlamaRunOn,
                         testing::Combine(testing::Values("transformer", "tiny"),
                                          testing::Values(1, 2), testing::Values(0, 3)));

TEST(LlamaRun, ComputesPromptsAsTheReferenceDoes) {
  for (const Words& more :
       {Words{"--length", "1"}, Words{"--length", "21"}, Words{"--length", "9", "--batch", "3"},
        Words{"--length", "21", "--window", "5"}}) {
    Words arguments = more;
    arguments.emplace_back("--check");
    const json run = small_llama(arguments);
    EXPECT_EQ(run["mismatched_bytes"], 0) << run["first_mismatch"];
    EXPECT_GE(run["checked_operators"], 40);
    EXPECT_EQ(run["seeded"]["kv_heads"], 2);
  }
}

TEST(LlamaRun, EveryStepComputesWhatItShouldOnEveryMachine) {
  for (const char* const machine : {"tiny", "gemmini", "transformer", "vitcod"}) {
    for (const char* const batch : {"1", "3"}) {
      const Words shape{"run",      "-m",    machine,  "--model",    "smollm2-135m",
                        "--layers", "1",     "--d",    "48",         "--heads",
                        "3",        "--ffn", "96",     "--kv-heads", "1",
                        "--batch",  batch,   "--check"};
      Words prompt = shape, steps = shape;
      prompt.insert(prompt.end(), {"--length", "5"});
      // Tiles of weights stay where they are when those of the attention change.
      steps.insert(steps.end(), {"--decode", "--length", "3", "--past", "9"});
      for (const Words& words : {prompt, steps}) {
        const json run = json_of(words);
        EXPECT_EQ(run["mismatched_bytes"], 0) << machine << " " << run["first_mismatch"];
        EXPECT_GE(run["over_bound"].get<double>(), 1.0) << machine;
      }
    }
  }
}

TEST(LlamaRun, TimingAloneHasTheSameCycles) {
  for (const Words& more : {Words{"--length", "9", "--batch", "2"},
                            Words{"--length", "3", "--decode", "--past", "7", "--batch", "2"}}) {
    Words timing = more;
    timing.emplace_back("--functional=off");
    EXPECT_EQ(small_llama(more)["cycles_total"], small_llama(timing)["cycles_total"]);
  }
}

/// With weights of four bits, on a machine with so many lanes of an expander.
json four_bit_llama(const char* lanes, Words more) {
  Words arguments = words_of(
      "run -m transformer --model smollm2-135m --layers 2 --d 64 --heads 4 --ffn 160 --kv-heads 2 "
      "--weight-bits 4 --json",
      more);
  arguments.push_back(std::string("--set=dma.expander_lanes=") + lanes);
  return document_of(output_of(arguments));
}

// Of a Llama where no expander is; of GPT-2 in any case. The depths are odd.
TEST(SeededRun, WeightsOfFourBitsAreInt4WhereMultipliersSplit) {
  for (const char* const network :
       {"--model smollm2-135m --layers 1 --d 96 --heads 3 --ffn 101 --length 2 --decode --past 4",
        "--model gpt2 --layers 1 --d 66 --heads 2 --ffn 129 --length 7"}) {
    const std::string line = std::string("run -m transformer --check --json ") + network;
    const json eight = document_of(output_of(words_of(line)));
    const json four =
        document_of(output_of(words_of(line + " --weight-bits 4 --set=array.split=weights")));
    EXPECT_EQ(four["mismatched_bytes"], 0) << four["first_mismatch"];
    EXPECT_GE(four["over_bound"].get<double>(), 1.0);
    EXPECT_GT(four["blocks"]["array"]["counters"]["int4_macs"], 0);
    EXPECT_EQ(four["blocks"]["array"]["counters"]["macs"],
              eight["blocks"]["array"]["counters"]["macs"]);
    EXPECT_LT(four["dram_read_bytes"], eight["dram_read_bytes"]);
    EXPECT_LT(four["cycles_total"], eight["cycles_total"]);
  }
}

TEST(LlamaRun, WeightsOfFourBitsGiveTheSameWhereverTheyAreExpanded) {
  // k: 64 and 160; rows of Q, K and V, heads of 16 each.
  const std::uint64_t weights = 2ULL * 64 * (2 * 64 + 2 * 32 + 3 * 160);
  const auto loaded = [](const json& run) {
    return run["blocks"]["load"]["counters"]["read_bytes"].get<std::uint64_t>();
  };
  for (const auto& [more, steps] :
       {std::pair{Words{"--length", "9"}, 1},
        std::pair{Words{"--length", "2", "--decode", "--past", "7", "--batch", "2"}, 2}}) {
    Words checked = more;
    checked.emplace_back("--check");
    const json eight = four_bit_llama("0", checked);
    EXPECT_EQ(eight["mismatched_bytes"], 0);
    for (const char* const lanes : {"1", "16", "64"}) {
      const json run = four_bit_llama(lanes, checked);
      EXPECT_EQ(run["mismatched_bytes"], 0) << run["first_mismatch"];
      EXPECT_EQ(run["checked_bytes"], eight["checked_bytes"]);
      EXPECT_GE(run["over_bound"].get<double>(), 1.0);
      EXPECT_EQ(run["cycles_total"], four_bit_llama(lanes, more)["cycles_total"]);
      // 18 bytes for 32 weights, in each step.
      EXPECT_EQ(loaded(eight) - loaded(run), steps * weights * 14 / 32) << lanes;
    }
  }
}

TEST(LlamaRun, ANarrowExpanderTakesTheCyclesOfItsContract) {
  const Words step{"--length", "1", "--decode", "--past", "7", "--functional=off"};
  // A weight a cycle, of the blocks alone, and nothing else there is as slow.
  const double weights = 2.0 * 64 * (2 * 64 + 2 * 32 + 3 * 160);
  const double slow = four_bit_llama("1", step)["cycles"].get<double>();
  const double fast = four_bit_llama("16", step)["cycles"].get<double>();
  EXPECT_GT(slow - fast, 0.75 * weights);
  EXPECT_LT(slow - fast, 1.1 * weights);
  // An array that takes 16 weights a cycle does not go faster by more lanes than that.
  EXPECT_EQ(four_bit_llama("64", step)["cycles"].get<double>(), fast);
}

TEST(LlamaRun, ABatchReadsTheWeightsOnce) {
  const json one = small_llama({"--length", "1", "--decode", "--past", "7"});
  const json four = small_llama({"--length", "1", "--decode", "--past", "7", "--batch", "4"});
  EXPECT_EQ(four["macs"], 4 * one["macs"].get<std::uint64_t>());
  EXPECT_LT(four["dram_read_bytes"].get<double>(), 1.3 * one["dram_read_bytes"].get<double>());
}

TEST(LlamaRun, AWindowLimitsWhatAStepReads) {
  const Words step{"--length", "1", "--decode", "--past", "499"};
  Words windowed = step;
  windowed.insert(windowed.end(), {"--window", "100"});
  // Of each head and layer: scores and context of 400 keys less, of 8 features.
  EXPECT_EQ(small_llama(step)["macs"].get<std::uint64_t>() -
                small_llama(windowed)["macs"].get<std::uint64_t>(),
            2ULL * 2 * 6 * 400 * 8);
}

TEST(LlamaRun, AnalyseCountsWhatTheGraphHas) {
  const json costs = json_of({"analyse", "--model", "smollm2-135m", "--length", "64"});
  const json model = json_of({"model", "smollm2-135m", "--length", "64"});
  EXPECT_EQ(costs["total"]["macs"].get<double>(), model["macs"].get<double>());
  EXPECT_TRUE(costs["survey"].is_null());
}

}  // namespace
}  // namespace systole::testbench
