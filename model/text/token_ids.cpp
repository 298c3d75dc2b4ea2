#include "model/text/token_ids.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "model/format/safetensors.h"

namespace systole::model {
namespace {

constexpr const char* kIds = "input_ids";
constexpr const char* kMask = "attention_mask";
constexpr const char* kTargetMask = "decoder_attention_mask";
constexpr const char* kTarget = "decoder_input_ids";
constexpr const char* kTypes = "token_type_ids";
constexpr const char* kLabels = "labels";

[[noreturn]] void fail_tensor(const Safetensors& file, const char* name, const std::string& what) {
  throw hw::InputError(hw::printable(file.path()) + ": tensor '" + name + "': " + what);
}

/// The elements of a tensor, each from 0 to `last`.
std::vector<std::int32_t> read_numbers(const Safetensors& file, const char* name,
                                       std::uint32_t last) {
  std::vector<std::int32_t> numbers;
  const auto add = [&](std::int64_t number) {
    if (number < 0 || number > last) {
      fail_tensor(file, name,
                  "element " + std::to_string(numbers.size()) + " is " + std::to_string(number) +
                      ", expected 0 to " + std::to_string(last));
    }
    numbers.push_back(static_cast<std::int32_t>(number));
  };
  if (file.tensor(name).dtype == FileDtype::kBool && (name == kMask || name == kTargetMask)) {
    for (const std::uint8_t number : file.copy<std::uint8_t>(name)) add(number);
  } else {
    for (const std::int64_t number : file.as_int64(name)) add(number);
  }
  return numbers;
}

void require_shape_of_ids(const Safetensors& file, const char* name, const char* ids = kIds) {
  const std::vector<std::size_t>& shape = file.tensor(name).shape;
  const std::vector<std::size_t>& expected = file.tensor(ids).shape;
  if (shape == expected) return;
  fail_tensor(file, name,
              "shape is " + shape_text(shape) + ", expected " + shape_text(expected) + " as of '" +
                  ids + "'");
}

/// Tokens of each text that are no padding.
std::vector<std::size_t> read_mask(const Safetensors& file, const char* name, const char* ids,
                                   std::size_t count, std::size_t length) {
  if (!file.has(name)) return std::vector<std::size_t>(count, length);
  require_shape_of_ids(file, name, ids);
  const std::vector<std::int32_t> mask = read_numbers(file, name, 1);
  std::vector<std::size_t> valid;
  for (auto row = mask.begin(); row != mask.end(); row += static_cast<std::ptrdiff_t>(length)) {
    const auto end = row + static_cast<std::ptrdiff_t>(length);
    const auto padding = std::find(row, end, 0);
    if (padding == row || std::find(padding, end, 1) != end) {
      fail_tensor(file, name,
                  "row " + std::to_string(valid.size()) +
                      ": expected ones, then zeros: padding at the end of a text alone");
    }
    valid.push_back(static_cast<std::size_t>(padding - row));
  }
  return valid;
}

/// Ids and mask.
TokenIds read_texts(const Safetensors& file, const char* ids, const char* mask,
                    const TextShape& shape) {
  const std::vector<std::size_t>& sizes = file.tensor(ids).shape;
  if (sizes.size() != 2 || sizes[0] == 0 || sizes[1] == 0) {
    fail_tensor(file, ids,
                "shape is " + shape_text(sizes) + ", expected [count, length], none of them 0");
  }
  if (sizes[1] > shape.positions) {
    fail_tensor(file, ids,
                "texts of " + std::to_string(sizes[1]) + " tokens, but the network has " +
                    std::to_string(shape.positions) + " positions");
  }
  TokenIds result;
  result.count = sizes[0];
  result.length = sizes[1];
  result.ids = read_numbers(file, ids, shape.vocabulary - 1);
  result.valid = read_mask(file, mask, ids, result.count, result.length);
  return result;
}

std::vector<std::int32_t> read_types(const Safetensors& file, std::uint32_t token_types) {
  if (!file.has(kTypes)) return {};
  if (token_types == 0) fail_tensor(file, kTypes, "the network has no token types, expected none");
  require_shape_of_ids(file, kTypes);
  return read_numbers(file, kTypes, token_types - 1);
}

std::vector<std::uint32_t> read_labels(const Safetensors& file, std::size_t count,
                                       std::uint32_t classes) {
  if (classes == 0 || !file.has(kLabels)) return {};
  const std::vector<std::size_t>& shape = file.tensor(kLabels).shape;
  if (shape != std::vector<std::size_t>{count}) {
    fail_tensor(file, kLabels,
                "shape is " + shape_text(shape) + ", expected " + shape_text({count}) +
                    ": one for each text");
  }
  const std::vector<std::int32_t> labels = read_numbers(file, kLabels, classes - 1);
  return {labels.begin(), labels.end()};
}

TokenIds read_token_ids(const Safetensors& file, const TextShape& shape) {
  TokenIds result = read_texts(file, kIds, kMask, shape);
  result.types = read_types(file, shape.token_types);
  result.labels = read_labels(file, result.count, shape.classes);
  return result;
}

std::vector<std::int32_t> text_row(const std::vector<std::int32_t>& values, std::size_t index,
                                   std::size_t length) {
  if (values.empty()) return {};
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(index * length);
  return {begin, begin + static_cast<std::ptrdiff_t>(length)};
}

}  // namespace

TokenText TokenText::trimmed() const {
  TokenText text = *this;
  text.ids.resize(valid);
  if (!types.empty()) text.types.resize(valid);
  return text;
}

TokenText TokenIds::text(std::size_t index) const {
  return {text_row(ids, index, length), text_row(types, index, length), valid.at(index)};
}

TokenIds load_token_ids(const std::string& path, const TextShape& shape) {
  return read_token_ids(Safetensors::open(path), shape);
}

TextPairs load_text_pairs(const std::string& path, const TextShape& encoder,
                          const TextShape& decoder, std::int32_t begin) {
  const Safetensors file = Safetensors::open(path);
  TextPairs pairs = {read_token_ids(file, encoder),
                     read_texts(file, kTarget, kTargetMask, decoder)};
  if (!pairs.source.types.empty()) {
    fail_tensor(file, kTypes, "of an encoder-decoder: expected none");
  }
  if (pairs.target.count != pairs.source.count) {
    fail_tensor(file, kTarget,
                std::to_string(pairs.target.count) + " texts, expected " +
                    std::to_string(pairs.source.count) + " as of '" + kIds + "'");
  }
  for (std::size_t i = 0; i < pairs.target.count; ++i) {
    if (pairs.target.ids[i * pairs.target.length] == begin) continue;
    fail_tensor(file, kTarget,
                "row " + std::to_string(i) + " begins with " +
                    std::to_string(pairs.target.ids[i * pairs.target.length]) + ", expected " +
                    std::to_string(begin));
  }
  return pairs;
}

TextShape llama_text_shape(const LlamaShape& shape) {
  TextShape text;
  text.encoder.layers = shape.layers;
  text.encoder.width = shape.width;
  text.encoder.causal = true;
  text.vocabulary = shape.vocabulary;
  text.positions = shape.positions;
  return text;
}

void require_token_types(const TextShape& shape, const std::vector<std::int32_t>& ids,
                         const std::vector<std::int32_t>& types) {
  if (types.empty()) return;
  const auto known = [&](std::int32_t type) {
    return type >= 0 && static_cast<std::uint32_t>(type) < shape.token_types;
  };
  if (types.size() != ids.size() || !std::all_of(types.begin(), types.end(), known)) {
    throw std::invalid_argument("token types: expected one that the network has for each token");
  }
}

std::string load_text(const std::string& path) {
  constexpr const char* kName = "valid";
  if (std::filesystem::path(path).extension() != ".safetensors") {
    return std::string(hw::MappedFile(path).bytes());
  }
  const Safetensors file = Safetensors::open(path);
  const std::vector<std::size_t>& shape = file.tensor(kName).shape;
  if (shape.size() != 1 || shape.front() == 0) {
    throw hw::InputError(hw::printable(path) + ": tensor '" + kName + "': shape is " +
                         shape_text(shape) + ", expected [length], not 0");
  }
  const std::vector<std::uint8_t> bytes = file.copy<std::uint8_t>(kName);
  return {bytes.begin(), bytes.end()};
}

}  // namespace systole::model
