#include "testbench/network/network_export.h"

#include <filesystem>

#include "base/error.h"
#include "base/printable.h"
#include "model/checkpoint/checkpoint_names.h"
#include "model/checkpoint/checkpoint_reader.h"
#include "model/checkpoint/gpt2_names.h"
#include "model/checkpoint/network_checkpoint.h"
#include "model/integer/integer_model.h"
#include "model/integer/integer_network.h"
#include "model/model_files.h"
#include "testbench/network/networks.h"

namespace systole::testbench {
namespace {

void export_seeded(const NetworkSize& size, const hw::Machine& machine, const std::string& path) {
  if (size.resnet) {
    throw hw::InputError("--out: " + size.name + " has convolutions, " +
                         "expected a shape of BERT, GPT-2 or DeiT");
  }
  if (size.llama) {
    throw hw::InputError("--out: " + size.name + " is a Llama with seeded weights, " +
                         "expected a shape of BERT, GPT-2 or DeiT");
  }
  if (size.batch != 1 || size.decode) {
    throw hw::InputError("--batch: found " + std::to_string(size.batch) +
                         ", expected 1 in a network file");
  }
  model::SeededOptions options;
  options.datapath = machine.datapath;
  model::write_network(
      model::IntegerLayers{size.name, "seeded",
                           model::make_seeded_layers(size.shape, size.length, kWeightSeed, options),
                           size.length,
                           model::seeded_embedding_scale(size.shape, machine.datapath)},
      path);
}

/// The head of a GPT-2 that makes words: its own, or the table of words where a file has none.
std::vector<double> head_of(const std::string& path, const model::TextCheckpoint& text) {
  if (!text.shape.encoder.causal) return {};
  const model::Safetensors file = model::Safetensors::open(path);
  if (model::is_network_file(file)) {
    return model::read_text_checkpoint(model::NetworkFile(file)).head;
  }
  model::CheckpointReader reader(file);
  return file.has(model::kGpt2Head)
             ? reader.read(model::kGpt2Head, {text.shape.vocabulary, text.shape.encoder.width})
             : text.word;
}

void export_checkpoint(const std::string& name, const std::string& from, const std::string& path) {
  if (model::is_seq2seq_checkpoint(model::Safetensors::open(from))) {
    throw hw::InputError("--out: " + hw::printable(name) +
                         " is an encoder-decoder of real numbers, expected one of integers: "
                         "systole quantise makes it");
  }
  if (!model::is_text_checkpoint(model::Safetensors::open(from))) {
    model::write_network(model::load_vit_checkpoint(from), name, path);
    return;
  }
  const model::TextCheckpoint text = model::load_text_checkpoint(from);
  model::write_network(text, head_of(from, text), name, path);
}

}  // namespace

void export_network(const std::string& model, const SizeOptions& size, const hw::Machine& machine,
                    const std::string& path) {
  if (is_shape_name(model)) return export_seeded(network_size(model, size), machine, path);
  require_no_size(model, size);
  const std::string from = model::names_gpt_checkpoint(model) ? model::find_gpt_checkpoint(model)
                                                              : model::find_model(model);
  switch (model::model_kind(from)) {
    case model::ModelKind::kIntegerVit:
      return model::write_network(model::load_integer_vit(from), path);
    case model::ModelKind::kIntegerText:
      return model::write_network(model::load_integer_text(from), path);
    case model::ModelKind::kIntegerSeq2Seq:
      return model::write_network(model::load_integer_seq2seq(from), path);
    case model::ModelKind::kIntegerLlama:
      return model::write_network(model::load_integer_llama(from), model::network_tokeniser(from),
                                  path);
    case model::ModelKind::kIntegerLayers:
      return model::write_network(model::load_integer_layers(from), path);
    case model::ModelKind::kIntegerOperators:
      throw hw::InputError("--out: " + hw::printable(model) +
                           " is a network file of any operators, expected another model");
    case model::ModelKind::kCheckpoint:
      break;
  }
  export_checkpoint(std::filesystem::path(model).stem().string(), from, path);
}

}  // namespace systole::testbench
