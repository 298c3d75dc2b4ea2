#include "testbench/common/side_by_side.h"

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>

#include "testbench/common/child_process.h"
#include "testbench/common/progress.h"

namespace systole::testbench {

std::vector<nlohmann::ordered_json> run_side_by_side(const std::vector<Experiment>& experiments) {
  const std::size_t most = std::max(1U, std::thread::hardware_concurrency());
  std::deque<ChildProcess> running;
  std::vector<nlohmann::ordered_json> documents;
  BatchProgress* const progress = BatchProgress::current();
  const auto take_first = [&] {
    if (progress != nullptr) progress->simulations(documents.size(), experiments.size());
    documents.push_back(nlohmann::ordered_json::from_msgpack(running.front().result()));
    running.pop_front();
  };
  for (const Experiment& experiment : experiments) {
    if (running.size() == most) take_first();
    running.emplace_back([&] { return nlohmann::ordered_json::to_msgpack(experiment()); });
  }
  while (!running.empty()) take_first();
  return documents;
}

void ExperimentBatch::add(nlohmann::ordered_json& document, Experiment experiment) {
  experiments_.push_back(std::move(experiment));
  documents_.push_back(&document);
}

void ExperimentBatch::run() {
  std::vector<nlohmann::ordered_json> found = run_side_by_side(experiments_);
  for (std::size_t i = 0; i < found.size(); ++i) *documents_[i] = std::move(found[i]);
}

}  // namespace systole::testbench
