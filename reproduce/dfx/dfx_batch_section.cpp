/// Several texts at once, and layers divided among the cores in the place of heads and columns.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "reproduce/dfx/dfx.h"

namespace systole::testbench {
namespace {

/// Up to a tile of keys and values the context makes no difference.
constexpr std::uint32_t kBatchTokens = 2;
constexpr std::array<std::uint32_t, 6> kBatches = {1, 2, 4, 8, 16, 32};
/// That ask two clusters at once.
constexpr std::uint32_t kClusterRequests = 4;
/// Room for the logits of all texts, which the register file of DFX need not have.
constexpr const char* kRoom = "vector.registers=65536";

struct BatchMode {
  const char* name;
  std::vector<std::string> settings;
};
const std::vector<BatchMode>& modes() {
  static const std::vector<BatchMode> all = {{"serial", {kRoom}},
                                             {"shared", {kRoom, "dfx.batching=shared"}},
                                             {"pipelined", {kRoom, "dfx.parallelism=pipelined"}}};
  return all;
}

/// From a token of a text to its next one, ms: machine dfx runs all tokens through the network.
double step_milliseconds(const DfxRun& run) {
  return run.pass_milliseconds() * run.number("passes") / (run.task.input + run.task.output);
}

}  // namespace

ReproductionSection dfx_batch_section() {
  std::vector<DfxTask> tasks;
  for (const BatchMode& mode : modes()) {
    for (const std::uint32_t batch : kBatches) {
      DfxTask& task = tasks.emplace_back();
      task.name = "345M x4";
      task.input = task.output = kBatchTokens;
      task.settings = mode.settings;
      task.batch = batch;
    }
  }
  tasks.push_back({"345M x1", kBatchTokens, kBatchTokens});
  const std::vector<DfxRun> runs = run_dfx(tasks);
  Metrics metrics;
  for (std::size_t m = 0; m < modes().size(); ++m) {
    for (std::size_t b = 0; b < kBatches.size(); ++b) {
      const DfxRun& run = runs[m * kBatches.size() + b];
      const std::string name = fmt::format("{}.{}", modes()[m].name, kBatches[b]);
      const double step = step_milliseconds(run);
      metrics["step." + name] = step;
      metrics["speed." + name] = 1e3 * kBatches[b] / step;
    }
    const hw::Machine machine = runs[m * kBatches.size()].task.make_machine();
    metrics[fmt::format("energy.{}", modes()[m].name)] =
        1e3 * machine.dfx.board_watts * machine.dfx.cores /
        metrics[fmt::format("speed.{}.{}", modes()[m].name, kBatches.back())];
  }
  metrics["one core"] = step_milliseconds(runs.back());
  metrics["serial gain"] = metrics["speed.serial.32"] / metrics["speed.serial.1"];
  metrics["shared gain"] = metrics["speed.shared.32"] / metrics["speed.serial.32"];
  metrics["pipelined gain"] = metrics["speed.pipelined.32"] / metrics["speed.serial.32"];
  metrics["pipelined delay"] = metrics["step.pipelined.1"] / metrics["step.serial.1"];
  return dfx_paper().section("batch", metrics, {{"few", std::to_string(kBatchTokens)}});
}

ReproductionSection dfx_cluster_section() {
  struct Case {
    const char* name;
    std::uint32_t requests;
    bool draws;
    std::vector<std::string> settings;
  };
  const std::string two = "dfx.clusters=2", slow = "pcie.gbyte_per_s=0.1";
  const std::vector<Case> cases = {{"one.1", 1, false, {}},
                                   {"one.4", kClusterRequests, false, {}},
                                   {"two.4", kClusterRequests, false, {two}},
                                   {"one.drawn", kClusterRequests, true, {}},
                                   {"two.drawn", kClusterRequests, true, {two}},
                                   {"one.slow", kClusterRequests, true, {slow}},
                                   {"two.slow", kClusterRequests, true, {two, slow}}};
  std::vector<DfxTask> tasks;
  for (const Case& one : cases) {
    DfxTask& task = tasks.emplace_back();
    task.name = "345M x4";
    task.input = task.output = kBatchTokens;
    task.settings = one.settings;
    task.requests = one.requests;
    task.draws = one.draws;
  }
  const std::vector<DfxRun> runs = run_dfx(tasks);
  const auto run_of = [&](const std::string& name) -> const DfxRun& {
    const auto found =
        std::find_if(cases.begin(), cases.end(), [&](const Case& one) { return one.name == name; });
    return runs[static_cast<std::size_t>(found - cases.begin())];
  };
  Metrics metrics = {{"request.one", run_of("one.1").milliseconds()},
                     {"request.two", run_of("two.4").number("first_request_ms")},
                     {"last.one", run_of("one.4").milliseconds()},
                     {"last.two", run_of("two.4").milliseconds()},
                     {"speed.two", run_of("two.4").tokens_per_second()}};
  for (const std::string kind : {"4", "drawn", "slow"}) {
    const double one = run_of("one." + kind).tokens_per_second();
    metrics["speed.one." + kind] = one;
    metrics["gain." + kind] = run_of("two." + kind).tokens_per_second() / one;
  }
  return dfx_paper().section("clusters", metrics, {{"few", std::to_string(kBatchTokens)}});
}

}  // namespace systole::testbench
