/// How long DFX takes for GPT-2 345M, as measured by others, and for other sizes.

#include <fmt/format.h>

#include "reproduce/dfx/dfx_bounds.h"
#include "reproduce/dfx/dfx_published.h"
#include "reproduce/dfx/dfx_sections.h"

namespace systole::testbench {
namespace {

/// Up to a tile of keys and values the context makes no difference: a pass is what it is at first.
constexpr std::uint32_t kFewTokens = 4;
/// Prompt and text of the comparison with a GPU.
constexpr std::uint32_t kGpuTokens = 32;

DfxTask medium(std::uint32_t cores, std::uint32_t input, std::uint32_t output) {
  return {std::string(kDfx345M.shape), cores, input, output};
}

}  // namespace

std::vector<DfxRun> run_dfx_cores() {
  return run_dfx({medium(1, 64, 64), medium(2, 64, 64), medium(4, 64, 64)});
}

ReproductionSection dfx_cores_section(const std::vector<DfxRun>& by_cores) {
  ReproductionSection section{"GPT-2 345M by cores, [64:64]: calibrated on these", {}, {}};
  for (const DfxRun& run : by_cores) {
    section.rows.push_back(compare(fmt::format("{} cores: a pass", run.task.cores),
                                   run.pass_milliseconds(),
                                   dfx_published(fmt::format("pass.{}", run.task.cores))));
  }
  for (const DfxRun& run : by_cores) {
    section.rows.push_back(compare(fmt::format("{} cores: tokens a second", run.task.cores),
                                   run.tokens_per_second(),
                                   dfx_published(fmt::format("speed.{}", run.task.cores))));
  }
  const auto scaling = [&](std::size_t from, std::size_t to, const char* name, const char* key) {
    section.rows.push_back(
        compare(name, by_cores[from].pass_milliseconds() / by_cores[to].pass_milliseconds(),
                dfx_published(key)));
  };
  scaling(0, 1, "1 to 2 cores", "scaling.1.2");
  scaling(1, 2, "2 to 4 cores", "scaling.2.4");
  scaling(0, 2, "1 to 4 cores", "scaling.1.4");
  section.notes = {
      "dfx.issue_cycles and ring.hop_ns of machine dfx are calibrated on the three passes: two "
      "numbers. That three figures are met says that control, sums and hops can explain them. "
      "Everything else is DFX's or chosen. A pass: a token through the network, of the prompt or "
      "generated; as many passes as tokens of both."};
  return section;
}

ReproductionSection dfx_lengths_section(const DfxRun& at_64) {
  ReproductionSection section{"GPT-2 345M on one core, by [prompt:text]", {}, {}};
  std::vector<DfxRun> runs = run_dfx({medium(1, 32, 32), medium(1, 128, 128)});
  runs.insert(runs.begin() + 1, at_64);
  for (const DfxRun& run : runs) {
    const std::uint32_t tokens = run.task.input;
    section.rows.push_back(compare(fmt::format("[{0}:{0}]: all", tokens), run.milliseconds(),
                                   dfx_published(fmt::format("total.{}", tokens))));
    section.rows.push_back(compare(fmt::format("[{0}:{0}]: first token", tokens),
                                   run.first_token_milliseconds(),
                                   dfx_published(fmt::format("first.{}", tokens))));
  }
  section.rows.push_back(
      compare("a token generated, [64:64]",
              (at_64.milliseconds() - at_64.first_token_milliseconds()) / at_64.task.output,
              dfx_published("token")));
  section.notes = {
      "Measured first tokens take one pass more than the prompt has tokens. Ours come behind the "
      "last token of the prompt; the pass is at the end, where the last token runs through the "
      "network too (dfx.last_pass)."};
  return section;
}

ReproductionSection dfx_efficiency_section(const DfxRun& one_core) {
  ReproductionSection section{"Efficiency, GPT-2 345M on one core", {}, {}};
  const hw::Machine machine = one_core.task.make_machine();
  const model::TextShape shape = one_core.task.make_shape();
  const double ms = one_core.pass_milliseconds();
  const double bytes = weight_bytes(shape, machine);
  const double peak = dfx_published("hbm.peak").value;
  const double matrix_ms =
      static_cast<double>(matrix_cycles(shape, machine).total) / (1e3 * machine.core.clock_mhz);
  // A weight of two bytes is a multiply and an add.
  section.rows = {
      compare("weights to the HBM's peak", 100.0 * bytes / (ms * 1e6) / peak,
              dfx_published("share.hbm")),
      compare("products to their peak", 100.0 * matrix_ms / ms, dfx_published("share.matrix")),
      compare("operations of products", bytes / (ms * 1e6), dfx_published("gflops")),
  };
  return section;
}

ReproductionSection dfx_prompt_section() {
  ReproductionSection section{"A prompt of 128 tokens, GPT-2 345M on one core", {}, {}};
  const std::vector<DfxRun> runs = [] {
    std::vector<DfxTask> tasks;
    for (const char* machine : {"dfx", "dfx-ideal"}) {
      for (const char* prefill : {"serial", "batched"}) {
        tasks.push_back(medium(1, 128, 1));
        tasks.back().machine = machine;
        tasks.back().settings = {fmt::format("dfx.prefill={}", prefill)};
      }
    }
    return run_dfx(tasks);
  }();
  const MatrixCycles cycles = matrix_cycles(runs[0].task.make_shape(), runs[0].task.make_machine());
  const double products = static_cast<double>(
      128 * runs[0].task.make_shape().encoder.layers * cycles.layer + cycles.lm_head);
  section.rows = {
      compare("token by token", runs[0].first_token_milliseconds(), dfx_published("serial")),
      compare("products of all tokens, bound",
              products / (1e3 * runs[0].task.make_machine().core.clock_mhz),
              dfx_published("batched")),
      measured("together, dfx", runs[1].first_token_milliseconds(), "ms"),
      measured("token by token, dfx-ideal", runs[2].first_token_milliseconds(), "ms"),
      measured("together, dfx-ideal", runs[3].first_token_milliseconds(), "ms")};
  section.notes = {
      "Together: as many tokens as the matrix unit has partial sums share the weights that are "
      "read "
      "(dfx.prefill). That saves bytes and not multiplications, and each token's attention and "
      "vectors remain; an option, DFX does not have it."};
  return section;
}

ReproductionSection dfx_sizes_section() {
  ReproductionSection section{"Other sizes, predicted, and a V100", {}, {}};
  std::vector<DfxTask> tasks;
  const auto add = [&](const DfxSize& size, std::uint32_t cores) {
    tasks.push_back({std::string(size.shape), cores, kFewTokens, kFewTokens});
  };
  add(kDfx774M, 1);
  add(kDfx774M, 2);
  add(kDfx1500M, 1);
  add(kDfx1500M, 2);
  add(kDfx1500M, 4);
  add(kDfxFullXl, 4);
  const std::vector<DfxRun> runs = run_dfx(tasks);
  const auto name_of = [](const DfxRun& run) {
    for (const DfxSize& size : {kDfx774M, kDfx1500M}) {
      if (run.task.shape == size.shape) return fmt::format("{} x{}", size.name, run.task.cores);
    }
    return fmt::format("{} x{}", kDfxFullXl.name, run.task.cores);
  };
  for (const DfxRun& run : runs) {
    section.rows.push_back(measured(name_of(run) + ": a pass", run.pass_milliseconds(), "ms"));
  }
  const double gpu = dfx_gpu_milliseconds(kGpuTokens, kGpuTokens);
  for (const DfxRun& run : runs) {
    if (run.task.shape != kDfx1500M.shape) continue;
    const double ours = 2 * kGpuTokens * run.pass_milliseconds();
    section.rows.push_back(compare(fmt::format("{} [{}:{}]", name_of(run), kGpuTokens, kGpuTokens),
                                   ours,
                                   {"", gpu, "ms", dfx_published("gpu.output").source, {}, 0}));
    section.rows.push_back(
        compare(name_of(run) + ": times faster", gpu / ours, dfx_published("speed-up")));
  }
  const auto formula = [&](std::uint32_t input, std::uint32_t output) {
    section.rows.push_back(compare(fmt::format("GPU by formula, [{}:{}]", input, output),
                                   dfx_gpu_milliseconds(input, output),
                                   dfx_published(fmt::format("gpu.{}.{}", input, output))));
  };
  formula(32, 1);
  formula(128, 1);
  formula(32, 4);
  section.notes = {
      fmt::format(
          "Simulated: [{0}:{0}]; up to 64 tokens of context a pass takes the same, so [{1}:{1}] "
          "is {2} of them. The machine is calibrated on 345M alone.",
          kFewTokens, kGpuTokens, 2 * kGpuTokens),
      "The GPU takes 75.45 ms for a token that it generates, 0.02 ms for one of the prompt. 5.58 "
      "times is the mean over sizes and lengths, of four devices each.",
      "1.5B: 24 heads of 64, as DFX runs it on four cores. With 25 heads one core has seven of "
      "them, for which the others wait."};
  return section;
}

}  // namespace systole::testbench
