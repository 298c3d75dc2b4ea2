#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hw/machine.h"
#include "model/dataset.h"
#include "model/graph.h"
#include "model/integer_vit.h"

namespace systole::testbench {

/// A vision model ready to run.
struct Network {
  model::IntegerVit vit;
  model::Graph graph;
};

/// Loads an integer model by name or path and checks that the machine's datapath can compute it.
/// Throws InputError.
[[nodiscard]] Network load_network(const std::string& name_or_path, const hw::Machine& machine);

/// "data/NAME" under the directory that the environment variable SYSTOLE_DATA names, else the one
/// fixed at build time.
[[nodiscard]] std::string data_file(const std::string& name);

/// The pictures that the models were trained for: data_file("digits.safetensors").
[[nodiscard]] std::string default_data();

/// Bytes of the graph's input tensor for each of the first `limit` pictures (all if 0). Throws
/// InputError if the pictures have another size than the model takes.
[[nodiscard]] std::vector<std::vector<std::uint8_t>> network_inputs(const Network& network,
                                                                    const model::Dataset& data,
                                                                    std::size_t limit);

/// Fraction of the outputs (bytes of the graph's output tensor, in the order of the pictures) whose
/// largest logit is the picture's label.
[[nodiscard]] double accuracy_of(const Network& network, const model::Dataset& data,
                                 const std::vector<std::vector<std::uint8_t>>& outputs);

}  // namespace systole::testbench
