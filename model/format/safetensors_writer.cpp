#include "model/format/safetensors_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "base/atomic_file.h"
#include "model/format/safetensors_header.h"

namespace systole::model {
namespace {

using TensorsByName = std::map<std::string, const TensorData*>;

void check(const TensorData& tensor) {
  const auto fail = [&](const std::string& what) {
    throw std::invalid_argument("tensor '" + tensor.name + "': " + what);
  };
  if (const char* problem = tensor_name_problem(tensor.name)) fail(problem);
  if (tensor.shape.size() > kMaxDimensions) fail("too many dimensions");
  if (tensor_bytes(tensor.dtype, tensor.shape) != tensor.data.size()) {
    fail("the data do not fill the shape " + shape_text(tensor.shape));
  }
}

TensorsByName sorted_by_name(const std::vector<TensorData>& tensors) {
  TensorsByName sorted;
  for (const TensorData& tensor : tensors) {
    check(tensor);
    if (!sorted.emplace(tensor.name, &tensor).second) {
      throw std::invalid_argument("tensor '" + tensor.name + "': the name is used twice");
    }
  }
  return sorted;
}

/// A JSON string in ASCII, with its quotes.
std::string json_string(std::string_view text) {
  try {
    return nlohmann::json(text).dump(-1, ' ', true);
  } catch (const nlohmann::json::type_error&) {
    throw std::invalid_argument("a tensor's name or a metadata text is not valid UTF-8");
  }
}

std::string header_text(const TensorsByName& tensors,
                        const std::map<std::string, std::string>& metadata) {
  constexpr std::size_t kAlignment = 8;
  std::vector<std::string> entries;
  if (!metadata.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : metadata) {
      pairs.push_back(json_string(key) + ":" + json_string(value));
    }
    entries.push_back(fmt::format("{}:{{{}}}", json_string(kMetadataKey), fmt::join(pairs, ",")));
  }
  std::size_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t end = offset + tensor->data.size();
    entries.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                  json_string(name), dtype_name(tensor->dtype),
                                  fmt::join(tensor->shape, ","), offset, end));
    offset = end;
  }
  std::string text = fmt::format("{{{}}}", fmt::join(entries, ","));
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

void write_to(std::ostream& out, const std::vector<TensorData>& tensors,
              const std::map<std::string, std::string>& metadata) {
  const TensorsByName sorted = sorted_by_name(tensors);
  const std::string header = header_text(sorted, metadata);
  if (header.size() > kMaxHeaderBytes) throw std::invalid_argument("the header is too long");
  const std::uint64_t length = header.size();
  out.write(reinterpret_cast<const char*>(&length), sizeof length);
  out << header;
  for (const auto& [name, tensor] : sorted) {
    out.write(reinterpret_cast<const char*>(tensor->data.data()),
              static_cast<std::streamsize>(tensor->data.size()));
  }
}

}  // namespace

void write_safetensors(const std::string& path, const std::vector<TensorData>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  hw::write_file_atomically(path, [&](std::ostream& out) { write_to(out, tensors, metadata); });
}

std::string safetensors_bytes(const std::vector<TensorData>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::ostringstream out;
  write_to(out, tensors, metadata);
  return out.str();
}

}  // namespace systole::model
