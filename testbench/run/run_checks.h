#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "mapper/mapping.h"
#include "mapper/program_file.h"
#include "model/graph/graph.h"
#include "model/graph/reference.h"
#include "testbench/common/progress.h"
#include "testbench/run/result_rows.h"
#include "testbench/run/simulation.h"
#include "testbench/run/tensor_origin.h"
#include "tlm/host/host.h"

namespace systole::testbench {

/// Compares every tile that leaves the post-op unit with the reference, byte for byte.
class Checker {
 public:
  /// `origins`: in the reference's graph, by tensor of the mapped one; empty: it is the same graph.
  explicit Checker(std::vector<TensorOrigin> origins = {}) : origins_(std::move(origins)) {}

  /// Inference number `inference` runs by the program of this mapping. `reference` has run on the
  /// same input. Both outlive it.
  void begin(const mapper::Mapping& mapping, const model::Reference& reference,
             std::size_t inference);
  void end_command(std::uint32_t op);
  void compare(const WrittenRow& row);
  [[nodiscard]] const CheckResult& result() const noexcept { return result_; }

 private:
  /// What the row should be.
  [[nodiscard]] const std::uint8_t* expected(const WrittenRow& row);

  std::vector<TensorOrigin> origins_;
  std::vector<std::uint8_t> gathered_;  ///< expected(), of columns that are apart
  const mapper::Mapping* mapping_ = nullptr;
  const model::Reference* reference_ = nullptr;
  CheckResult result_;
  std::size_t inference_ = 0;
  std::vector<std::uint64_t> left_;  ///< by operator: commands that have not completed
};

/// The options that a reference for checks of this graph has.
[[nodiscard]] model::ReferenceOptions reference_options(const model::Graph& graph);
/// Runs the reference on the bytes of the graph's input tensor. `progress` as of the reference.
void run_reference(model::Reference& reference, const model::Graph& graph,
                   const std::vector<std::uint8_t>& input,
                   const std::function<void(std::size_t nodes)>& progress);

/// Keeps tensors as commands leave them in memory, inference after inference.
class Recorder {
 public:
  Recorder(const model::Graph& graph, const std::vector<model::TensorId>& tensors);

  void begin();
  void keep(const WrittenRow& row);
  [[nodiscard]] std::vector<std::vector<std::vector<std::uint8_t>>> take() {
    return std::move(kept_);
  }

 private:
  std::vector<std::vector<std::vector<std::uint8_t>>> kept_;  ///< by tensor and inference
  std::vector<std::size_t> index_;  ///< in `kept_`, by tensor of the graph
  std::vector<std::size_t> bytes_;  ///< of each tensor kept
};

/// Counts the operators of the reference, then the commands that have completed.
class CommandCount {
 public:
  CommandCount(const std::function<void(const SimulationProgress&)>& progress,
               std::size_t inferences)
      : progress_(progress) {
    now_.all_inferences = inferences;
  }
  /// What runs next: `commands` in each of the `left` inferences to come.
  void begin(std::size_t commands, std::size_t left) {
    now_.all_commands = now_.commands + std::uint64_t{commands} * left;
  }
  /// The commands of all inferences together.
  void begin_all(std::uint64_t commands) { now_.all_commands = commands; }
  /// Of the reference, before the commands.
  void reference(std::size_t done, std::size_t total);
  void end_inference() { ++now_.inferences; }
  void end_command();

 private:
  const std::function<void(const SimulationProgress&)>& progress_;
  SimulationProgress now_;
};

/// A tensor in DRAM as the host sees it: rows at a pitch. `bytes` may be null: zeros.
[[nodiscard]] std::vector<tlm_model::Host::Buffer> host_buffers(
    const mapper::TensorPlace& place, const std::vector<std::uint8_t>* bytes);

/// Their bytes, one after the other.
[[nodiscard]] std::vector<std::uint8_t> bytes_of(
    const std::vector<tlm_model::Host::Buffer>& buffers);

}  // namespace systole::testbench
