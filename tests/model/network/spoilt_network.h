#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/format/safetensors.h"
#include "model/format/safetensors_writer.h"
#include "model/network/network_document.h"
#include "tests/support/temp_directory.h"

namespace systole::model {

/// A network file in memory, that a test spoils and writes.
class SpoiltNetwork {
 public:
  using json = nlohmann::json;

  explicit SpoiltNetwork(const std::string& path) {
    const Safetensors file = Safetensors::open(path);
    metadata = file.metadata();
    document = json::parse(metadata.at(kNetworkKey));
    for (const std::string& name : file.names()) {
      const TensorView& view = file.tensor(name);
      tensors[name] = {name, view.dtype, view.shape, {view.data, view.data + view.bytes}};
    }
  }

  json& node(const std::string& name) {
    for (json& entry : document["nodes"]) {
      if (entry["name"] == name) return entry;
    }
    throw std::out_of_range(name);
  }
  json& attributes(const std::string& name) { return node(name)["attributes"]; }
  /// Takes a node out, with its result and its constants.
  void erase(const std::string& name) {
    const json gone = node(name);
    for (const json& input : gone["inputs"]) tensors.erase(input.get<std::string>());
    document["tensors"].erase(gone["outputs"][0].get<std::string>());
    json& nodes = document["nodes"];
    nodes.erase(std::find(nodes.begin(), nodes.end(), gone));
  }
  void set(TensorData tensor) { tensors[tensor.name] = std::move(tensor); }

  /// "PATH = JSON" puts a value there, "PATH" alone takes it out: faults.txt.
  void change(const std::string& text) {
    const std::size_t equals = text.find(" = ");
    std::istringstream path(text.substr(0, equals));
    json* at = &document;
    json* parent = nullptr;
    std::string key;
    while (std::getline(path, key, '/')) {
      parent = at;
      at = key.rfind("nodes.", 0) == 0 ? &node(key.substr(6))
           : at->is_array()            ? &at->at(std::stoul(key))
                                       : &(*at)[key];
    }
    if (equals == std::string::npos) {
      parent->erase(key);
    } else {
      *at = json::parse(text.substr(equals + 3));
    }
  }

  /// `text` instead of the document, if there is one.
  std::string write(const std::string& path, const std::string& text = "") const {
    std::vector<TensorData> all;
    for (const auto& [name, tensor] : tensors) all.push_back(tensor);
    auto changed = metadata;
    if (metadata.count(kNetworkKey) != 0) {
      changed[kNetworkKey] = text.empty() ? document.dump() : text;
    }
    write_safetensors(path, all, changed);
    return path;
  }

  std::map<std::string, std::string> metadata;
  json document;
  std::map<std::string, TensorData> tensors;
};

}  // namespace systole::model
