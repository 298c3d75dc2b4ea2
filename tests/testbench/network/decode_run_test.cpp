#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "hw/description/machine_file.h"
#include "model/graph/elements.h"
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

SizeOptions small_size(std::int64_t length) {
  SizeOptions options;
  options.length = length;
  options.layers = 2;
  options.heads = 3;
  options.width = 48;
  options.hidden = 96;
  return options;
}

json decode(Words more) {
  const Words arguments =
      words_of("run --model gpt2 --layers 2 --d 48 --heads 3 --ffn 96 --decode --json", more);
  return document_of(output_of(arguments));
}

class DecodeRunOn : public testing::TestWithParam<const char*> {};

TEST_P(DecodeRunOn, GivesTheOutputsOfAllTokensAtOnce) {
  const hw::Machine machine = hw::find_machine(GetParam());
  const Network prompt = seeded_network(network_size("gpt2", small_size(13)), machine);
  model::Reference reference(prompt.graph);
  const model::Tensor& input = prompt.graph.tensors[input_tensor(prompt.graph)];
  reference.set_input(input.name, widen(seeded_inputs(prompt, 1).front(), input.type));
  reference.run();
  const std::vector<std::uint8_t>& expected = reference.bytes(output_tensor(prompt.graph));

  for (const std::int64_t past : {0, 6}) {
    SizeOptions options = small_size(13 - past);
    options.decode = true;
    options.past = past;
    DecoderRun run(seeded_work(network_size("gpt2", options), machine, true), machine);
    SimulationOptions simulation;
    simulation.check = true;
    simulation.next_step = [&](std::size_t i) -> const mapper::Mapping& { return run.step(i); };
    test::fresh_kernel();
    const SimulationResult result =
        simulate(run.graph(), run.first(), machine, tlm_model::make_models(machine), run.inputs(),
                 simulation);
    EXPECT_EQ(result.check.mismatches, 0U) << result.check.first;
    std::vector<std::uint8_t> outputs(
        expected.begin(),
        expected.begin() +
            static_cast<std::ptrdiff_t>(static_cast<std::size_t>(past) * expected.size() / 13));
    for (const auto& output : result.outputs) {
      outputs.insert(outputs.end(), output.begin(), output.end());
    }
    EXPECT_EQ(outputs, expected) << past;
  }
}

/// With integer units on chip, and with a host that computes.
INSTANTIATE_TEST_SUITE_P(Machines, DecodeRunOn, testing::Values("transformer", "gemmini"));

TEST(DecodeRun, EveryStepComputesWhatItShouldOnEveryMachine) {
  for (const char* machine : {"tiny", "gemmini", "transformer", "vitcod"}) {
    const json run = decode({"-m", machine, "--length", "7", "--past", "30", "--check"});
    EXPECT_EQ(run["mismatched_bytes"], 0) << machine << run["first_mismatch"];
    EXPECT_EQ(run["images"], 7);
    EXPECT_GT(run["checked_operators"], 7 * 20);
    EXPECT_EQ(run["decode"]["past"], 30);
  }
}

/// What a step is mapped to.
std::pair<std::uint64_t, std::vector<std::uint8_t>> mapped(const mapper::Mapping& mapping) {
  return {mapping.expected_cycles, mapping.image.back().bytes};
}

TEST(DecodeRun, StepsMappedAheadAreTheSame) {
  for (const char* name : {"tiny", "transformer"}) {
    const hw::Machine machine = hw::find_machine(name);
    SizeOptions options = small_size(6);
    options.decode = true;
    options.past = 40;
    DecoderRun one(seeded_work(network_size("gpt2", options), machine, true), machine);
    DecoderRun ahead(seeded_work(network_size("gpt2", options), machine, true), machine);
    ahead.map_ahead();
    // In order, the last one again, one that was not expected, and from the begin on.
    for (const std::size_t step : {0U, 1U, 2U, 3U, 4U, 5U, 5U, 2U, 0U, 1U}) {
      SCOPED_TRACE(std::string(name) + ", step " + std::to_string(step));
      EXPECT_EQ(mapped(ahead.step(step)), mapped(one.step(step)));
      EXPECT_EQ(mapped(ahead.latest()), mapped(one.latest()));
      EXPECT_EQ(ahead.graph().nodes.size(), one.graph().nodes.size());
    }
  }
}

TEST(DecodeRun, AStepThatCannotBeMappedFailsWhenItsTurnComes) {
  const hw::Machine machine = hw::find_machine("tiny");
  SizeOptions options = small_size(4);
  options.decode = true;
  DecoderWork work = seeded_work(network_size("gpt2", options), machine, true);
  std::atomic<bool> fails = false;
  // Only where it is mapped ahead: the caller's own move of token 2 does not fail.
  work.move = [&fails, caller = std::this_thread::get_id()](model::Graph& graph,
                                                            std::uint32_t token) {
    if (fails && token == 2 && std::this_thread::get_id() != caller) {
      throw hw::InputError("token 2");
    }
    model::move_to_token(graph, token);
  };
  DecoderRun run(std::move(work), machine);
  run.map_ahead();
  run.step(0);
  fails = true;
  EXPECT_NO_THROW(run.step(1));
  EXPECT_THROW(run.step(2), hw::InputError);
  EXPECT_NO_THROW(run.step(2)) << "an error is reported once";
  EXPECT_NO_THROW(run.step(1));
  EXPECT_NO_THROW(run.step(3)) << "what was mapped in vain is forgotten";
  EXPECT_NO_THROW(run.step(2)) << "and does not come back";
}

TEST(DecodeRun, TimingAloneHasTheSameCycles) {
  const Words work{"-m", "gemmini", "--length", "5", "--past", "20"};
  Words timing = work;
  timing.emplace_back("--functional=off");
  const json with = decode(work), without = decode(timing);
  EXPECT_EQ(with["cycles_total"], without["cycles_total"]);
  EXPECT_EQ(with["blocks"], without["blocks"]);
}

TEST(DecodeRun, LaterTokensReadMoreOfTheCache) {
  const Words early{"-m", "gemmini", "--length", "2", "--functional=off"};
  Words late = early;
  late.insert(late.end(), {"--past", "900"});
  const json first = decode(early), last = decode(late);
  EXPECT_GT(last["cycles"], first["cycles"]);
  // Keys and values of 900 tokens more, in two layers.
  EXPECT_GE(
      last["dram_read_bytes"].get<std::int64_t>() - first["dram_read_bytes"].get<std::int64_t>(),
      900 * 2 * 2 * 48);
}

TEST(DecodeRun, ShowsCyclesOfAllTokens) {
  const std::string text =
      output_of({"run", "-m", "gemmini", "--model", "gpt2", "--layers", "1", "--d", "48", "--heads",
                 "3", "--ffn", "96", "--decode", "--length", "3", "--functional=off"});
  // Long lines wrap.
  const std::string words = std::regex_replace(text, std::regex("\\s+"), " ");
  EXPECT_NE(words.find("3 tokens one by one after 0 in the cache"), std::string::npos) << text;
  EXPECT_NE(text.find("\nall tokens "), std::string::npos) << text;
  EXPECT_NE(text.find("tokens/s"), std::string::npos) << text;
}

}  // namespace
}  // namespace systole::testbench
