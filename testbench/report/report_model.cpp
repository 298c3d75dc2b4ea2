#include "testbench/report/report_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"
#include "hw/description/machine_keys.h"
#include "hw/description/machine_text.h"
#include "hw/machine/machine.h"
#include "model/checkpoint/checkpoint_names.h"
#include "model/checkpoint/seq2seq_checkpoint.h"
#include "model/checkpoint/text_checkpoint.h"
#include "model/checkpoint/vit_checkpoint.h"
#include "model/format/safetensors.h"
#include "testbench/common/text.h"
#include "testbench/report/measurement.h"

namespace systole::testbench {
namespace {

using nlohmann::ordered_json;

/// The keys of the machine's datapath that a model was quantised for, in the words of machine
/// files.
std::vector<std::pair<std::string, std::string>> datapath_of(const model::IntegerEncoder& encoder) {
  hw::Machine machine;
  machine.datapath = encoder.datapath;
  std::vector<std::pair<std::string, std::string>> keys;
  for (const hw::MachineKey& key : hw::machine_keys()) {
    if (hw::section_of(key.path) != "datapath") continue;
    keys.emplace_back(hw::key_of(key.path), hw::value_text(key, machine));
  }
  return keys;
}

std::string datapath_text(const model::IntegerEncoder& encoder) {
  std::string text;
  for (const auto& [key, value] : datapath_of(encoder)) {
    text += (text.empty() ? "" : ", ") + key + "=" + value;
  }
  return text;
}

/// The text of a word is a JSON string, that of a number a JSON number.
ordered_json datapath_json(const model::IntegerEncoder& encoder) {
  ordered_json object = ordered_json::object();
  for (const auto& [key, value] : datapath_of(encoder)) object[key] = ordered_json::parse(value);
  return object;
}

/// Kept share of the attention's cells, by layer; 1 without a mask.
std::vector<double> kept_shares(const model::IntegerVit& vit) {
  std::vector<double> shares;
  for (const model::IntegerBlock& block : vit.encoder.blocks) {
    const auto kept = std::count_if(block.keep.begin(), block.keep.end(),
                                    [](std::uint8_t cell) { return cell != 0; });
    shares.push_back(block.keep.empty()
                         ? 1.0
                         : static_cast<double>(kept) / static_cast<double>(block.keep.size()));
  }
  return shares;
}

bool has_mask(const model::IntegerVit& vit) {
  return std::any_of(vit.encoder.blocks.begin(), vit.encoder.blocks.end(),
                     [](const model::IntegerBlock& block) { return !block.keep.empty(); });
}

std::string mask_text(const model::IntegerVit& vit) {
  std::string text;
  for (const double share : kept_shares(vit)) {
    text += fmt::format("{}{:.1f}", text.empty() ? "" : ", ", 100 * share);
  }
  return text + " % of the scores are kept, layer by layer";
}

std::string link_text(const model::IntegerVit& vit) {
  return fmt::format("Q and K: {} -> {} heads{}", vit.encoder.shape.heads,
                     vit.encoder.shape.latent_heads,
                     vit.encoder.folded_encoders ? ", encoder folded into the projection" : "");
}

/// Work and size, the same for every kind of network.
void add_counts(FactList& facts, const model::ModelInfo& info) {
  facts.add("work",
            fmt::format("{} MAC, {}", grouped(info.macs), counted(info.stages, "post-op stage")));
  facts.add("bytes", fmt::format("{} weights, {} parameters, {} tables", grouped(info.weight_bytes),
                                 grouped(info.parameter_bytes), grouped(info.table_bytes)));
}

void add_counts(ordered_json& document, const model::ModelInfo& info) {
  document["macs"] = info.macs;
  document["stages"] = info.stages;
  document["weight_bytes"] = info.weight_bytes;
  document["parameter_bytes"] = info.parameter_bytes;
  document["table_bytes"] = info.table_bytes;
  document["products"] = ordered_json::array();
  for (const model::ProductInfo& product : info.products) {
    document["products"].push_back({{"name", product.name},
                                    {"count", product.count},
                                    {"m", product.m},
                                    {"k", product.k},
                                    {"n", product.n},
                                    {"macs", product.macs},
                                    {"weight_bytes", product.weight_bytes},
                                    {"parameter_bytes", product.parameter_bytes}});
  }
}

void add_scales(ordered_json& document, const model::ModelInfo& info) {
  document["scales"] = ordered_json::array();
  for (const model::ScaleInfo& scale : info.scales) {
    document["scales"].push_back({{"tensor", scale.tensor},
                                  {"type", hw::name_of(scale.type)},
                                  {"rows", scale.rows},
                                  {"cols", scale.cols},
                                  {"scale", scale.scale}});
  }
}

std::string product_table(const model::ModelInfo& info) {
  Table table("product | >count | >M x K x N | >MACs | >weights | >params");
  for (const model::ProductInfo& product : info.products) {
    table.add({product.name, std::to_string(product.count),
               fmt::format("{} x {} x {}", product.m, product.k, product.n), grouped(product.macs),
               grouped(product.weight_bytes), grouped(product.parameter_bytes)});
  }
  return table.text();
}

std::string scale_table(const model::ModelInfo& info) {
  Table table("tensor | type | >shape | >scale");
  for (const model::ScaleInfo& scale : info.scales) {
    table.add({scale.tensor, hw::name_of(scale.type),
               fmt::format("{} x {}", scale.rows, scale.cols), fmt::format("{:.6g}", scale.scale)});
  }
  return table.text();
}

constexpr std::size_t kShownNote = 60;  // bytes of a free text

/// Free text of the file, empty without it.
std::string noted(const model::Safetensors& file, const std::string& key) {
  const auto entry = file.metadata().find(key);
  return entry == file.metadata().end() ? "" : hw::printable(entry->second, kShownNote);
}

std::string token_meaning(const model::Safetensors& file) {
  const std::string task = noted(file, "task");
  return task.empty() ? "token ids" : task;
}

}  // namespace

std::string blocks_text(const model::EncoderShape& shape) {
  return fmt::format(
      "{}, width {}, {}, MLP {}",
      counted(shape.layers, std::string(shape.causal ? "causal " : "") +
                                (shape.post_norm ? "post-norm" : "pre-norm") + " block"),
      shape.width, counted(shape.heads, "head"), shape.hidden);
}

std::string pixels_text(const model::VitShape& shape) {
  return fmt::format("{0} x {0} pixels, {1} of {2} levels", shape.image,
                     counted(shape.channels, "channel"), shape.levels);
}

std::string model_text(const model::IntegerVit& vit, const model::ModelInfo& info) {
  const model::EncoderShape& encoder = vit.shape.encoder;
  FactList facts;
  facts.add("model", vit.name);
  facts.add("source", vit.source);
  facts.add("encoder", blocks_text(encoder));
  if (has_mask(vit)) facts.add("masks", mask_text(vit));
  if (encoder.latent_heads != 0) facts.add("auto-encoder", link_text(vit));
  facts.add("input", fmt::format("{} (pictures upsampled by {}), patches of {} x {}, {}",
                                 pixels_text(vit.shape), vit.shape.upsample, vit.shape.patch,
                                 vit.shape.patch, counted(vit.shape.tokens(), "token")));
  facts.add("output", counted(vit.shape.classes, "class", "classes"));
  facts.add("datapath", datapath_text(vit.encoder));
  add_counts(facts, info);
  return facts.text() + "\n" + product_table(info) + "\n" + scale_table(info);
}

ordered_json model_json(const model::IntegerVit& vit, const model::ModelInfo& info) {
  const model::EncoderShape& encoder = vit.shape.encoder;
  ordered_json document{{"model", vit.name},
                        {"source", vit.source},
                        {"layers", encoder.layers},
                        {"width", encoder.width},
                        {"heads", encoder.heads},
                        {"hidden", encoder.hidden},
                        {"post_norm", encoder.post_norm},
                        {"kept", kept_shares(vit)},
                        {"latent_heads", encoder.latent_heads},
                        {"folded_encoders", vit.encoder.folded_encoders},
                        {"image", vit.shape.image},
                        {"channels", vit.shape.channels},
                        {"levels", vit.shape.levels},
                        {"upsample", vit.shape.upsample},
                        {"patch", vit.shape.patch},
                        {"tokens", vit.shape.tokens()},
                        {"classes", vit.shape.classes},
                        {"datapath", datapath_json(vit.encoder)}};
  add_counts(document, info);
  add_scales(document, info);
  return document;
}

std::string size_text(const NetworkSize& size) {
  if (size.resnet) {
    const model::ResNetShape& resnet = *size.resnet;
    return fmt::format("{}, a picture of {} x {} pixels, {} classes",
                       counted(resnet.layers(), "residual block"), resnet.image, resnet.image,
                       grouped(resnet.classes));
  }
  const std::string llama =
      size.llama ? fmt::format(", {} of {} features", counted(size.llama->kv_heads, "KV head"),
                               size.llama->head_width)
                 : "";
  const std::string text = fmt::format(
      "{}{}, {}{}", blocks_text(size.shape), llama,
      size.batch == 1 ? "" : grouped(size.batch) + " sequences of ", counted(size.length, "token"));
  if (!size.decode) return text;
  return text + fmt::format(" one by one after {} in the cache", grouped(size.past));
}

std::string model_text(const NetworkSize& size, const model::ModelInfo& info) {
  FactList facts;
  facts.add("model", size.name);
  facts.add("source", "a shape: its weights are seeded, and no accuracy can be measured");
  facts.add("shape", size_text(size));
  if (!size.resnet) facts.add("positions", grouped(size.positions));
  add_counts(facts, info);
  return facts.text() + "\n" + product_table(info);
}

ordered_json model_json(const NetworkSize& size, const model::ModelInfo& info) {
  ordered_json document{
      {"model", size.name}, {"seeded", to_json(size)}, {"positions", size.positions}};
  add_counts(document, info);
  return document;
}

std::string model_text(const model::IntegerText& text, const model::ModelInfo& info) {
  FactList facts;
  facts.add("model", text.name);
  facts.add("source", text.source);
  facts.add("network", blocks_text(text.shape.encoder));
  facts.add("input", fmt::format("token ids, vocabulary {}, {}", grouped(text.shape.vocabulary),
                                 counted(text.shape.positions, "position")));
  facts.add("output", text.head ? counted(text.shape.classes, "class", "classes")
                                : "hidden states of all tokens");
  facts.add("datapath", datapath_text(text.encoder));
  add_counts(facts, info);
  facts.add("host", fmt::format("{} entries of the tables of words and positions",
                                grouped(text.word.size() + text.position.size())));
  return facts.text() + "\n" + product_table(info) + "\n" + scale_table(info);
}

ordered_json model_json(const model::IntegerText& text, const model::ModelInfo& info) {
  const model::EncoderShape& shape = text.shape.encoder;
  ordered_json document{{"model", text.name},
                        {"source", text.source},
                        {"layers", shape.layers},
                        {"width", shape.width},
                        {"heads", shape.heads},
                        {"hidden", shape.hidden},
                        {"post_norm", shape.post_norm},
                        {"causal", shape.causal},
                        {"vocabulary", text.shape.vocabulary},
                        {"positions", text.shape.positions},
                        {"classes", text.shape.classes},
                        {"datapath", datapath_json(text.encoder)}};
  add_counts(document, info);
  add_scales(document, info);
  return document;
}

CheckpointInfo describe_checkpoint(const std::string& path) {
  const model::Safetensors file = model::Safetensors::open(path);
  const model::CheckpointFamily family = model::checkpoint_family(file);
  CheckpointInfo info;
  info.path = path;
  info.family = model::family_name(family.names);
  if (family.names == model::CheckpointNames::kSeq2Seq) {
    const model::Seq2SeqCheckpoint both = model::load_seq2seq_checkpoint(path);
    const model::TextShape &encoder = both.encoder.shape, &decoder = both.decoder.shape;
    info.shape = decoder.encoder;
    info.shape.layers += encoder.encoder.layers;
    info.input = fmt::format("up to {}, vocabulary {}, for up to {}, vocabulary {}",
                             counted(encoder.positions, "token"), grouped(encoder.vocabulary),
                             counted(decoder.positions, "token"), grouped(decoder.vocabulary));
  } else if (model::is_text(family)) {
    const model::TextShape shape = model::load_text_checkpoint(path).shape;
    info.shape = shape.encoder;
    info.input = fmt::format("{}, vocabulary {}, context {}", token_meaning(file),
                             grouped(shape.vocabulary), counted(shape.positions, "token"));
    if (shape.classes != 0) info.input += ", " + counted(shape.classes, "class", "classes");
    info.generates = shape.encoder.causal;
    info.validation_bits = noted(file, "validation_bits");
  } else {
    const model::VitShape shape = model::load_vit_checkpoint(path).shape;
    info.shape = shape.encoder;
    info.input = fmt::format("{} in patches of {} x {}, {}", pixels_text(shape), shape.patch,
                             shape.patch, counted(shape.classes, "class", "classes"));
  }
  for (const std::string& name : file.names()) {
    info.parameters += file.tensor(name).element_count();
  }
  return info;
}

std::string checkpoint_text(const CheckpointInfo& info) {
  FactList facts;
  facts.add("checkpoint", hw::printable(info.path));
  facts.add("family", info.family + ", real-valued");
  facts.add("network", blocks_text(info.shape));
  facts.add("input", info.input);
  facts.add("parameters", grouped(info.parameters));
  if (!info.validation_bits.empty()) {
    facts.add("training", info.validation_bits + " bits per token of its validation text, float32");
  }
  if (info.generates) {
    facts.add("FP16", "systole generate, on a ring of cores: machines dfx and dfx-ideal");
  }
  facts.add("integer", "systole quantise makes a model for systole run");
  return facts.text();
}

nlohmann::ordered_json checkpoint_json(const CheckpointInfo& info) {
  return {{"checkpoint", hw::printable(info.path)},
          {"family", info.family},
          {"layers", info.shape.layers},
          {"width", info.shape.width},
          {"heads", info.shape.heads},
          {"hidden", info.shape.hidden},
          {"post_norm", info.shape.post_norm},
          {"causal", info.shape.causal},
          {"input", info.input},
          {"parameters", info.parameters},
          {"generates", info.generates},
          {"validation_bits", info.validation_bits.empty()
                                  ? nlohmann::ordered_json()
                                  : nlohmann::ordered_json(info.validation_bits)}};
}

}  // namespace systole::testbench
