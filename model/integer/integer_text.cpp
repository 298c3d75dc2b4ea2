#include "model/integer/integer_text.h"

#include <cstddef>
#include <stdexcept>

#include "hw/number/integer.h"
#include "model/text/token_ids.h"

namespace systole::model {

std::vector<std::int32_t> embed_tokens(const IntegerText& text,
                                       const std::vector<std::int32_t>& ids,
                                       std::uint32_t first_position,
                                       const std::vector<std::int32_t>& types) {
  const std::size_t width = text.shape.encoder.width;
  const hw::IntRange range = hw::symmetric_range(text.encoder.datapath.residual_bits);
  if (ids.size() + first_position > text.shape.positions) {
    throw std::invalid_argument("embed_tokens: more tokens than positions");
  }
  require_token_types(text.shape, ids, types);
  std::vector<std::int32_t> stream;
  stream.reserve(ids.size() * width);
  for (std::size_t t = 0; t < ids.size(); ++t) {
    if (ids[t] < 0 || static_cast<std::uint32_t>(ids[t]) >= text.shape.vocabulary) {
      throw std::invalid_argument("embed_tokens: an id outside the vocabulary");
    }
    const std::int32_t* const word = &text.word[static_cast<std::size_t>(ids[t]) * width];
    const std::int32_t* const position = &text.position[(first_position + t) * width];
    const bool typed = !types.empty() && types[t] != 0;
    const std::size_t type = typed ? static_cast<std::size_t>(types[t]) * width : 0;
    for (std::size_t i = 0; i < width; ++i) {
      const std::int64_t sum = std::int64_t{word[i]} + position[i];
      stream.push_back(static_cast<std::int32_t>(
          hw::saturate(typed ? sum + text.token_type[type + i] : sum, range)));
    }
  }
  return stream;
}

}  // namespace systole::model
