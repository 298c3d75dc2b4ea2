#include "testbench/sparsify/attention_subject.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "model/build/encoder_graph.h"
#include "model/build/host_operators.h"
#include "model/build/text_graph.h"
#include "model/checkpoint/checkpoint_names.h"
#include "model/float/float_text.h"
#include "model/float/float_vit.h"
#include "model/format/safetensors.h"
#include "model/mask/attention_average.h"
#include "model/model_files.h"
#include "model/quantise/quantiser.h"
#include "testbench/network/accuracy.h"
#include "testbench/network/network_mask.h"

namespace systole::testbench {
namespace {

constexpr const char* kGatherSplit = "calib";

/// The first `limit` pictures; all if 0.
model::Dataset first_of(model::Dataset data, std::size_t limit) {
  if (limit == 0 || limit >= data.count) return data;
  data.samples.resize(data.samples.size() / data.count * limit);
  if (!data.labels.empty()) data.labels.resize(limit);
  data.count = limit;
  return data;
}

model::TokenIds first_of(model::TokenIds ids, std::size_t limit) {
  if (limit == 0 || limit >= ids.count) return ids;
  ids.ids.resize(limit * ids.length);
  if (!ids.types.empty()) ids.types.resize(limit * ids.length);
  if (!ids.labels.empty()) ids.labels.resize(limit);
  ids.valid.resize(limit);
  ids.count = limit;
  return ids;
}

/// The texts of the most common length, the shorter of two that are as common, without padding.
model::TokenIds of_common_length(const model::TokenIds& ids) {
  std::map<std::size_t, std::size_t> counts;
  for (const std::size_t valid : ids.valid) ++counts[valid];
  const std::size_t length =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->first;
  model::TokenIds result;
  result.length = length;
  for (std::size_t i = 0; i < ids.count; ++i) {
    if (ids.valid[i] != length) continue;
    const model::TokenText text = ids.text(i).trimmed();
    result.ids.insert(result.ids.end(), text.ids.begin(), text.ids.end());
    result.types.insert(result.types.end(), text.types.begin(), text.types.end());
    if (!ids.labels.empty()) result.labels.push_back(ids.labels[i]);
    result.valid.push_back(length);
    ++result.count;
  }
  return result;
}

void put_mask(std::vector<model::FloatBlock>& blocks, const model::AttentionMask* mask) {
  if (mask == nullptr) return;
  std::vector<std::vector<std::uint8_t>> keep = keep_of(*mask);
  for (std::size_t layer = 0; layer < blocks.size(); ++layer) {
    blocks[layer].keep = std::move(keep.at(layer));
  }
}

model::QuantiserOptions options_of(const hw::Machine::Datapath& datapath) {
  model::QuantiserOptions options;
  options.datapath = datapath;
  return options;
}

}  // namespace

AttentionSubject::AttentionSubject(const std::string& model, const std::string& input,
                                   std::size_t limit)
    : name_(model) {
  const std::string path = model::find_checkpoint(model);
  if (model::is_text_checkpoint(model::Safetensors::open(path))) {
    text_ = model::load_text_checkpoint(path);
    if (text_->shape.encoder.causal) {
      throw hw::InputError(hw::printable(model) +
                           ": a decoder, which masks later tokens, expected an encoder");
    }
    ids_ = first_of(of_common_length(model::load_token_ids(input, text_->shape)), limit);
    return;
  }
  vit_ = model::load_vit_checkpoint(path);
  const model::PictureFormat pictures = vit_->shape.pictures();
  calibration_ = first_of(model::load_images(input, pictures, kGatherSplit), limit);
  test_ = first_of(model::load_images(input, pictures), limit);
}

std::size_t AttentionSubject::inputs() const { return vit_ ? calibration_.count : ids_.count; }

const model::EncoderShape& AttentionSubject::encoder() const {
  return vit_ ? vit_->shape.encoder : text_->shape.encoder;
}

model::AttentionShape AttentionSubject::shape() const {
  const std::size_t tokens = vit_ ? vit_->shape.tokens() : ids_.length;
  return {encoder().layers, encoder().heads, tokens, tokens};
}

std::vector<double> AttentionSubject::averages() const {
  model::AttentionAverage average(shape());
  if (vit_) {
    const model::FloatVit vit(*vit_);
    for (std::size_t i = 0; i < calibration_.count; ++i) {
      static_cast<void>(vit.logits(model::patches_of(calibration_, i, vit.shape()), &average));
    }
  } else {
    const model::FloatText text(*text_);
    for (std::size_t i = 0; i < ids_.count; ++i) {
      const model::TokenText one = ids_.text(i);
      static_cast<void>(text.hidden(one.ids, &average, one.types));
    }
  }
  return average.averages();
}

std::optional<model::AttentionMask> AttentionSubject::own_mask() const {
  const std::vector<model::FloatBlock>& blocks = vit_ ? vit_->blocks : text_->blocks;
  model::AttentionMask mask(shape());
  std::size_t cell = 0;
  for (const model::FloatBlock& block : blocks) {
    if (block.keep.empty()) return std::nullopt;
    for (const std::uint8_t keep : block.keep) {
      if (keep != 0) mask.keep(cell);
      ++cell;
    }
  }
  return mask;
}

model::VitCheckpoint AttentionSubject::vit_under(const model::AttentionMask* mask) const {
  model::VitCheckpoint checkpoint = *vit_;
  put_mask(checkpoint.blocks, mask);
  return checkpoint;
}

model::TextCheckpoint AttentionSubject::text_under(const model::AttentionMask* mask) const {
  model::TextCheckpoint checkpoint = *text_;
  put_mask(checkpoint.blocks, mask);
  return checkpoint;
}

double AttentionSubject::hidden_error(const model::AttentionMask* mask) const {
  const model::FloatText whole(*text_), pruned(text_under(mask));
  double power = 0.0, error = 0.0;
  for (std::size_t i = 0; i < ids_.count; ++i) {
    const model::TokenText one = ids_.text(i);
    const model::FloatRows a = whole.hidden(one.ids, nullptr, one.types);
    const model::FloatRows b = pruned.hidden(one.ids, nullptr, one.types);
    for (std::size_t j = 0; j < a.size(); ++j) {
      power += a[j] * a[j];
      error += (a[j] - b[j]) * (a[j] - b[j]);
    }
  }
  return power == 0.0 ? 0.0 : std::sqrt(error / power);
}

TaskQuality AttentionSubject::quality(const model::AttentionMask* mask,
                                      const hw::Machine::Datapath& datapath, bool integer) const {
  TaskQuality quality;
  if (text_ && (!text_->head || ids_.labels.empty())) {
    quality.error = hidden_error(mask);
  } else if (text_) {
    const model::TextCheckpoint checkpoint = text_under(mask);
    quality.real = model::float_accuracy(model::FloatText(checkpoint), ids_);
    if (integer) {
      quality.integer =
          integer_accuracy(model::quantise(checkpoint, ids_, options_of(datapath)), ids_);
    }
  } else if (!test_.labels.empty()) {
    const model::VitCheckpoint checkpoint = vit_under(mask);
    quality.real = model::float_accuracy(model::FloatVit(checkpoint), test_);
    if (integer) {
      quality.integer =
          integer_accuracy(model::quantise(checkpoint, calibration_, options_of(datapath)), test_);
    }
  }
  return quality;
}

IntegerSubject AttentionSubject::integers(const hw::Machine::Datapath& datapath) const {
  const model::QuantiserOptions options = options_of(datapath);
  IntegerSubject subject;
  subject.layers = encoder().layers;
  subject.heads = encoder().heads;
  subject.tokens = shape().keys;
  subject.masked = own_mask().has_value();
  if (vit_) {
    const model::IntegerVit vit = model::quantise(*vit_, calibration_, options);
    subject.graph = model::make_vit_graph(vit);
    for (std::size_t i = 0; i < calibration_.count; ++i) {
      subject.calibration.push_back(model::patches_of(calibration_, i, vit.shape));
    }
    for (std::size_t i = 0; i < test_.count; ++i) {
      subject.test.push_back(model::patches_of(test_, i, vit.shape));
    }
    subject.labels = test_.labels;
  } else {
    const model::IntegerText text = model::quantise(*text_, ids_, options);
    subject.graph = model::make_text_graph(text, static_cast<std::uint32_t>(ids_.length));
    for (std::size_t i = 0; i < ids_.count; ++i) {
      const model::TokenText one = ids_.text(i);
      subject.test.push_back(model::embed_tokens(text, one.ids, 0, one.types));
    }
    subject.calibration = subject.test;
    if (text.head) subject.labels = ids_.labels;
  }
  subject.graph.name = name_;
  return subject;
}

model::Graph AttentionSubject::graph(const model::AttentionMask* mask,
                                     const hw::Machine& machine) const {
  const model::QuantiserOptions options = options_of(machine.datapath);
  model::Graph graph =
      vit_ ? model::make_vit_graph(model::quantise(vit_under(mask), calibration_, options))
           : model::make_text_graph(model::quantise(text_under(mask), ids_, options),
                                    static_cast<std::uint32_t>(ids_.length));
  graph.name = name_;
  return model::for_machine(std::move(graph), machine);
}

}  // namespace systole::testbench
