#include "model/mask/sparsify.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/printable.h"
#include "hw/attention/sparse_head.h"
#include "model/format/npy.h"
#include "model/mask/attention_mask.h"
#include "model/mask/global_columns.h"
#include "model/model_files.h"
#include "testbench/attention/head_split.h"
#include "testbench/attention/report_sparsity.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/report/plot.h"
#include "testbench/sparsify/attention_subject.h"
#include "testbench/sparsify/sparsity_curve.h"
#include "testbench/sparsify/structure_curve.h"

namespace systole::testbench {
namespace {

/// Features of Q and K in a head, as most vision transformers have.
constexpr std::int64_t kDefaultDim = 64;
constexpr std::int64_t kMaxDim = 65536;
/// As many entries as a row can have.
constexpr std::int64_t kMaxMargin = hw::kMaxSparseTokens;

struct SparsifyOptions {
  std::string source;  ///< maps, a mask, or with `input` a model
  std::string input, out, global, machine = "vitcod";
  std::string maps, csv, plots;
  std::vector<std::string> settings;
  std::optional<double> theta, sparsity;
  std::vector<double> curve;
  // Signed: the parser turns -1 into the largest unsigned number.
  std::optional<std::int64_t> threshold, margin, dim;
  std::size_t limit = 0;
  std::uint64_t seed = 1;
  std::string structure;
  bool per_head = false;
  bool cls = false;
  bool json = false;
};

void check_share(const char* option, double share) {
  // Not the parser's range checks, which let "nan" pass.
  if (share >= 0.0 && share < 1.0) return;
  throw hw::InputError(fmt::format("{}: found {}, expected 0 to less than 1", option, share));
}

/// What is of a model and its inputs alone.
void check_model_options(const SparsifyOptions& options) {
  if (!options.input.empty()) {
    if (options.dim) {
      throw hw::InputError("--dim: a model has its own, expected none with --input");
    }
    if (!options.curve.empty() && (options.theta || options.sparsity || !options.out.empty())) {
      throw hw::InputError("--curve: many masks, expected no --theta, --sparsity or --out with it");
    }
    return;
  }
  const std::pair<const char*, bool> of_models[] = {
      {"--limit", options.limit != 0},     {"--maps", !options.maps.empty()},
      {"--curve", !options.curve.empty()}, {"--structure", !options.structure.empty()},
      {"--csv", !options.csv.empty()},     {"--plots", !options.plots.empty()}};
  for (const auto& [option, given] : of_models) {
    if (given)
      throw hw::InputError(fmt::format("{}: of a model, expected --input with it", option));
  }
}

void check_options(const SparsifyOptions& options) {
  if (options.theta && !(*options.theta > 0.0 && *options.theta <= model::kMaxTheta)) {
    throw hw::InputError(fmt::format("--theta: found {}, expected above 0 and at most {}",
                                     *options.theta, model::kMaxTheta));
  }
  if (options.sparsity) check_share("--sparsity", *options.sparsity);
  for (const double sparsity : options.curve) check_share("--curve", sparsity);
  check_model_options(options);
  if (!options.structure.empty()) {
    if (options.curve.empty()) {
      throw hw::InputError("--structure: shares of heads, neurons or tokens, expected --curve");
    }
    if (options.per_head || options.cls || options.margin || !options.maps.empty() ||
        !options.plots.empty()) {
      throw hw::InputError(
          "--per-head, --cls, --margin, --maps, --plots: of attention, expected no --structure");
    }
  }
  if (options.curve.empty() && (!options.csv.empty() || !options.plots.empty())) {
    throw hw::InputError("--csv and --plots: of a curve, expected --curve with them");
  }
  if (options.per_head && !options.sparsity && options.curve.empty()) {
    throw hw::InputError("--per-head: finds thetas, expected --sparsity or --curve with it");
  }
  if (options.threshold.value_or(0) < 0) {
    throw hw::InputError(
        fmt::format("--threshold: found {}, expected 0 or more", *options.threshold));
  }
  if (options.margin && (*options.margin < 0 || *options.margin > kMaxMargin)) {
    throw hw::InputError(
        fmt::format("--margin: found {}, expected 0 to {}", *options.margin, kMaxMargin));
  }
  if (options.dim && (*options.dim < 1 || *options.dim > kMaxDim)) {
    throw hw::InputError(fmt::format("--dim: found {}, expected 1 to {}", *options.dim, kMaxDim));
  }
}

hw::Machine machine_of(const SparsifyOptions& options) {
  return load_attention_machine({options.machine, options.settings, {}, {}});
}

std::size_t margin_of(const SparsifyOptions& options) {
  return static_cast<std::size_t>(
      options.margin.value_or(static_cast<std::int64_t>(model::kPublishedMargin)));
}

/// The mask that the options ask for of the maps; sets what the report says of the rule.
model::AttentionMask pruned_mask(const SparsifyOptions& options, const model::RankedMaps& maps,
                                 const PruningRule& rule, SparsityReport& report) {
  report.margin = maps.margin();
  report.cls = rule.cls;
  if (options.theta) {
    report.thetas = {*options.theta};
    return maps.mask(*options.theta, rule.cls);
  }
  PrunedMask pruned = prune(maps, *options.sparsity, rule);
  report.thetas = std::move(pruned.thetas);
  return std::move(pruned.mask);
}

/// The mask in the file, or the one that the options ask for of the maps in it.
model::AttentionMask mask_of(const SparsifyOptions& options, const model::Npy& array,
                             SparsityReport& report) {
  const bool has_rule = options.theta || options.sparsity;
  if (array.dtype() == model::FileDtype::kBool) {
    if (has_rule || options.cls || options.margin) {
      throw hw::InputError(
          hw::printable(options.source) +
          ": is a mask, expected attention maps for --theta, --sparsity, --margin and --cls");
    }
    return model::load_mask(array);
  }
  const model::RankedMaps maps(array, margin_of(options));
  if (!has_rule) {
    throw hw::InputError(hw::printable(options.source) +
                         ": attention maps, expected --theta or --sparsity with them");
  }
  return pruned_mask(options, maps, {options.cls, options.per_head}, report);
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
  if (options.input.empty()) {
    files.reads("source", options.source);
  } else {
    files.reads_model("source", options.source, model::find_checkpoint);
    files.reads_pictures("--input", options.input);
  }
  files.writes("--out", options.out);
  files.writes("--maps", options.maps);
  files.writes("--csv", options.csv);
  files.writes_plots("--plots", options.plots);
}

/// Splits the heads of `mask`, writes it where it is asked for and prints the report, with the
/// quality of a model under it.
void finish(const SparsifyOptions& options, const model::AttentionMask& mask,
            SparsityReport& report, const std::optional<MaskQuality>& quality) {
  report.shape = mask.shape();
  require_full_rows(mask, options.source);
  split_heads(options, mask, report);
  if (!options.out.empty()) model::save_mask(mask, options.out);
  if (options.json) {
    nlohmann::ordered_json document = sparsity_json(report);
    if (quality) document["quality"] = quality_json(*quality);
    print_json(document);
    return;
  }
  std::string text = sparsity_text(report, options.out);
  if (quality) {
    const std::string more = quality_text(*quality);
    if (!more.empty()) text += "\n" + more;
  }
  print_text(text);
}

void write_maps(const SparsifyOptions& options, const model::AttentionShape& shape,
                const std::vector<double>& maps) {
  if (options.maps.empty()) return;
  model::write_npy(options.maps, {shape.layers, shape.heads, shape.queries, shape.keys},
                   std::vector<float>(maps.begin(), maps.end()));
}

int run_curve(const SparsifyOptions& options, const AttentionSubject& subject,
              const model::RankedMaps& maps, const PruningRule& rule, const hw::Machine& machine) {
  std::optional<hw::AtomicFile> csv;
  if (!options.csv.empty()) csv.emplace(options.csv);
  const PlotWriter plots(options.plots);
  const SparsityCurve curve =
      sparsity_curve(subject, maps, rule, options.curve, options.seed, machine);
  if (csv) {
    csv->stream() << curve_csv(curve);
    csv->commit();
  }
  plots.write({curve_plot(curve)});
  if (options.json) {
    print_json(curve_json(curve));
  } else {
    print_text(curve_text(curve));
  }
  return kExitOk;
}

/// Gathers the attention of a model, prunes it and measures what that costs.
int run_model(const SparsifyOptions& options, const hw::Machine& machine) {
  const AttentionSubject subject(options.source, options.input, options.limit);
  const PruningRule rule{options.cls || subject.has_class_token(), options.per_head};
  SparsityReport report;
  report.file = options.source;
  report.machine = {machine.name, machine.attention, subject.encoder().head_width()};
  const bool has_rule = options.theta || options.sparsity || !options.curve.empty();
  const std::optional<model::AttentionMask> own = subject.own_mask();
  if (!has_rule && !own && options.maps.empty()) {
    throw hw::InputError(hw::printable(options.source) +
                         ": has no masks, expected --theta, --sparsity, --curve or --maps");
  }
  if (has_rule || !options.maps.empty()) {
    const std::vector<double> averages = subject.averages();
    write_maps(options, subject.shape(), averages);
    if (has_rule) {
      const model::RankedMaps maps(subject.shape(), averages, options.source, margin_of(options));
      if (!options.curve.empty()) return run_curve(options, subject, maps, rule, machine);
      const model::AttentionMask mask = pruned_mask(options, maps, rule, report);
      finish(options, mask, report, mask_quality(subject, &mask, rule, options.seed, machine));
      return kExitOk;
    }
  }
  if (own) {
    finish(options, *own, report, mask_quality(subject, nullptr, rule, 0, machine));
  } else {
    print_text(fmt::format("{}: average attention of {}, {}\n", hw::printable(options.maps),
                           hw::printable(options.source), subject.shape().text()));
  }
  return kExitOk;
}

/// A network without shares of its heads, neurons or tokens.
int run_structures(const SparsifyOptions& options) {
  const hw::Machine machine = load_machine(options.machine, options.settings);
  std::optional<hw::AtomicFile> csv;
  if (!options.csv.empty()) csv.emplace(options.csv);
  const AttentionSubject subject(options.source, options.input, options.limit);
  Structure structure = Structure::kHeads;
  for (const Structure one : kStructures) {
    if (options.structure == structure_name(one)) structure = one;
  }
  const StructureCurve curve = structure_curve(subject, structure, options.curve, machine);
  if (csv) {
    csv->stream() << curve_csv(curve);
    csv->commit();
  }
  if (options.json) {
    print_json(curve_json(curve));
  } else {
    print_text(curve_text(curve));
  }
  return kExitOk;
}

int run(const SparsifyOptions& options) {
  check_options(options);
  if (!options.structure.empty()) return run_structures(options);
  const hw::Machine machine = machine_of(options);
  if (!options.input.empty()) return run_model(options, machine);
  SparsityReport report;
  report.file = options.source;
  report.cls = options.cls;
  report.machine = {machine.name, machine.attention,
                    static_cast<std::size_t>(options.dim.value_or(kDefaultDim))};
  finish(options, mask_of(options, model::Npy::open(options.source), report), report, {});
  return kExitOk;
}

}  // namespace

void add_sparsify_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<SparsifyOptions>();
  CLI::App& command = *app.add_subcommand("sparsify", "prune attention, choose global columns");
  command.add_option("source", options->source, "attention maps, a mask, or with -i a model")
      ->type_name("FILE.npy|NAME|FILE")
      ->required();
  command.add_option("-i,--input", options->input, "pictures or texts that the model attends to")
      ->type_name("FILE|DIR");
  require_positive(
      *command.add_option("-n,--limit", options->limit, "inputs of each split")->type_name("N"));
  command.add_option("--maps", options->maps, "write the model's average attention")
      ->type_name("MAPS.npy");
  CLI::Option* const theta =
      command.add_option("--theta", options->theta, "attention to keep in every row, 2: all");
  theta->type_name("0..2");
  command.add_option("--sparsity", options->sparsity, "find the theta that prunes this share")
      ->type_name("0..1")
      ->excludes(theta);
  command.add_option("--curve", options->curve, "a model's accuracy, cycles, energy at these")
      ->type_name("0..1,...")
      ->delimiter(',');
  command.add_option("--structure", options->structure, "prune these, not cells of attention")
      ->type_name("heads|neurons|tokens")
      ->check(CLI::IsMember({"heads", "neurons", "tokens"}).description(""));
  command.add_option("--csv", options->csv, "write the curve")->type_name("FILE.csv");
  command.add_option("--plots", options->plots, "draw the curve with gnuplot")->type_name("DIR");
  command.add_option("--seed", options->seed, "of the random masks beside it; default: 1")
      ->type_name("N");
  command.add_flag("--per-head", options->per_head, "a theta per head: all equally sparse");
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
                         "systole sparsify mask.npy --threshold 50 --json",
                         "systole sparsify vit65 -i traces/data/digits.safetensors \\",
                         "    --curve 0.5,0.8,0.9 --csv curve.csv --plots pictures",
                         "systole sparsify vit65 -i traces/data/digits.safetensors \\",
                         "    --structure neurons --curve 0.1,0.2,0.3,0.5 -m transformer"});
  set_action(command, action, options, list_files, run);
}

}  // namespace systole::testbench
