#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

namespace systole::testbench {

/// An experiment that gives a document.
using Experiment = std::function<nlohmann::ordered_json()>;

/// Runs the experiments, each in a process of its own and as many at a time as the host has
/// processors. The documents are in the order of the experiments, whoever was done first. Throws
/// as ChildProcess::result().
[[nodiscard]] std::vector<nlohmann::ordered_json> run_side_by_side(
    const std::vector<Experiment>& experiments);

}  // namespace systole::testbench
