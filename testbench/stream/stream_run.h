#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/stream/stream_layer.h"
#include "model/format/safetensors_writer.h"
#include "testbench/run/simulation.h"
#include "tlm/stream/stream_system.h"

namespace systole::testbench {

/// What a streaming core runs, with seeded values.
struct StreamRequest {
  hw::stream::LayerShape shape;  ///< `hidden` 0: no feed-forward layer
  std::size_t heads = 1;         ///< one after the other; 0: no attention
  hw::stream::ActivationKind activation = hw::stream::ActivationKind::kGelu;
  /// A product of sequence x embedding by embedding x projection instead of the layers.
  bool product = false;
  bool bias = true;  ///< of the product
  bool functional = true;
  /// Leaves inputs and results in StreamResult::tensors, and operands and intermediate values whose
  /// names match the expression (testbench/run/tensor_file.h); empty: none of those.
  bool keep_tensors = false;
  std::string tensors;
};

struct StreamResult : MachineRun {
  struct Layer {
    std::string name;  ///< "attention", of a head, "feed-forward", "product"
    tlm_model::StreamUnit::Times times;
    [[nodiscard]] std::uint64_t cycles() const { return times.end - times.begin; }
  };
  std::vector<Layer> layers;               ///< in order of time
  std::uint64_t cycles = 0;                ///< from the first start to the last result
  std::uint64_t macs = 0;                  ///< of the sizes asked for
  CheckResult check;                       ///< results in memory against hw/stream/stream_layer.h
  std::vector<model::TensorData> tensors;  ///< [rows, columns], of biases [columns]
};

/// Refuses sizes that the core cannot take, in one line.
void check_stream_sizes(const StreamRequest& request, const hw::Machine& machine);

/// One simulation per process. Throws InputError for sizes that the core cannot take, and for an
/// expression that matches no tensor.
[[nodiscard]] StreamResult run_stream(const StreamRequest& request, const hw::Machine& machine);

}  // namespace systole::testbench
