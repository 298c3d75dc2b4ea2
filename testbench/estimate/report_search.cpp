#include "testbench/estimate/report_search.h"

#include <fmt/format.h>

#include <numeric>
#include <vector>

#include "hw/description/machine_keys.h"
#include "testbench/common/text.h"

namespace systole::testbench {
namespace {

using Align = Table::Align;

std::string_view objective_name(const MappingSearch& search) {
  return hw::find_machine_key("mapper.objective")
      ->words[static_cast<std::size_t>(search.objective)];
}

std::uint64_t tried(const MappingSearch& search) {
  return std::accumulate(
      search.candidates.begin(), search.candidates.end(), std::uint64_t{0},
      [](std::uint64_t sum, const MappingCandidate& candidate) { return sum + candidate.tried; });
}

std::string cycles_text(const MappingCost& cost) {
  return grouped(static_cast<std::uint64_t>(cost.cycles));
}
std::string energy_of(const MappingCost& cost) { return fmt::format("{:.1f}", cost.joules * 1e6); }

/// How much more the simulation took than was expected.
std::string more_than(double simulated, double expected) {
  return fmt::format("{:+.1f}%", 100 * (simulated / expected - 1));
}

}  // namespace

std::string search_text(const MappingSearch& search) {
  FactList facts;
  facts.add("search", fmt::format("for {}: {}, {} compared", objective_name(search),
                                  counted(search.candidates.size(), "mapping"),
                                  counted(tried(search), "tiling")));
  facts.add("best", fmt::format("{}, fusion {}", search.chosen().strategy_name(),
                                search.chosen().fusion_name()));
  Table table({{"mapping"},
               {"fusion"},
               {"cycles", Align::kRight},
               {"simulated", Align::kRight},
               {"", Align::kRight},
               {"uJ", Align::kRight},
               {"simulated", Align::kRight},
               {"", Align::kRight}});
  for (const MappingCandidate& candidate : search.candidates) {
    std::vector<std::string> row(8);
    row[0] = candidate.strategy_name();
    row[1] = candidate.fusion_name();
    row[2] = cycles_text(candidate.expected);
    row[5] = energy_of(candidate.expected);
    if (candidate.simulated) {
      row[3] = cycles_text(*candidate.simulated);
      row[4] = more_than(candidate.simulated->cycles, candidate.expected.cycles);
      row[6] = energy_of(*candidate.simulated);
      row[7] = more_than(candidate.simulated->joules, candidate.expected.joules);
    }
    table.add(row);
  }
  return facts.text() + "\n" + table.text();
}

nlohmann::ordered_json search_json(const MappingSearch& search) {
  nlohmann::ordered_json document{{"objective", objective_name(search)},
                                  {"tilings", tried(search)},
                                  {"best", search.best},
                                  {"candidates", nlohmann::ordered_json::array()}};
  for (const MappingCandidate& candidate : search.candidates) {
    nlohmann::ordered_json entry{{"mapping", candidate.strategy_name()},
                                 {"fusion", candidate.fusion_name()},
                                 {"expected_cycles", candidate.expected.cycles},
                                 {"expected_energy_j", candidate.expected.joules}};
    if (candidate.simulated) {
      entry["cycles"] = candidate.simulated->cycles;
      entry["energy_j"] = candidate.simulated->joules;
    }
    document["candidates"].push_back(entry);
  }
  return document;
}

}  // namespace systole::testbench
