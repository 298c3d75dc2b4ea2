#include "testbench/run/run_values.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/printable.h"
#include "model/format/safetensors.h"
#include "model/format/safetensors_writer.h"

namespace systole::testbench {
namespace {

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

void write_values(const std::string& path, const std::vector<RunValues>& tensors) {
  std::vector<model::TensorData> data;
  for (const RunValues& values : tensors) {
    model::TensorData& tensor = data.emplace_back();
    tensor.name = values.tensor.name;
    tensor.dtype = file_type(values.tensor.type);
    tensor.shape = {values.inferences.size(), values.tensor.rows, values.tensor.cols};
    for (const std::vector<std::uint8_t>& bytes : values.inferences) {
      const auto* const begin = reinterpret_cast<const std::byte*>(bytes.data());
      tensor.data.insert(tensor.data.end(), begin, begin + bytes.size());
    }
  }
  model::write_safetensors(path, data);
}

}  // namespace systole::testbench
