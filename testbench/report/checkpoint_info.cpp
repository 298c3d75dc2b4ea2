#include "testbench/report/checkpoint_info.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "model/checkpoint/checkpoint_names.h"
#include "model/checkpoint/text_checkpoint.h"
#include "model/checkpoint/vit_checkpoint.h"
#include "model/format/safetensors.h"
#include "testbench/common/text.h"
#include "testbench/report/report_model.h"

namespace systole::testbench {

namespace {

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

CheckpointInfo describe_checkpoint(const std::string& path) {
  const model::Safetensors file = model::Safetensors::open(path);
  const model::CheckpointFamily family = model::checkpoint_family(file);
  CheckpointInfo info;
  info.path = path;
  info.family = model::family_name(family.names);
  if (model::is_text(family)) {
    const model::TextShape shape = model::load_text_checkpoint(path).shape;
    info.shape = shape.encoder;
    info.input = fmt::format("{}, vocabulary {}, context {}", token_meaning(file),
                             grouped(shape.vocabulary), counted(shape.positions, "token"));
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
