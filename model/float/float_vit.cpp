#include "model/float/float_vit.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.h"

namespace systole::model {

FloatVit::FloatVit(VitCheckpoint checkpoint)
    : checkpoint_(std::move(checkpoint)),
      patch_embed_(checkpoint_.patch_embed),
      blocks_(checkpoint_.shape.encoder, std::move(checkpoint_.blocks),
              {checkpoint.norm_epsilon, GeluForm::kErf}),
      head_(checkpoint_.head) {}

FloatRows FloatVit::embed(const std::vector<std::int32_t>& patches) const {
  FloatRows pixels(patches.size());
  for (std::size_t i = 0; i < patches.size(); ++i) pixels[i] = patches[i] / kInputSteps;
  const FloatRows projected = patch_embed_.apply(pixels);
  FloatRows stream = checkpoint_.cls_token;
  stream.insert(stream.end(), projected.begin(), projected.end());
  for (std::size_t i = 0; i < stream.size(); ++i) stream[i] += checkpoint_.position[i];
  return stream;
}

std::vector<double> FloatVit::logits(const std::vector<std::int32_t>& patches,
                                     ActivationObserver* observer) const {
  const std::size_t expected = std::size_t{shape().patches()} * shape().patch_samples();
  if (patches.size() != expected) {
    throw std::invalid_argument("FloatVit: " + std::to_string(patches.size()) +
                                " samples, expected " + std::to_string(expected));
  }
  const std::size_t width = shape().encoder.width;
  const bool post = shape().encoder.post_norm;
  FloatRows stream = embed(patches);
  show(observer, Site::kEmbedding, 0, stream, width);
  if (post) {
    stream = layer_norm(checkpoint_.norm, stream, checkpoint_.norm_epsilon);
    show(observer, Site::kEmbeddingNorm, 0, stream, width);
  }
  stream = blocks_.run(std::move(stream), observer);
  stream.resize(width);  // only the class token is classified
  if (!post) {
    stream = layer_norm(checkpoint_.norm, stream, checkpoint_.norm_epsilon);
    show(observer, Site::kFinalNorm, 0, stream, width);
  }
  FloatRows result = head_.apply(stream);
  show(observer, Site::kLogits, 0, result, result.size());
  return result;
}

std::vector<std::int32_t> patches_of(const Dataset& data, std::size_t index,
                                     const VitShape& shape) {
  require_format(data.channels, data.height, data.width, shape.pictures());
  const auto up = static_cast<int>(shape.upsample);
  return patchify(preprocess(data.image(index), up, shape.levels), shape.patch);
}

double float_accuracy(const FloatVit& vit, const Dataset& data) {
  if (data.labels.empty()) throw hw::InputError("the pictures have no labels");
  std::size_t right = 0;
  for (std::size_t i = 0; i < data.count; ++i) {
    if (argmax(vit.logits(patches_of(data, i, vit.shape()))) == data.labels[i]) ++right;
  }
  return static_cast<double>(right) / static_cast<double>(data.count);
}

}  // namespace systole::model
