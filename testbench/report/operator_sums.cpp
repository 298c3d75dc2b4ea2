#include "testbench/report/operator_sums.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace systole::testbench {

using analysis::OperatorEstimate;

void OperatorSum::add(const OperatorEstimate& estimate, const OperatorTiming* timing) {
  ++count;
  macs += estimate.macs;
  read_bytes += estimate.read_bytes;
  written_bytes += estimate.written_bytes;
  bound.array += estimate.bound.array;
  bound.memory += estimate.bound.memory;
  bound.postop += estimate.bound.postop;
  bound.host += estimate.bound.host;
  slowest += estimate.bound.cycles();
  expected += estimate.expected_cycles;
  expected_loads += estimate.expected_loads;
  loads += estimate.loads;
  if (timing == nullptr) return;
  simulated += timing->cycles;
  events.add(timing->events);
  for (std::size_t i = 0; i < kCauses; ++i) causes[i] += timing->causes[i];
}

std::vector<OperatorSum> sum_operators(const std::vector<OperatorEstimate>& estimates,
                                       const std::vector<OperatorTiming>& timings) {
  std::vector<OperatorSum> sums;
  OperatorSum total;
  total.name = "total";
  for (std::size_t i = 0; i < estimates.size(); ++i) {
    const OperatorTiming* const timing = timings.empty() ? nullptr : &timings[i];
    const std::string name = analysis::general_name(estimates[i].name);
    auto sum =
        std::find_if(sums.begin(), sums.end(), [&](const auto& s) { return s.name == name; });
    if (sum == sums.end()) {
      sum = sums.emplace(sums.end());
      sum->name = name;
    }
    sum->add(estimates[i], timing);
    total.add(estimates[i], timing);
  }
  sums.push_back(std::move(total));
  return sums;
}

nlohmann::ordered_json to_json(const OperatorSum& sum, bool simulated) {
  nlohmann::ordered_json object{{"name", sum.name},
                                {"operators", sum.count},
                                {"macs", sum.macs},
                                {"read_bytes", sum.read_bytes},
                                {"written_bytes", sum.written_bytes},
                                {"array_cycles", sum.bound.array},
                                {"memory_cycles", sum.bound.memory},
                                {"postop_cycles", sum.bound.postop},
                                {"host_cycles", sum.bound.host},
                                {"slowest_cycles", sum.slowest},
                                {"bound_by", name_of(sum.bound.resource())},
                                {"expected_cycles", sum.expected},
                                {"expected_load_bytes", sum.expected_loads}};
  if (!simulated) return object;
  object["simulated_cycles"] = sum.simulated;
  object["load_bytes"] = sum.loads;
  nlohmann::ordered_json& causes = object["causes"] = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < kCauses; ++i) {
    causes[std::string(name_of(static_cast<Cause>(i)))] = sum.causes[i];
  }
  return object;
}

}  // namespace systole::testbench
