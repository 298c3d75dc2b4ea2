#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "model/format/npy.h"
#include "model/mask/attention_mask.h"
#include "testbench/attention/attention_simulation.h"
#include "testbench/attention/attention_workload.h"
#include "testbench/attention/dynamic_attention.h"
#include "testbench/attention/head_split.h"
#include "testbench/attention/report_attention.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/cli/common/wave_options.h"
#include "testbench/common/child_process.h"
#include "testbench/page/report_page.h"
#include "testbench/report/machine_json.h"
#include "testbench/run/rtl_blocks.h"

namespace systole::testbench {
namespace {

constexpr std::int64_t kMaxHeads = 256, kMaxLayers = 1024, kMaxHeadDim = 4096, kMaxTokens = 4096;
/// Of a dense map, all layers and heads.
constexpr std::size_t kMaxCells = std::size_t{1} << 26U;

struct AttentionOptions {
  MachineOptions machine;
  std::string mask, stats, report, outputs;
  WaveOptions wave;
  std::optional<std::int64_t> layers, heads, tokens;
  std::int64_t dim = 64;
  std::optional<std::int64_t> v_dim;
  std::optional<std::int64_t> latent_heads;
  std::optional<std::int64_t> threshold;
  bool no_reorder = false;
  bool functional = true;
  bool json = false;
};

std::size_t checked(const char* option, std::int64_t value, std::int64_t highest) {
  if (value < 1 || value > highest) {
    throw hw::InputError(fmt::format("{}: found {}, expected 1 to {}", option, value, highest));
  }
  return static_cast<std::size_t>(value);
}

/// The numbers that do not depend on a mask.
void check_numbers(const AttentionOptions& options) {
  (void)checked("--dim", options.dim, kMaxHeadDim);
  if (options.v_dim) (void)checked("--v-dim", *options.v_dim, kMaxHeadDim);
  if (options.threshold.value_or(0) < 0) {
    throw hw::InputError(
        fmt::format("--threshold: found {}, expected 0 or more", *options.threshold));
  }
}

/// The mask in the file, or dense maps of the sizes in the options.
model::AttentionMask mask_of(const AttentionOptions& options) {
  if (!options.mask.empty()) {
    if (options.tokens || options.heads || options.layers) {
      throw hw::InputError(
          "--tokens, --heads, --layers: the mask has its own, expected none with --mask");
    }
    model::AttentionMask mask = model::load_mask(model::Npy::open(options.mask));
    require_full_rows(mask, options.mask);
    return mask;
  }
  if (!options.tokens || !options.heads) {
    throw hw::InputError("--mask: none, expected a mask, or --tokens and --heads of a dense map");
  }
  const std::size_t tokens = checked("--tokens", *options.tokens, kMaxTokens);
  const model::AttentionShape shape{checked("--layers", options.layers.value_or(1), kMaxLayers),
                                    checked("--heads", *options.heads, kMaxHeads), tokens, tokens};
  if (shape.cells() > kMaxCells) {
    throw hw::InputError(fmt::format("--tokens, --heads, --layers: {} cells, expected at most {}",
                                     shape.cells(), kMaxCells));
  }
  model::AttentionMask mask(shape);
  for (std::size_t cell = 0; cell < mask.shape().cells(); ++cell) mask.keep(cell);
  return mask;
}

HeadSplit split_of(const AttentionOptions& options) {
  HeadSplit split;
  split.reorder = !options.no_reorder;
  if (options.threshold) split.threshold = static_cast<std::size_t>(*options.threshold);
  return split;
}

std::size_t latent_heads(const AttentionOptions& options, const model::AttentionShape& shape) {
  if (shape.heads > hw::kMaxMixHeads) {
    throw hw::InputError(fmt::format("--latent-heads: {} heads, expected at most {}", shape.heads,
                                     hw::kMaxMixHeads));
  }
  return checked("--latent-heads", *options.latent_heads, hw::kMaxMixHeads);
}

/// The same without auto-encoder; cycles do not depend on values.
AttentionReport::Plain run_plain(AttentionShape shape, const SplitLayers& layers,
                                 const hw::Machine& machine) {
  shape.latent_heads = 0;
  const AttentionWorkload workload = make_attention_workload(shape, layers, machine, false);
  return in_child([&] {
    const AttentionResult result = simulate_attention(workload, machine, false);
    return AttentionReport::Plain{result.cycles, result.traffic.qkv()};
  });
}

/// All blocks in RTL are those of the attention engines here, where nothing else is active.
hw::Machine machine_of(const AttentionOptions& options) {
  MachineOptions machine = options.machine;
  const auto all = std::find(machine.rtl.begin(), machine.rtl.end(), "all");
  if (all != machine.rtl.end()) machine.rtl = attention_blocks();
  return load_attention_machine(machine);
}

void list_files(const AttentionOptions& options, CommandFiles& files) {
  files.reads_machine("--machine", options.machine.machine);
  files.reads("--mask", options.mask);
  files.writes("--stats", options.stats);
  files.writes("--report", options.report);
  files.writes("--outputs", options.outputs);
  list_wave_files(options.wave, files);
}

/// Of a machine that finds its mask while it runs: what is not of attention engines alone.
void refuse_engines(const AttentionOptions& options) {
  const std::pair<const char*, bool> found[] = {
      {"--v-dim", options.v_dim.has_value()},
      {"--latent-heads", options.latent_heads.has_value()},
      {"--threshold", options.threshold.has_value()},
      {"--no-reorder", options.no_reorder},
      {"--rtl", !options.machine.rtl.empty()},
      {"--outputs", !options.outputs.empty()},
      {"--report", !options.report.empty()},
      {"--wave", !options.wave.path.empty()}};
  for (const auto& [option, is_given] : found) {
    if (!is_given) continue;
    throw hw::InputError(fmt::format("{}: of attention engines, found machine {}", option,
                                     hw::printable(options.machine.machine)));
  }
}

int run_dynamic(const AttentionOptions& options, const hw::Machine& machine) {
  refuse_engines(options);
  const model::AttentionMask mask = mask_of(options);
  JsonOutput stats(options.stats);
  const DynamicAttention attention = run_dynamic_attention(
      machine, mask, options.mask.empty() ? "dense" : hw::printable(options.mask),
      static_cast<std::size_t>(options.dim));
  nlohmann::ordered_json document = to_json(attention);
  document["machine_keys"] = machine_json(machine);
  stats.write(document);
  if (options.json) {
    print_json(document);
  } else {
    print_text(dynamic_attention_text(attention));
  }
  return kExitOk;
}

int run(const AttentionOptions& options) {
  check_numbers(options);
  const hw::Machine any_kind = load_machine(options.machine.machine, options.machine.settings);
  if (any_kind.dynamic.kind != hw::DynamicKind::kNone) return run_dynamic(options, any_kind);
  require_values(options.outputs, options.functional);
  const hw::Machine machine = machine_of(options);
  const model::AttentionMask mask = mask_of(options);
  const model::AttentionShape& shape = mask.shape();
  const auto dim = static_cast<std::size_t>(options.dim);
  const HeadSplit split = split_of(options);
  JsonOutput stats(options.stats);
  ReportPage page(options.report);
  const SplitLayers layers = split_mask(mask, split, dim, machine.attention);
  AttentionShape sizes{shape.heads, shape.queries,
                       shape.keys,  dim,
                       0,           static_cast<std::size_t>(options.v_dim.value_or(0))};
  AttentionReport report;
  if (options.latent_heads) {
    sizes.latent_heads = latent_heads(options, shape);
    report.without_auto_encoder = run_plain(sizes, layers, machine);
  }
  const AttentionWorkload workload =
      make_attention_workload(sizes, layers, machine, options.functional);
  report.machine = machine;
  report.mask = options.mask.empty() ? "dense" : hw::printable(options.mask);
  report.reordering = split.text();
  report.functional = options.functional;
  report.workload = &workload;
  RtlWaves rtl_waves(options.wave.path, machine);
  RtlOptions rtl = rtl_waves.options();
  add_own_rtl(options.machine.rtl, rtl);
  report.result = simulate_attention(workload, machine, make_engines(machine, rtl, report.rtl),
                                     options.functional, options.wave);
  rtl_waves.write();
  nlohmann::ordered_json document = attention_json(report);
  document["machine_keys"] = machine_json(machine);
  stats.write(document);
  page.write(report.machine, document);
  if (!options.outputs.empty()) model::write_safetensors(options.outputs, report.result.tensors);
  if (options.json) {
    print_json(document);
  } else {
    print_text(attention_text(report));
    if (report.result.wave_is_cut_short) print_text(cut_wave_text(options.wave));
  }
  return report.mismatches() == 0 ? kExitOk : kExitCheckFailed;
}

}  // namespace

void add_attention_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<AttentionOptions>();
  CLI::App& command = *app.add_subcommand("attention", "run masked attention and check it");
  add_machine_options(command, options->machine);
  add_rtl(command, options->machine);
  command.add_option("--mask", options->mask, "pruned cells of every layer and head (bool)")
      ->type_name("FILE.npy");
  command.add_option("--tokens", options->tokens, "without a mask: a dense map of so many tokens")
      ->type_name("N");
  command.add_option("--heads", options->heads, "without a mask: heads")->type_name("N");
  command.add_option("--layers", options->layers, "without a mask: layers; default: 1")
      ->type_name("N");
  command.add_option("--dim", options->dim, "features of Q and K in a head; default: 64")
      ->type_name("N");
  command.add_option("--v-dim", options->v_dim, "features of V in a head; default: --dim")
      ->type_name("N");
  command
      .add_option("--latent-heads", options->latent_heads,
                  "of Q and K in memory; default: no auto-encoder")
      ->type_name("N");
  CLI::Option* const threshold = command.add_option(
      "--threshold", options->threshold, "global: more than N kept cells; else by cycles");
  threshold->type_name("N");
  command.add_flag("--no-reorder", options->no_reorder, "no global columns: all keys are sparse")
      ->excludes(threshold);
  add_functional(command, options->functional);
  command.add_option("--stats", options->stats, "write the statistics")->type_name("FILE.json");
  add_report(command, options->report);
  add_outputs(command, options->outputs);
  add_wave(command, options->wave);
  command.add_flag("--json", options->json, "print the statistics instead of tables");
  add_examples(command,
               {"systole attention -m vitcod --tokens 197 --heads 3",
                "systole attention -m vitcod --mask mask.npy --threshold 50",
                "systole attention -m vitcod --mask mask.npy --latent-heads 2",
                "systole attention -m sanger --mask mask.npy",
                "systole attention -m vitcod --tokens 65 --heads 4 --rtl sparser_line",
                "systole attention -m vitcod --mask mask.npy --set attention.banks=16 --json"});
  set_action(command, action, options, list_files, run);
}

}  // namespace systole::testbench
