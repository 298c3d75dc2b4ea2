#include "model/mask/sparsify.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "hw/attention/sparse_head.h"
#include "model/format/npy.h"
#include "model/mask/attention_mask.h"
#include "model/mask/global_columns.h"
#include "testbench/attention/head_split.h"
#include "testbench/attention/report_sparsity.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/outputs.h"

namespace systole::testbench {
namespace {

/// Features of Q and K in a head, as most vision transformers have.
constexpr std::int64_t kDefaultDim = 64;
constexpr std::int64_t kMaxDim = 65536;
/// As many entries as a row can have.
constexpr std::int64_t kMaxMargin = hw::kMaxSparseTokens;

struct SparsifyOptions {
  std::string input, out, global, machine = "vitcod";
  std::vector<std::string> settings;
  std::optional<double> theta, sparsity;
  // Signed: the parser turns -1 into the largest unsigned number.
  std::optional<std::int64_t> threshold, margin;
  std::int64_t dim = kDefaultDim;
  bool cls = false;
  bool json = false;
};

void check_options(const SparsifyOptions& options) {
  // Not the parser's range checks, which let "nan" pass.
  if (options.theta && !(*options.theta > 0.0 && *options.theta <= model::kMaxTheta)) {
    throw hw::InputError(fmt::format("--theta: found {}, expected above 0 and at most {}",
                                     *options.theta, model::kMaxTheta));
  }
  if (options.sparsity && !(*options.sparsity >= 0.0 && *options.sparsity < 1.0)) {
    throw hw::InputError(
        fmt::format("--sparsity: found {}, expected 0 to less than 1", *options.sparsity));
  }
  if (options.threshold.value_or(0) < 0) {
    throw hw::InputError(
        fmt::format("--threshold: found {}, expected 0 or more", *options.threshold));
  }
  if (options.margin && (*options.margin < 0 || *options.margin > kMaxMargin)) {
    throw hw::InputError(
        fmt::format("--margin: found {}, expected 0 to {}", *options.margin, kMaxMargin));
  }
  if (options.dim < 1 || options.dim > kMaxDim) {
    throw hw::InputError(fmt::format("--dim: found {}, expected 1 to {}", options.dim, kMaxDim));
  }
}

SparsityMachine machine_of(const SparsifyOptions& options) {
  const hw::Machine machine = load_attention_machine({options.machine, options.settings, {}, {}});
  return {machine.name, machine.attention, static_cast<std::size_t>(options.dim)};
}

/// The mask in the file, or the one that the options ask for of the maps in it; then sets
/// `report.theta` and `report.margin`.
model::AttentionMask mask_of(const SparsifyOptions& options, const model::Npy& array,
                             SparsityReport& report) {
  const bool has_rule = options.theta || options.sparsity;
  if (array.dtype() == model::FileDtype::kBool) {
    if (has_rule || options.cls || options.margin) {
      throw hw::InputError(
          hw::printable(options.input) +
          ": is a mask, expected attention maps for --theta, --sparsity, --margin and --cls");
    }
    return model::load_mask(array);
  }
  const auto margin = static_cast<std::size_t>(
      options.margin.value_or(static_cast<std::int64_t>(model::kPublishedMargin)));
  const model::RankedMaps maps(array, margin);
  if (!has_rule) {
    throw hw::InputError(hw::printable(options.input) +
                         ": attention maps, expected --theta or --sparsity with them");
  }
  report.margin = margin;
  report.theta =
      options.theta ? *options.theta : model::find_theta(maps, *options.sparsity, options.cls);
  return maps.mask(*report.theta, options.cls);
}

void split_heads(const SparsifyOptions& options, const model::AttentionMask& mask,
                 SparsityReport& report) {
  if (options.global.empty()) {
    report.threshold = options.threshold ? static_cast<std::size_t>(*options.threshold)
                                         : model::default_threshold(mask.shape().queries);
  }
  const HeadSplit split{true, report.threshold};
  for (auto& heads : split_mask(mask, split, report.machine.dim, report.machine.array)) {
    std::move(heads.begin(), heads.end(), std::back_inserter(report.heads));
  }
}

void list_files(const SparsifyOptions& options, CommandFiles& files) {
  files.reads_machine("--machine", options.machine);
  files.reads("input", options.input);
  files.writes("--out", options.out);
}

int run(const SparsifyOptions& options) {
  check_options(options);
  SparsityReport report;
  report.file = options.input;
  report.cls = options.cls;
  report.machine = machine_of(options);
  const model::AttentionMask mask = mask_of(options, model::Npy::open(options.input), report);
  report.shape = mask.shape();
  require_full_rows(mask, options.input);
  split_heads(options, mask, report);
  if (!options.out.empty()) model::save_mask(mask, options.out);
  if (options.json) {
    print_json(sparsity_json(report));
  } else {
    print_text(sparsity_text(report, options.out));
  }
  return kExitOk;
}

}  // namespace

void add_sparsify_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<SparsifyOptions>();
  CLI::App& command = *app.add_subcommand("sparsify", "prune attention, choose global columns");
  command.add_option("input", options->input, "average attention maps (floats) or a mask (bool)")
      ->type_name("FILE.npy")
      ->required();
  CLI::Option* const theta =
      command.add_option("--theta", options->theta, "attention to keep in every row, 2: all");
  theta->type_name("0..2");
  command.add_option("--sparsity", options->sparsity, "find the theta that prunes this share")
      ->type_name("0..1")
      ->excludes(theta);
  command.add_option("--margin", options->margin, "entries of a row beyond theta; default: 1")
      ->type_name("N");
  command.add_flag("--cls", options->cls, "keep row and column 0 of every head");
  CLI::Option* const threshold = command.add_option("--threshold", options->threshold,
                                                    "global: more than N kept cells; 50 of 197");
  threshold->type_name("N");
  command.add_option("--global", options->global, "choose global columns by SDDMM cycles")
      ->type_name("auto")
      ->check(CLI::IsMember({"auto"}).description(""))
      ->excludes(threshold);
  command.add_option("-m,--machine", options->machine, "whose attention engines; default: vitcod")
      ->type_name("NAME|FILE");
  add_settings(command, options->settings);
  command.add_option("--dim", options->dim, "features of Q and K in a head; default: 64")
      ->type_name("N");
  command.add_option("-o,--out", options->out, "write the mask, true: pruned")
      ->type_name("MASK.npy");
  command.add_flag("--json", options->json, "print the figures as JSON");
  add_examples(command, {"systole sparsify attention.npy --sparsity 0.9 --cls -o mask.npy",
                         "systole sparsify attention.npy --theta 0.5 --global auto",
                         "systole sparsify mask.npy --threshold 50 --json"});
  set_action(command, action, options, list_files, run);
}

}  // namespace systole::testbench
