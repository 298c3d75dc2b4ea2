#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

namespace systole::testbench {

/// An experiment that gives a document.
using Experiment = std::function<nlohmann::ordered_json()>;

/// Runs the experiments, each in a separate process and as many at a time as the host has
/// processors. The documents are in the order of the experiments, whoever was done first. Throws
/// as ChildProcess::result().
[[nodiscard]] std::vector<nlohmann::ordered_json> run_side_by_side(
    const std::vector<Experiment>& experiments);

/// Experiments, and where the document of each goes.
class ExperimentBatch {
 public:
  /// `document` must stay where it is until run() has returned.
  void add(nlohmann::ordered_json& document, Experiment experiment);
  /// Runs them side by side, those first that were added first.
  void run();

 private:
  std::vector<Experiment> experiments_;
  std::vector<nlohmann::ordered_json*> documents_;
};

}  // namespace systole::testbench
