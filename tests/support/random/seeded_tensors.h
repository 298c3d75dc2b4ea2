#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "model/format/safetensors_writer.h"

namespace systole::test {

/// A checkpoint file in the making, of F32 tensors with seeded values. Tests spoil parts of it
/// before they write it.
class SeededTensors {
 public:
  std::map<std::string, std::string> metadata;
  std::vector<model::TensorData> tensors;

  model::TensorData& tensor(const std::string& name) {
    return *std::find_if(tensors.begin(), tensors.end(),
                         [&](const model::TensorData& t) { return t.name == name; });
  }

  [[nodiscard]] std::vector<double> values(const std::string& name) const {
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const model::TensorData& t) { return t.name == name; });
    std::vector<float> stored(found->data.size() / sizeof(float));
    std::memcpy(stored.data(), found->data.data(), found->data.size());
    return {stored.begin(), stored.end()};
  }

  /// All elements of a tensor times `factor`.
  void scale(const std::string& name, float factor) {
    const std::vector<double> before = values(name);
    for (std::size_t i = 0; i < before.size(); ++i) {
      set(name, i, static_cast<float>(before[i]) * factor);
    }
  }

  void set(const std::string& name, std::size_t index, float value) {
    std::memcpy(tensor(name).data.data() + index * sizeof value, &value, sizeof value);
  }

  void remove(const std::string& name) {
    tensors.erase(std::remove_if(tensors.begin(), tensors.end(),
                                 [&](const model::TensorData& t) { return t.name == name; }),
                  tensors.end());
  }

  /// Values from `centre` - `spread` to `centre` + `spread`.
  void add(const std::string& name, const std::vector<std::size_t>& shape, double spread,
           double centre = 0.0) {
    std::size_t count = 1;
    for (const std::size_t n : shape) count *= n;
    std::vector<float> drawn(count);
    for (float& value : drawn) {
      const double uniform = static_cast<double>(engine_()) / 0xffffffff;
      value = static_cast<float>(centre + spread * (2.0 * uniform - 1.0));
    }
    tensors.push_back(model::make_tensor(name, model::FileDtype::kF32, shape, drawn));
  }
  void add_linear(const std::string& name, std::size_t outputs, std::size_t inputs) {
    add(name + ".weight", {outputs, inputs}, 0.5);
    add(name + ".bias", {outputs}, 0.2);
  }
  void add_norm(const std::string& name, std::size_t width, double spread = 0.3) {
    add(name + ".weight", {width}, spread, 1.0);
    add(name + ".bias", {width}, 0.2);
  }

  const std::string& write(const std::string& path) const {
    model::write_safetensors(path, tensors, metadata);
    return path;
  }

 private:
  std::mt19937 engine_{7};
};

}  // namespace systole::test
