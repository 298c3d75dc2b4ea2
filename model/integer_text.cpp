#include "model/integer_text.h"

#include <cstddef>
#include <stdexcept>

#include "hw/integer.h"

namespace systole::model {

std::vector<std::int32_t> embed_tokens(const IntegerText& text,
                                       const std::vector<std::int32_t>& ids,
                                       std::uint32_t first_position) {
  const std::size_t width = text.shape.encoder.width;
  const hw::IntRange range = hw::symmetric_range(text.encoder.datapath.residual_bits);
  if (ids.size() + first_position > text.shape.positions) {
    throw std::invalid_argument("embed_tokens: more tokens than positions");
  }
  std::vector<std::int32_t> stream;
  stream.reserve(ids.size() * width);
  for (std::size_t t = 0; t < ids.size(); ++t) {
    if (ids[t] < 0 || static_cast<std::uint32_t>(ids[t]) >= text.shape.vocabulary) {
      throw std::invalid_argument("embed_tokens: an id outside the vocabulary");
    }
    const std::int32_t* const word = &text.word[static_cast<std::size_t>(ids[t]) * width];
    const std::int32_t* const position = &text.position[(first_position + t) * width];
    for (std::size_t i = 0; i < width; ++i) {
      stream.push_back(
          static_cast<std::int32_t>(hw::saturate(std::int64_t{word[i]} + position[i], range)));
    }
  }
  return stream;
}

}  // namespace systole::model
