#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "hw/function/gelu.h"
#include "hw/number/dyadic.h"
#include "model/format/safetensors_writer.h"
#include "model/network/network_document.h"

namespace systole::model {

/// An attribute that is a factor.
[[nodiscard]] inline nlohmann::ordered_json factor_json(hw::Dyadic factor) {
  return {factor.multiplier, factor.shift};
}
[[nodiscard]] inline nlohmann::ordered_json gelu_json(const hw::GeluConstants& gelu) {
  return {{"b", gelu.b}, {"c", gelu.c}, {"one", gelu.one}, {"factor", factor_json(gelu.output)}};
}

/// A network in the making. Every node's result is named like the node.
class NetworkWriter {
 public:
  /// An activation.
  struct Value {
    std::string type;
    NetworkShape shape;
    double scale = 0.0;  ///< 0: none
  };

  NetworkWriter(const std::string& name, const std::string& source);

  /// Makes it a network of integers.
  void set_datapath(const std::map<std::string, std::string>& datapath);
  void set_architecture(nlohmann::ordered_json architecture);
  /// Metadata kTokeniserKey.
  void set_tokeniser(std::string text) { tokeniser_ = std::move(text); }

  /// What the names of nodes and constants begin with from now on, besides those given; at first
  /// nothing.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  /// Each returns the name.
  std::string input(const std::string& name, const Value& value);
  std::string constant(TensorData tensor);
  /// A constant of the narrowest of F16, F32 and F64 that holds all values.
  std::string reals(const std::string& name, const std::vector<std::size_t>& shape,
                    const std::vector<double>& values);
  std::string node(const std::string& name, const char* op, const std::vector<std::string>& inputs,
                   const Value& value,
                   const nlohmann::ordered_json& attributes = nlohmann::ordered_json::object());

  /// Writes the file, whole or not at all, with that value as the output; throws InputError if it
  /// cannot be written.
  void write(const std::string& path, const std::string& output);
  /// The same as a file in memory, which errors call `path`.
  [[nodiscard]] NetworkFile file(const std::string& path, const std::string& output);

 private:
  void add_value(const std::string& name, const Value& value);
  [[nodiscard]] std::map<std::string, std::string> metadata(const std::string& output);

  nlohmann::ordered_json document_;
  std::string tokeniser_, prefix_;
  std::vector<TensorData> constants_;
};

}  // namespace systole::model
