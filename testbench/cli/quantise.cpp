#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "model/checkpoint/checkpoint_names.h"
#include "model/checkpoint/vit_checkpoint.h"
#include "model/data/dataset.h"
#include "model/format/safetensors.h"
#include "model/integer/integer_model.h"
#include "model/model_files.h"
#include "model/quantise/quantiser.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/network/networks.h"

namespace systole::testbench {
namespace {

/// Pictures of a data set that has several splits.
constexpr const char* kCalibrationSplit = "calib";
constexpr const char* kEnding = ".int8.safetensors";

struct QuantiseOptions {
  std::string checkpoint, calibration, out, machine, name;
  std::vector<std::string> settings;
  bool per_tensor = false, fold_encoder = false;
  std::optional<double> outlier_alpha;
  double headroom = model::QuantiserOptions{}.headroom;
};

/// Names the model as asked for, and says what has been written.
template <typename Model>
void finish(const QuantiseOptions& options, Model& model,
            void (*save)(const Model&, const std::string&)) {
  if (!options.name.empty()) model.name = options.name;
  save(model, options.out);
  print_text(fmt::format("{}: {}, {}\n", hw::printable(options.out), hw::printable(model.name),
                         hw::printable(model.source)));
}

void quantise_vit(const QuantiseOptions& options, const std::string& path,
                  const model::QuantiserOptions& quantiser) {
  const model::VitCheckpoint checkpoint = model::load_vit_checkpoint(path);
  const model::Dataset data =
      model::load_images(options.calibration.empty() ? default_data() : options.calibration,
                         checkpoint.shape.pictures(), kCalibrationSplit);
  model::IntegerVit vit = model::quantise(checkpoint, data, quantiser);
  finish(options, vit, model::save_integer_vit);
}

void quantise_text(const QuantiseOptions& options, const std::string& path,
                   const model::QuantiserOptions& quantiser) {
  if (options.calibration.empty()) {
    throw hw::InputError("--calibration: " + hw::printable(path) +
                         " is a text network, expected a safetensors file with input_ids");
  }
  const model::TextCheckpoint checkpoint = model::load_text_checkpoint(path);
  const model::TokenIds ids = model::load_token_ids(options.calibration, checkpoint.shape);
  model::IntegerText text = model::quantise(checkpoint, ids, quantiser);
  finish(options, text, model::save_integer_text);
}

void list_files(const QuantiseOptions& options, CommandFiles& files) {
  files.reads_machine("--machine", options.machine);
  files.reads_model("checkpoint", options.checkpoint, model::find_checkpoint);
  files.reads_pictures("--calibration",
                       options.calibration.empty() ? default_data() : options.calibration);
  files.writes("--out", options.out);
}

int run(const QuantiseOptions& options) {
  const std::string ending = kEnding;
  if (options.out.size() <= ending.size() ||
      options.out.compare(options.out.size() - ending.size(), ending.size(), ending) != 0) {
    throw hw::InputError(hw::printable(options.out) + ": expected a file name that ends in " +
                         ending);
  }
  model::QuantiserOptions quantiser;
  quantiser.datapath = load_machine(options.machine, options.settings).datapath;
  quantiser.per_channel = !options.per_tensor;
  quantiser.outlier_alpha = options.outlier_alpha;
  quantiser.headroom = options.headroom;
  quantiser.fold_encoders = options.fold_encoder;
  const std::string path = model::find_checkpoint(options.checkpoint);
  if (model::is_text_checkpoint(model::Safetensors::open(path))) {
    quantise_text(options, path, quantiser);
  } else {
    quantise_vit(options, path, quantiser);
  }
  return kExitOk;
}

}  // namespace

void add_quantise_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<QuantiseOptions>();
  CLI::App& command = *app.add_subcommand("quantise", "make an integer model of a checkpoint");
  command.add_option("checkpoint", options->checkpoint, "real-valued: ViT, BERT or GPT-2")
      ->type_name("NAME|FILE")
      ->required();
  command.add_option("-o,--out", options->out, "the integer model")
      ->type_name("OUT.int8.safetensors")
      ->required();
  command
      .add_option("-c,--calibration", options->calibration,
                  "pictures, by default the digits, or texts")
      ->type_name("FILE|DIR");
  command.add_option("-m,--machine", options->machine, "whose datapath; default: all defaults")
      ->type_name("NAME|FILE");
  add_settings(command, options->settings);
  command.add_flag("--per-tensor", options->per_tensor, "one weight scale per matrix");
  command
      .add_option("--outlier-alpha", options->outlier_alpha, "fold LayerNorm outliers into weights")
      ->type_name("0..1");
  command.add_flag("--fold-encoder", options->fold_encoder,
                   "fold the encoder into Q, K projections");
  command.add_option("--headroom", options->headroom, "room of the residual stream (1.25)")
      ->type_name("1..1024");
  command.add_option("--name", options->name, "name in reports; default: the checkpoint's")
      ->type_name("NAME");
  add_examples(command, {"systole quantise vit17 -o my.int8.safetensors",
                         "systole quantise my.safetensors -c pictures/ -o my.int8.safetensors",
                         "systole quantise bert.safetensors -c ids.safetensors \\",
                         "    -o bert.int8.safetensors",
                         "systole quantise vit17 --set datapath.softmax=ibert-floor \\",
                         "    -o ibert.int8.safetensors"});
  set_action(command, action, options, list_files, run);
}

}  // namespace systole::testbench
