#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/description/machine_file.h"
#include "hw/description/machine_text.h"
#include "model/build/llama_graph.h"
#include "model/format/safetensors_writer.h"
#include "model/graph/reference.h"
#include "support/input_error.h"
#include "support/network/tiny_llama.h"
#include "support/program/program_run.h"
#include "support/random/random_machine.h"
#include "support/tlm/fresh_kernel.h"
#include "testbench/network/decoder_run.h"
#include "testbench/network/networks.h"
#include "testbench/network/tensors.h"
#include "testbench/run/simulation.h"

/// Llamas whose tokens go to a few of many experts.
namespace systole::testbench {
namespace {

using nlohmann::json;

SizeOptions small_experts(std::int64_t experts, std::int64_t active, std::int64_t length,
                          std::int64_t batch) {
  SizeOptions options;
  options.length = length;
  options.batch = batch;
  options.layers = 2;
  options.heads = 4;
  options.kv_heads = 2;
  options.width = 32;
  options.hidden = 64;
  options.experts = experts;
  options.active_experts = active;
  return options;
}

/// Nothing of an expert is loaded before its block's host call; the number of calls.
std::size_t calls_before_experts(const hw::Program& program) {
  std::size_t calls = 0;
  for (const hw::Command& command : program.commands) {
    if (command.as<hw::cmd::HostCall>() != nullptr) ++calls;
    if (command.opcode() == hw::Opcode::kEnd) continue;
    const std::string& name = program.operators[command.op].name;
    const std::size_t at = name.find(".mlp.expert");
    if (at == std::string::npos) continue;
    // "blocks.I"
    EXPECT_EQ(calls, std::stoul(name.substr(7, at - 7)) + 1) << name;
  }
  return calls;
}

TEST(ExpertRun, GivesTheLogitsOfAllExpertsOnAnyMachine) {
  test::Random random(29);
  int runs = 0;
  while (runs < 10) {
    hw::Machine machine = test::random_machine(random);
    machine.host.operators = hw::HostOperators::kRouting;
    machine.postop.row_statistics = std::max(machine.postop.row_statistics, 256U);
    const auto of = [&](std::uint32_t least, std::uint32_t most) {
      return static_cast<std::int64_t>(least + random() % (most - least + 1));
    };
    const std::int64_t experts = of(1, 9), active = of(1, 3);
    SizeOptions options =
        small_experts(experts, std::min(experts, active), runs % 2 == 0 ? of(1, 5) : 1, of(1, 3));
    if (runs % 2 != 0) {
      options.decode = true;
      options.past = of(0, 6);
    }
    if (runs % 3 == 0 && machine.dma.expander_lanes != 0) options.weight_format = "mxfp4";
    const NetworkSize size = network_size("llama-3.2-1b", options);
    SimulationOptions check;
    check.check = true;
    SimulationOptions timing;
    timing.functional = false;
    SimulationResult result, timed;
    model::Graph graph;
    std::vector<std::vector<std::uint8_t>> inputs;
    try {
      if (size.decode) {
        DecoderWork work = seeded_work(size, machine, true);
        graph = work.graph;
        inputs = work.inputs;
        DecoderRun run(std::move(work), machine);
        EXPECT_EQ(calls_before_experts(run.first().program), 2U);
        const auto simulated = [&](SimulationOptions& of_run) {
          of_run.next_step = [&](std::size_t i) -> const mapper::Mapping& { return run.step(i); };
          test::fresh_kernel();
          return simulate(run.graph(), run.first(), machine, tlm_model::make_models(machine),
                          run.inputs(), of_run);
        };
        result = simulated(check);
        timed = simulated(timing);
      } else {
        const Network network = seeded_network(size, machine);
        graph = network.graph;
        inputs = seeded_inputs(network, 1);
        const mapper::Mapping mapping = mapper::map_graph(graph, machine);
        EXPECT_EQ(calls_before_experts(mapping.program), 2U);
        const auto simulated = [&](const SimulationOptions& of_run) {
          test::fresh_kernel();
          return simulate(graph, mapping, machine, tlm_model::make_models(machine), inputs, of_run);
        };
        result = simulated(check);
        timed = simulated(timing);
      }
    } catch (const hw::InputError&) {
      continue;  // too small
    }
    ++runs;
    EXPECT_EQ(result.check.mismatches, 0U) << result.check.first << hw::to_toml(machine);
    EXPECT_GE(static_cast<double>(result.cycles.front()), result.bounds.front());
    EXPECT_EQ(result.cycles, timed.cycles) << hw::to_toml(machine);
    // All experts, with no program.
    const model::IntegerLlama llama = seeded_llama(size, machine, true);
    model::Graph all = size.decode
                           ? model::make_llama_decode_graph(llama, size.tokens(), size.batch)
                           : model::make_llama_graph(llama, size.length, size.batch);
    for (model::Tensor& tensor : all.tensors) {
      if (tensor.kind != model::Tensor::Kind::kState) continue;
      tensor.data = graph.tensors[model::find_tensor(graph, tensor.name)].data;
    }
    model::Reference reference(all, {true, true});
    const model::Tensor& in = all.tensors[input_tensor(all)];
    reference.set_input(in.name, widen(inputs.front(), in.type));
    reference.run();
    EXPECT_EQ(result.outputs.front(), reference.bytes(output_tensor(all)));
  }
}

// From a checkpoint to a step of its integers: what the routers decide, on the simulated machine.
TEST(ExpertRun, TakesANetworkFile) {
  const TempDirectory directory;
  test::TinyLlama::Form form;
  form.experts = 6;
  const std::string real = directory.path("llama.safetensors");
  const std::string integer = directory.path("llama.int8.safetensors");
  const std::string ids = directory.path("ids.safetensors");
  test::TinyLlama::write(real, form);
  const auto write_ids = [&](const std::string& path, std::size_t count, std::size_t length) {
    std::vector<std::int64_t> all;
    for (const auto& text : test::TinyLlama::texts(count, length)) {
      all.insert(all.end(), text.begin(), text.end());
    }
    model::write_safetensors(
        path, {model::make_tensor("input_ids", model::FileDtype::kI64, {count, length}, all)});
  };
  const std::string calibration = directory.path("calibration.safetensors");
  write_ids(calibration, 2, 20);
  write_ids(ids, 1, 9);
  output_of({"quantise", real, "-c", calibration, "-o", integer});
  const auto run = [&](const std::string& more) {
    return words_of(
        "run -m transformer --set=host.operators=routing --set=datapath.residual_bits=24 "
        "--set=postop.row_statistics=4096 --model " +
        integer + " -i " + ids + " " + more);
  };
  for (const char* const how : {"--check --json", "--decode --past 8 --check --json"}) {
    const json document = document_of(output_of(run(how)));
    EXPECT_EQ(document["mismatched_bytes"], 0) << how;
    EXPECT_GT(document["checked_bytes"], 0) << how;
  }
  const auto refusal_of = [](const Words& words) {
    const ProgramRun run = run_systole(words);
    EXPECT_EQ(run.exit_code, 2);
    return run.err;
  };
  expect_contains(refusal_of(run("--decode --past 3")),
                  "--past: found 3 of 9 tokens, but the program of experts is that of one step");
  expect_contains(
      refusal_of(words_of("run -m transformer --set=datapath.residual_bits=24 --model " + integer +
                          " -i " + ids)),
      "experts, expected host.operators = \"routing\"");
  expect_contains(refusal_of({"generate", "--model", integer, "--input-tokens", "3", "-n", "2"}),
                  "has experts, which run by single steps alone");
  expect_contains(refusal_of({"generate", "--model", real, "--cores", "1", "--input-tokens", "3"}),
                  "has experts, which a ring cannot run");
}

json expert_run(const std::string& more) {
  return document_of(output_of(words_of(
      "run -m transformer --set=host.operators=routing --model gpt-oss-20b --layers 3 --d 64 "
      "--heads 4 --kv-heads 2 --ffn 96 --functional=off --decode --past 5 --length 1 --json " +
      more)));
}

TEST(ExpertRun, TakesNoFewerBytesAndCyclesWithMoreTokens) {
  for (const char* const routing : {"uniform", "worst"}) {
    std::uint64_t cycles = 0, bytes = 0;
    for (const char* const batch : {"1", "2", "8"}) {
      const json run = expert_run(std::string("--batch ") + batch + " --routing " + routing);
      EXPECT_GT(run["cycles_total"], cycles) << routing << " " << batch;
      EXPECT_GT(run["dram_read_bytes"], bytes) << routing << " " << batch;
      EXPECT_GE(run["over_bound"].get<double>(), 1.0);
      cycles = run["cycles_total"];
      bytes = run["dram_read_bytes"];
    }
  }
  const json uniform = expert_run("--batch 6"), worst = expert_run("--batch 6 --routing worst");
  EXPECT_LT(uniform["dram_read_bytes"], worst["dram_read_bytes"]);
  EXPECT_LT(uniform["cycles_total"], worst["cycles_total"]);
  EXPECT_EQ(worst["seeded"]["most_experts"], 24);
  EXPECT_EQ(worst["seeded"]["read_experts"], 24);
  EXPECT_LT(uniform["seeded"]["read_experts"], 24);
  EXPECT_GT(uniform["seeded"]["read_experts"], 12);
  EXPECT_NEAR(worst["seeded"]["expected_experts"].get<double>(), 17.64, 0.01);
  // An expert more reads its weights more, and little besides, but for its program.
  const auto read_of = [](const char* experts) {
    const json run = expert_run(experts);
    const json& processor = run["blocks"]["command_processor"]["counters"];
    return run["dram_read_bytes"].get<double>() - processor["fetched_bytes"].get<double>();
  };
  const double more = read_of("--active-experts 2") - read_of("--active-experts 1");
  EXPECT_GE(more, 3.0 * 3 * 64 * 96);
  EXPECT_LE(more, 1.5 * 3.0 * 3 * 64 * 96);
}

}  // namespace
}  // namespace systole::testbench
