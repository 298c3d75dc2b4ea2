#include "model/seeded/shapes.h"

#include "base/error.h"
#include "base/printable.h"

namespace systole::model {

const std::vector<NamedShape>& named_shapes() {
  constexpr NetworkKind kEncoder = NetworkKind::kEncoder, kDecoder = NetworkKind::kDecoder;
  constexpr NetworkKind kVision = NetworkKind::kVision;
  // Layers, width, heads, hidden, post-norm, latent heads, causal; positions, vocabulary.
  static const std::vector<NamedShape> shapes = {
      // Devlin et al., arXiv 1810.04805; the uncased vocabulary.
      {"bert-base", kEncoder, {12, 768, 12, 3072, true}, 512, 30522},
      {"bert-large", kEncoder, {24, 1024, 16, 4096, true}, 512, 30522},
      // Radford et al., "Language Models are Unsupervised Multitask Learners", 2019.
      {"gpt2", kDecoder, {12, 768, 12, 3072, false, 0, true}, 1024, 50257},
      {"gpt2-medium", kDecoder, {24, 1024, 16, 4096, false, 0, true}, 1024, 50257},
      {"gpt2-large", kDecoder, {36, 1280, 20, 5120, false, 0, true}, 1024, 50257},
      {"gpt2-xl", kDecoder, {48, 1600, 25, 6400, false, 0, true}, 1024, 50257},
      // Touvron et al., arXiv 2012.12877: 224 x 224 pixels in patches of 16 x 16, class token.
      {"deit-tiny", kVision, {12, 192, 3, 768, false}, 197, 0},
      {"deit-small", kVision, {12, 384, 6, 1536, false}, 197, 0},
      {"deit-base", kVision, {12, 768, 12, 3072, false}, 197, 0}};
  return shapes;
}

const NamedShape& find_named_shape(std::string_view name) {
  std::string known;
  for (const NamedShape& shape : named_shapes()) {
    if (shape.name == name) return shape;
    known += (known.empty() ? "" : ", ") + std::string(shape.name);
  }
  throw hw::InputError("shape '" + hw::printable(name) + "': unknown, expected one of " + known);
}

}  // namespace systole::model
