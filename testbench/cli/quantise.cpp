#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "model/checkpoint/checkpoint_names.h"
#include "model/checkpoint/llama_checkpoint.h"
#include "model/checkpoint/seq2seq_checkpoint.h"
#include "model/checkpoint/vit_checkpoint.h"
#include "model/data/dataset.h"
#include "model/float/float_operators.h"
#include "model/format/safetensors.h"
#include "model/integer/integer_model.h"
#include "model/integer/integer_network.h"
#include "model/model_files.h"
#include "model/quantise/llama_quantiser.h"
#include "model/quantise/operator_quantiser.h"
#include "model/quantise/quantiser.h"
#include "model/text/token_ids.h"
#include "model/text/tokeniser.h"
#include "testbench/cli/common/command.h"
#include "testbench/cli/common/common_options.h"
#include "testbench/cli/common/outputs.h"
#include "testbench/common/progress.h"
#include "testbench/common/text.h"
#include "testbench/network/network_size.h"
#include "testbench/network/networks.h"

namespace systole::testbench {
namespace {

/// Pictures of a data set that has several splits.
constexpr const char* kCalibrationSplit = "calib";
/// Texts of a Llama, unless others are given: so many tokens of the text that ships, each window
/// from its beginning.
constexpr const char* kCalibrationText = "data/calibration.txt";
constexpr std::size_t kCalibrationTokens = 512, kCalibrationWindow = 128;
constexpr const char* kEnding = ".int8.safetensors";

struct QuantiseOptions {
  std::string checkpoint, calibration, out, machine, name;
  std::vector<std::string> settings;
  bool per_tensor = false, fold_encoder = false;
  std::optional<double> outlier_alpha;
  double headroom = model::QuantiserOptions{}.headroom;
  bool report = false, row_scales = false;
  std::optional<unsigned> weight_bits;
  unsigned activation_bits = model::kWeightBits;
  std::string weight_format;
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

void quantise_operators(const QuantiseOptions& options, const model::NetworkFile& file,
                        const model::QuantiserOptions& quantiser) {
  const model::FloatOperators network(file);
  const model::Dataset data =
      model::load_images(options.calibration.empty() ? default_data() : options.calibration,
                         network.format(), kCalibrationSplit);
  const std::string name = options.name.empty() ? file.document().name : options.name;
  model::QuantisedOperators made = model::quantise(network, data, name, quantiser);
  made.writer.write(options.out, made.output);
  print_text(fmt::format("{}: {}, quantised from {}, {} pictures\n", hw::printable(options.out),
                         hw::printable(name), file.document().name, data.count));
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

void quantise_seq2seq(const QuantiseOptions& options, const std::string& path,
                      const model::QuantiserOptions& quantiser) {
  if (options.calibration.empty()) {
    throw hw::InputError("--calibration: " + hw::printable(path) +
                         " is an encoder-decoder, expected a safetensors file with input_ids and "
                         "decoder_input_ids");
  }
  const model::Seq2SeqCheckpoint checkpoint = model::load_seq2seq_checkpoint(path);
  const model::TextPairs texts =
      model::load_text_pairs(options.calibration, checkpoint.encoder.shape,
                             checkpoint.decoder.shape, checkpoint.tokens.begin);
  model::IntegerSeq2Seq network = model::quantise(checkpoint, texts, quantiser);
  finish(options, network, model::write_network);
}

/// Texts of a Llama: input_ids of a file, or a text in windows, by default that which ships.
std::vector<std::vector<std::int32_t>> calibration_texts(const QuantiseOptions& options,
                                                         const std::string& path,
                                                         const model::LlamaShape& shape) {
  std::vector<std::vector<std::int32_t>> texts;
  const bool is_file = std::filesystem::path(options.calibration).extension() == ".safetensors";
  if (is_file && model::Safetensors::open(options.calibration).has("input_ids")) {
    const model::TokenIds ids =
        model::load_token_ids(options.calibration, model::llama_text_shape(shape));
    for (std::size_t i = 0; i < ids.count; ++i) texts.push_back(ids.text(i).trimmed().ids);
    return texts;
  }
  const std::string metadata = model::network_tokeniser(path);
  if (metadata.empty()) {
    throw hw::InputError("--calibration: " + hw::printable(path) +
                         " has no tokeniser, expected a safetensors file with input_ids");
  }
  const std::string file =
      options.calibration.empty() ? data_file(kCalibrationText) : options.calibration;
  const std::vector<std::int32_t> ids =
      model::read_tokeniser(path, metadata, shape.vocabulary)->encode(model::load_text(file));
  const std::size_t count = std::min(ids.size(), kCalibrationTokens);
  for (std::size_t first = 0; first < count; first += kCalibrationWindow) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(first);
    texts.emplace_back(
        begin, begin + static_cast<std::ptrdiff_t>(std::min(kCalibrationWindow, count - first)));
  }
  return texts;
}

/// Power of errors in dB below that of the outputs, the layers that lose most first.
std::string loss_text(std::vector<model::LayerLoss> losses) {
  constexpr std::size_t kShown = 20;
  std::stable_sort(losses.begin(), losses.end(),
                   [](const auto& a, const auto& b) { return a.total() > b.total(); });
  const auto decibels = [](double ratio) {
    return ratio > 0 ? fmt::format("{:.1f}", 10 * std::log10(ratio)) : "-";
  };
  Table table({{"layer"},
               {"loss dB", Table::Align::kRight},
               {"by weights", Table::Align::kRight},
               {"by inputs", Table::Align::kRight}});
  for (std::size_t i = 0; i < std::min(kShown, losses.size()); ++i) {
    table.add({losses[i].name, decibels(losses[i].total()), decibels(losses[i].weights),
               decibels(losses[i].inputs)});
  }
  return fmt::format("the {} layers of {} that lose most by rounding\n\n{}",
                     std::min(kShown, losses.size()), losses.size(), table.text());
}

void quantise_llama(const QuantiseOptions& options, const model::NetworkFile& file,
                    model::QuantiserOptions quantiser) {
  // Residual streams of Llamas have channels a thousand times as large as the others.
  if (options.machine.empty() && options.settings.empty()) quantiser.datapath.residual_bits = 24;
  model::LlamaCheckpoint checkpoint = model::read_llama_checkpoint(file);
  const auto texts = calibration_texts(options, file.path(), checkpoint.shape);
  model::IntegerLlama llama;
  std::vector<model::LayerLoss> losses;
  {
    Progress progress(texts.size() * checkpoint.blocks.size());
    llama = model::quantise(
        std::move(checkpoint), texts, quantiser,
        [&](std::size_t layers) { progress.update(layers); }, options.report ? &losses : nullptr);
  }
  if (!options.name.empty()) llama.name = options.name;
  model::write_network(llama, model::network_tokeniser(file.path()), options.out);
  print_text(fmt::format("{}: {}, {}\n", hw::printable(options.out), hw::printable(llama.name),
                         hw::printable(llama.source)));
  if (options.report) print_text("\n" + loss_text(std::move(losses)));
}

void list_files(const QuantiseOptions& options, CommandFiles& files) {
  files.reads_machine("--machine", options.machine);
  files.reads_model("checkpoint", options.checkpoint, model::find_checkpoint);
  files.reads_pictures("--calibration",
                       options.calibration.empty() ? default_data() : options.calibration);
  files.writes("--out", options.out);
}

void set_weights(const QuantiseOptions& options, bool llama, model::QuantiserOptions& quantiser) {
  if (!options.weight_format.empty()) {
    quantiser.weight_format =
        wanted_mx_format(options.weight_format, options.weight_bits.has_value());
    if (llama) return;
    throw hw::InputError("--weight-format: of a Llama, found " + hw::printable(options.checkpoint));
  }
  if (!wants_four_bits(options.weight_bits.value_or(model::kWeightBits))) return;
  if (llama) {
    quantiser.weight_format = hw::WeightFormat::kGroups;
  } else {
    quantiser.weight_bits = model::kInt4WeightBits;
  }
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
  quantiser.row_scales = options.row_scales;
  const std::string path = model::find_checkpoint(options.checkpoint);
  const model::Safetensors file = model::Safetensors::open(path);
  const bool llama =
      model::is_network_file(file) && model::is_llama(model::read_network_document(file));
  if (options.report && !llama) {
    throw hw::InputError("--report: of a Llama, found " + hw::printable(options.checkpoint));
  }
  set_weights(options, llama, quantiser);
  const bool convolutional =
      model::is_network_file(file) && model::is_convolutional(model::read_network_document(file));
  if (wants_four_bits(options.activation_bits, "--activation-bits")) {
    if (!convolutional || quantiser.weight_bits == model::kWeightBits) {
      throw hw::InputError("--activation-bits: 4 of convolutions with --weight-bits 4, found " +
                           hw::printable(options.checkpoint));
    }
    quantiser.activation_bits = options.activation_bits;
  }
  if (options.row_scales && (llama || !model::is_text_checkpoint(file))) {
    throw hw::InputError("--row-scales: of BERT and GPT-2 (Llamas always have them), found " +
                         hw::printable(options.checkpoint));
  }
  if (convolutional) {
    quantise_operators(options, model::NetworkFile(file), quantiser);
  } else if (llama) {
    quantise_llama(options, model::NetworkFile(file), quantiser);
  } else if (model::is_seq2seq_checkpoint(file)) {
    quantise_seq2seq(options, path, quantiser);
  } else if (model::is_text_checkpoint(file)) {
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
  command
      .add_option("checkpoint", options->checkpoint,
                  "real-valued: ViT, BERT, GPT-2, both, Llama, CNN")
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
  command
      .add_option("--weight-bits", options->weight_bits,
                  "8, or 4: int4, of a Llama in groups of 32")
      ->type_name("8|4");
  command
      .add_option("--weight-format", options->weight_format,
                  "of a Llama's blocks, in place of bits")
      ->type_name("mxint8|mxfp4");
  command
      .add_option("--activation-bits", options->activation_bits,
                  "of a CNN: 8, or 4 between int4 weights")
      ->type_name("8|4");
  command.add_flag("--row-scales", options->row_scales,
                   "of a BERT or GPT-2: a scale of each token");
  command.add_option("--name", options->name, "name in reports; default: the checkpoint's")
      ->type_name("NAME");
  command.add_flag("--report", options->report, "of a Llama, which layers lose most by rounding");
  add_examples(command, {"systole quantise vit17 -o my.int8.safetensors",
                         "systole quantise my.safetensors -c pictures/ -o my.int8.safetensors",
                         "systole quantise bert.safetensors -c ids.safetensors \\",
                         "    --row-scales -o bert.int8.safetensors",
                         "systole quantise vit17 --set datapath.softmax=ibert-floor \\",
                         "    -o ibert.int8.safetensors"});
  set_action(command, action, options, list_files, run);
}

}  // namespace systole::testbench
