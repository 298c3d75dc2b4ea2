#include "testbench/network/accuracy.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "model/build/encoder_graph.h"
#include "model/build/seq2seq_graph.h"
#include "model/build/text_graph.h"
#include "model/checkpoint/vit_checkpoint.h"
#include "model/float/float_operators.h"
#include "model/float/float_seq2seq.h"
#include "model/float/float_text.h"
#include "model/float/float_vit.h"
#include "model/graph/graph.h"
#include "model/graph/reference.h"
#include "testbench/common/progress.h"
#include "testbench/network/tensors.h"
#include "testbench/network/text_reference.h"

namespace systole::testbench {

bool Accuracy::holds() const { return real >= kLeastRealAccuracy && keeps(); }

bool Accuracy::keeps() const { return real - integer <= kLargestLoss; }

double integer_accuracy(const model::IntegerVit& vit, const model::Dataset& data,
                        const std::function<void(std::size_t)>& progress) {
  const model::Graph graph = model::make_vit_graph(vit);
  const model::Tensor& input = graph.tensors[input_tensor(graph)];
  const model::Tensor& output = graph.tensors[output_tensor(graph)];
  model::Reference reference(graph, {true, false});
  std::size_t right = 0;
  for (std::size_t i = 0; i < data.count; ++i) {
    reference.set_input(input.name, model::patches_of(data, i, vit.shape));
    reference.run();
    if (model::argmax(reference.values(output.name)) == data.labels[i]) ++right;
    if (progress) progress(i + 1);
  }
  return static_cast<double>(right) / static_cast<double>(data.count);
}

Accuracy measure_accuracy(const model::IntegerVit& vit, const std::string& checkpoint_path,
                          const model::Dataset& data) {
  if (data.labels.empty()) throw hw::InputError("pictures: no labels, which an accuracy needs");
  const model::FloatVit real(model::load_vit_checkpoint(checkpoint_path));
  if (!(real.shape() == vit.shape)) {
    throw hw::InputError(hw::printable(checkpoint_path) + ": has another shape than " + vit.name);
  }
  Accuracy accuracy;
  accuracy.inputs = data.count;
  accuracy.real = model::float_accuracy(real, data);
  Progress progress(data.count);
  accuracy.integer = integer_accuracy(vit, data, [&](std::size_t done) { progress.update(done); });
  return accuracy;
}

double integer_accuracy(const model::OperatorNetwork& network, const model::Dataset& data,
                        const std::function<void(std::size_t)>& progress) {
  const model::Tensor& input = network.graph.tensors[input_tensor(network.graph)];
  const model::Tensor& output = network.graph.tensors[output_tensor(network.graph)];
  model::Reference reference(network.graph, {true, false});
  std::size_t right = 0;
  for (std::size_t i = 0; i < data.count; ++i) {
    reference.set_input(input.name,
                        widen(network.pictures.value().bytes(data.image(i)), input.type));
    reference.run();
    if (model::argmax(reference.values(output.name)) == data.labels[i]) ++right;
    if (progress) progress(i + 1);
  }
  return static_cast<double>(right) / static_cast<double>(data.count);
}

Accuracy measure_accuracy(const model::OperatorNetwork& network, const std::string& checkpoint_path,
                          const model::Dataset& data) {
  if (data.labels.empty()) throw hw::InputError("pictures: no labels, which an accuracy needs");
  const model::NetworkFile file(model::Safetensors::open(checkpoint_path));
  const model::FloatOperators real(file);
  const model::PictureFormat format = real.format();
  if (format.side != network.pictures.value().format.side ||
      format.channels != network.pictures->format.channels) {
    throw hw::InputError(hw::printable(checkpoint_path) + ": takes other pictures than " +
                         network.name);
  }
  const std::string& result = file.document().outputs.front();
  Accuracy accuracy;
  accuracy.inputs = data.count;
  std::size_t right = 0;
  for (std::size_t i = 0; i < data.count; ++i) {
    if (model::argmax(real.run(data.image(i)).at(result).values) == data.labels[i]) ++right;
  }
  accuracy.real = static_cast<double>(right) / static_cast<double>(data.count);
  Progress progress(data.count);
  accuracy.integer =
      integer_accuracy(network, data, [&](std::size_t done) { progress.update(done); });
  return accuracy;
}

double integer_accuracy(const model::IntegerText& text, const model::TokenIds& texts,
                        const std::function<void(std::size_t)>& progress) {
  std::size_t right = 0, done = 0;
  compute_texts(text, texts, [&](std::size_t i, const std::vector<std::int32_t>& logits) {
    if (model::argmax(logits) == texts.labels[i]) ++right;
    if (progress) progress(++done);
  });
  return static_cast<double>(right) / static_cast<double>(texts.count);
}

Accuracy measure_accuracy(const model::IntegerText& text, const std::string& checkpoint_path,
                          const model::TokenIds& texts) {
  if (texts.labels.empty()) throw hw::InputError("texts: no labels, which an accuracy needs");
  const model::FloatText real = load_real_text(text, checkpoint_path);
  Accuracy accuracy;
  accuracy.inputs = texts.count;
  accuracy.real = model::float_accuracy(real, texts);
  Progress progress(texts.count);
  accuracy.integer =
      integer_accuracy(text, texts, [&](std::size_t done) { progress.update(done); });
  return accuracy;
}

namespace {

std::size_t count_tokens(const model::TextPairs& texts) {
  return std::accumulate(texts.target.valid.begin(), texts.target.valid.end(), std::size_t{0});
}

}  // namespace

double integer_accuracy(const model::IntegerSeq2Seq& network, const model::TextPairs& texts,
                        const std::function<void(std::size_t)>& progress) {
  std::size_t right = 0;
  for (std::size_t i = 0; i < texts.source.count; ++i) {
    const std::vector<std::int32_t> source = texts.source.text(i).trimmed().ids,
                                    target = texts.target.text(i).trimmed().ids;
    const model::Graph graph =
        model::make_seq2seq_graph(network, static_cast<std::uint32_t>(source.size()),
                                  static_cast<std::uint32_t>(target.size()));
    model::Reference reference(graph, {true, false});
    reference.set_input(model::kSourceEmbedding, model::embed_pair(network, source, target));
    reference.run();
    right += right_tokens(reference.values("logits"), network.decoder.shape.vocabulary, target,
                          network.tokens.end);
    if (progress) progress(i + 1);
  }
  return static_cast<double>(right) / static_cast<double>(count_tokens(texts));
}

Accuracy measure_accuracy(const model::IntegerSeq2Seq& network, const std::string& checkpoint_path,
                          const std::string& texts_path) {
  if (texts_path.empty()) {
    throw hw::InputError("--input: " + network.name +
                         " is an encoder-decoder, expected a safetensors file with input_ids and "
                         "decoder_input_ids");
  }
  const model::TextPairs texts = model::load_text_pairs(
      texts_path, network.encoder.shape, network.decoder.shape, network.tokens.begin);
  const model::Seq2SeqCheckpoint checkpoint = model::load_seq2seq_checkpoint(checkpoint_path);
  const model::FloatSeq2Seq real(checkpoint);
  if (!(real.encoder_shape() == network.encoder.shape) ||
      !(real.decoder_shape() == network.decoder.shape)) {
    throw hw::InputError(hw::printable(checkpoint_path) + ": has another shape than " +
                         network.name);
  }
  std::size_t right = 0;
  for (std::size_t i = 0; i < texts.source.count; ++i) {
    const std::vector<std::int32_t> target = texts.target.text(i).trimmed().ids;
    right += right_tokens(real.logits(texts.source.text(i).trimmed().ids, target),
                          network.decoder.shape.vocabulary, target, checkpoint.tokens.end);
  }
  Accuracy accuracy;
  accuracy.inputs = count_tokens(texts);
  accuracy.real = static_cast<double>(right) / static_cast<double>(accuracy.inputs);
  Progress progress(texts.source.count);
  accuracy.integer =
      integer_accuracy(network, texts, [&](std::size_t done) { progress.update(done); });
  return accuracy;
}

}  // namespace systole::testbench
