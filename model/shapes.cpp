#include "model/shapes.h"

#include "hw/error.h"
#include "hw/printable.h"

namespace systole::model {

const std::vector<NamedShape>& named_shapes() {
  // Devlin et al., arXiv 1810.04805; layers, width, heads, hidden.
  static const std::vector<NamedShape> shapes = {{"bert-base", {12, 768, 12, 3072, true}}};
  return shapes;
}

EncoderShape find_shape(std::string_view name) {
  std::string known;
  for (const NamedShape& shape : named_shapes()) {
    if (shape.name == name) return shape.shape;
    known += (known.empty() ? "" : ", ") + std::string(shape.name);
  }
  throw hw::InputError("shape '" + hw::printable(name) + "': unknown, expected one of " + known);
}

}  // namespace systole::model
