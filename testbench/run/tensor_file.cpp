#include "testbench/run/tensor_file.h"

#include <algorithm>
#include <cstring>
#include <regex>

#include "base/error.h"
#include "base/printable.h"
#include "model/format/safetensors.h"

namespace systole::testbench {
namespace {

constexpr std::size_t kNamesInMessage = 8;
constexpr std::size_t kNameInMessage = 60;

model::FileDtype file_type(hw::DType type) {
  switch (type) {
    case hw::DType::kS8:
      return model::FileDtype::kI8;
    case hw::DType::kU8:
      return model::FileDtype::kU8;
    case hw::DType::kS16:
      return model::FileDtype::kI16;
    case hw::DType::kU16:
      return model::FileDtype::kU16;
    case hw::DType::kS32:
      break;
  }
  return model::FileDtype::kI32;
}

}  // namespace

std::vector<std::vector<std::uint8_t>> read_values(const std::string& path,
                                                   const mapper::TensorPlace& tensor,
                                                   std::size_t limit) {
  const model::Safetensors file = model::Safetensors::open(path);
  const model::TensorView& view = file.tensor(tensor.name);
  const bool is_one = view.shape.size() == 2;
  const bool fits = (is_one || view.shape.size() == 3) && view.dtype == file_type(tensor.type) &&
                    view.shape.end()[-2] == tensor.rows && view.shape.end()[-1] == tensor.cols;
  if (!fits || view.bytes == 0) {
    throw hw::InputError(hw::printable(path) + ": tensor " + tensor.name + ": found " +
                         std::string(model::dtype_name(view.dtype)) +
                         model::shape_text(view.shape) + ", expected " +
                         std::string(model::dtype_name(file_type(tensor.type))) + "[inferences, " +
                         std::to_string(tensor.rows) + ", " + std::to_string(tensor.cols) + "]");
  }
  const std::size_t found = is_one ? 1 : view.shape.front();
  std::vector<std::vector<std::uint8_t>> values(limit == 0 ? found : std::min(limit, found));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i].resize(tensor.bytes());
    std::memcpy(values[i].data(), view.data + i * tensor.bytes(), tensor.bytes());
  }
  return values;
}

model::TensorData tensor_of_inferences(const std::string& name, hw::DType type, std::uint32_t rows,
                                       std::uint32_t cols,
                                       const std::vector<std::vector<std::uint8_t>>& inferences) {
  model::TensorData tensor;
  tensor.name = name;
  tensor.dtype = file_type(type);
  tensor.shape = {inferences.size(), rows, cols};
  for (const std::vector<std::uint8_t>& bytes : inferences) {
    const auto* const begin = reinterpret_cast<const std::byte*>(bytes.data());
    tensor.data.insert(tensor.data.end(), begin, begin + bytes.size());
  }
  return tensor;
}

std::vector<std::size_t> find_names(const std::string& expression,
                                    const std::vector<std::string>& names,
                                    const std::string& which) {
  std::regex pattern;
  try {
    pattern.assign(expression, std::regex::ECMAScript);
  } catch (const std::regex_error&) {
    throw hw::InputError("--tensors: found '" + hw::printable(expression) +
                         "', expected a regular expression");
  }
  std::vector<std::size_t> found;
  std::string shown;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i < kNamesInMessage) shown += ", " + hw::printable(names[i], kNameInMessage);
    if (std::regex_match(names[i], pattern)) found.push_back(i);
  }
  if (!found.empty()) return found;
  if (names.size() > kNamesInMessage) {
    shown += ", " + std::to_string(names.size() - kNamesInMessage) + " more";
  }
  throw hw::InputError("--tensors: '" + hw::printable(expression) + "' matches no tensor " + which +
                       ", which are" + shown.substr(1));
}

std::vector<bool> written_tensors(const model::Graph& graph, const mapper::Mapping& mapping) {
  std::vector<bool> is_written(graph.tensors.size());
  for (const mapper::Group& group : mapping.groups) is_written[group.written().tensor] = true;
  return is_written;
}

std::vector<model::TensorId> find_tensors(const std::string& expression, const model::Graph& graph,
                                          const mapper::Mapping& mapping) {
  return find_tensors(expression, graph, written_tensors(graph, mapping));
}

std::vector<model::TensorId> find_tensors(const std::string& expression, const model::Graph& graph,
                                          const std::vector<bool>& is_left) {
  std::vector<std::string> names;
  std::vector<model::TensorId> ids;
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    if (!is_left[id]) continue;
    names.push_back(graph.tensors[id].name);
    ids.push_back(static_cast<model::TensorId>(id));
  }
  std::vector<model::TensorId> found;
  for (const std::size_t i : find_names(expression, names, "that the program leaves in memory")) {
    found.push_back(ids[i]);
  }
  return found;
}

}  // namespace systole::testbench
