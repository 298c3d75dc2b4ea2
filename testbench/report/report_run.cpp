#include "testbench/report/report_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/printable.h"
#include "testbench/common/text.h"
#include "testbench/report/report_model.h"

namespace systole::testbench {
namespace {

/// Smaller shares show as 0.0 %.
constexpr double kVisibleShare = 0.0005;

std::string cycles_text(const Measurement& measurement) {
  const auto& cycles = measurement.result.cycles;
  const auto [least, most] = std::minmax_element(cycles.begin(), cycles.end());
  const double hertz = measurement.machine.core.clock_mhz * 1e6;
  const std::string time =
      fmt::format("({} at {} MHz)", with_prefix(measurement.mean_cycles() / hertz, "s"),
                  measurement.machine.core.clock_mhz);
  if (cycles.size() == 1) return grouped(*least) + " " + time;
  const auto mean = static_cast<std::uint64_t>(std::llround(measurement.mean_cycles()));
  return fmt::format("{} mean, {} min, {} max {}", grouped(mean), grouped(*least), grouped(*most),
                     time);
}

std::string generation_text(const Measurement& measurement) {
  const double cycles = measurement.mean_cycles() * static_cast<double>(measurement.images());
  const double seconds = cycles / (measurement.machine.core.clock_mhz * 1e6);
  return fmt::format("{} in {}, {}",
                     counted(static_cast<std::uint64_t>(std::llround(cycles)), "cycle"),
                     with_prefix(seconds, "s"),
                     with_prefix(static_cast<double>(measurement.images()) / seconds, "tokens/s"));
}

std::string check_text(const Measurement& measurement) {
  const CheckResult& check = measurement.result.check;
  if (!measurement.checked) return "not checked against the reference";
  std::string text = fmt::format("{} of {}, {}", counted(check.bytes, "byte"),
                                 counted(check.operators, "operator"),
                                 counted(check.mismatches, "mismatch", "mismatches"));
  if (!check.first.empty()) text += "; first: " + check.first;
  return text;
}

std::string energy_text(const Measurement& measurement) {
  const hw::EnergyReport energy = measurement.energy();
  const double total = energy.total();
  std::vector<std::pair<const char*, double>> causes{
      {"DRAM", energy.dram},      {"scratchpad", energy.scratchpad},
      {"array", energy.mac},      {"accumulator", energy.accumulator},
      {"post-op", energy.postop}, {"bus", energy.bus},
      {"L2", energy.l2},          {"host", energy.host},
      {"leakage", energy.leakage}};
  std::stable_sort(causes.begin(), causes.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text = with_prefix(total, "J");
  const char* separator = " (";
  for (const auto& [name, joules] : causes) {
    if (joules <= 0.0) continue;
    text += fmt::format("{}{} {}", separator, name, percent(joules / total));
    separator = ", ";
  }
  return text + (total > 0.0 ? ")" : "");
}

/// By size.
std::string classes_text(const ClassCycles& classes) {
  std::vector<std::pair<std::string, double>> shares;
  for (std::size_t i = 0; i < kTimeClasses; ++i) {
    const auto kind = static_cast<TimeClass>(i);
    if (classes.share(kind) > 0.0) shares.emplace_back(name_of(kind), classes.share(kind));
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [name, share] : shares) {
    text += (text.empty() ? "" : ", ") + name + " " + percent(share);
  }
  return text;
}

std::string stall_text(const hw::TimeAccount& account) {
  auto causes = account.stalled;
  std::stable_sort(causes.begin(), causes.end(),
                   [](const auto& a, const auto& b) { return a.time > b.time; });
  std::string text;
  for (const auto& [cause, meaning, time] : causes) {
    const double share = static_cast<double>(time) / static_cast<double>(account.total);
    if (share < kVisibleShare) continue;
    text += fmt::format("{}{} {:.1f}", text.empty() ? "" : ", ", cause, 100.0 * share);
  }
  return text.empty() ? "-" : text;
}

}  // namespace

std::string rtl_table(const RtlReport& report) {
  using Align = Table::Align;
  Table table({{"block in RTL"},
               {"operations", Align::kRight},
               {"cycles", Align::kRight},
               {"mismatches", Align::kRight}});
  for (const auto& [block, counts] : report) {
    table.add(
        {block, grouped(counts.operations), grouped(counts.cycles), grouped(counts.mismatches)});
  }
  return table.text();
}

std::string block_table(const std::vector<hw::BlockReport>& blocks) {
  using Align = Table::Align;
  Table table({{"block"},
               {"busy %", Align::kRight},
               {"idle %", Align::kRight},
               {"stalled %", Align::kRight},
               {"stalled by cause (% of all time)"}});
  for (const hw::BlockReport& block : hw::accounts_of(blocks)) {
    const hw::TimeAccount& account = *block.time;
    const auto share = [&](std::uint64_t time) {
      return account.total == 0 ? std::string("-")
                                : fmt::format("{:.1f}", 100.0 * static_cast<double>(time) /
                                                            static_cast<double>(account.total));
    };
    table.add({block.name, share(account.busy), share(account.idle), share(account.stalled_total()),
               account.total == 0 ? "-" : stall_text(account)});
  }
  return table.text();
}

std::string report_text(const Measurement& measurement, const std::vector<std::string>& files,
                        const std::vector<std::pair<std::string, std::string>>& more) {
  const hw::Machine& machine = measurement.machine;
  const SimulationResult& result = measurement.result;
  FactList facts;
  facts.add("machine", fmt::format("{} ({} x {} array, {} MHz)", machine.name, machine.array.rows,
                                   machine.array.cols, machine.core.clock_mhz));
  facts.add("model",
            fmt::format("{} ({} MAC per inference)", measurement.model, grouped(measurement.macs)));
  if (measurement.size) {
    facts.add("shape", size_text(*measurement.size));
    facts.add("weights", "seeded: no accuracy");
  }
  facts.add("inferences", fmt::format("{}{}", grouped(measurement.images()),
                                      measurement.functional ? "" : ", timing only"));
  if (measurement.accuracy) {
    facts.add("accuracy", fmt::format("{:.2f}%", 100.0 * *measurement.accuracy));
  }
  if (measurement.functional) facts.add("check", check_text(measurement));
  facts.add("cycles", cycles_text(measurement));
  if (measurement.bound() > 0) {
    facts.add("bound",
              fmt::format("{} cycles for any mapping; this one takes {:.2f} times that",
                          grouped(static_cast<std::uint64_t>(std::llround(measurement.bound()))),
                          measurement.mean_cycles() / measurement.bound()));
  }
  if (measurement.past) {
    facts.add("all tokens", generation_text(measurement));
  }
  for (const auto& [label, value] : more) facts.add(label, value);
  if (const std::string classes = classes_text(result.classes); !classes.empty()) {
    facts.add("time", classes);
  }
  facts.add("utilisation", percent(measurement.utilisation()) + " of the array's MACs");
  const tlm_model::System::Traffic traffic = measurement.traffic();
  facts.add("traffic",
            fmt::format("{} read, {} written by the core per inference",
                        counted(traffic.read_bytes, "byte"), grouped(traffic.written_bytes)));
  facts.add("energy", energy_text(measurement));
  facts.add("simulation", fmt::format("{} in {}, {}", counted(result.total_cycles, "cycle"),
                                      with_prefix(result.wall_seconds, "s"),
                                      with_prefix(measurement.cycles_per_second(), "cycles/s")));
  for (const std::string& file : files) {
    if (!file.empty()) facts.add("written", hw::printable(file));
  }
  std::string text = facts.text() + "\n" + block_table(result.blocks);
  if (!measurement.rtl.empty()) text += "\n" + rtl_table(measurement.rtl);
  return text;
}

}  // namespace systole::testbench
