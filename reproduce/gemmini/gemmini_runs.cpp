/// The measured runs, and ours.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/accounting.h"
#include "base/error.h"
#include "base/printable.h"
#include "hw/description/machine_file.h"
#include "hw/description/machine_rules.h"
#include "mapper/mapping.h"
#include "reproduce/gemmini/gemmini.h"
#include "testbench/common/side_by_side.h"
#include "testbench/run/simulation.h"
#include "tlm/core/core.h"

namespace systole::testbench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostLines = 100'000;

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> words(1);
  for (const char c : line) {
    if (c == ',') {
      words.emplace_back();
    } else if (c != '\r') {
      words.back() += c;
    }
  }
  return words;
}

/// A file with a line of names.
class Lines {
 public:
  explicit Lines(const std::string& path) : path_(path), file_(path) {
    if (!file_) throw hw::InputError(hw::printable(path) + ": cannot read");
    next();
    names_ = words_;
  }
  bool next() {
    std::string line;
    if (!std::getline(file_, line)) return false;
    ++number_;
    words_ = split(line);
    if (number_ > 1 && words_.size() != names_.size()) {
      fail(fmt::format("{} values, expected {}", words_.size(), names_.size()));
    }
    if (number_ > kMostLines) fail(fmt::format("expected at most {} lines", kMostLines));
    return true;
  }
  [[nodiscard]] const std::string& text(std::string_view name) const {
    const auto at = std::find(names_.begin(), names_.end(), name);
    if (at == names_.end()) {
      throw hw::InputError(
          fmt::format("{}:1: no column {}, expected runs on RTL", hw::printable(path_), name));
    }
    return words_[static_cast<std::size_t>(at - names_.begin())];
  }
  [[nodiscard]] std::uint64_t number(std::string_view name, std::uint64_t most) const {
    const std::string& word = text(name);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value < 1 || value > most) {
      fail(fmt::format("{}: found '{}', expected 1 to {}", name, hw::printable(word), most));
    }
    return value;
  }
  [[nodiscard]] bool is(std::string_view name, std::string_view yes, std::string_view no) const {
    const std::string& word = text(name);
    if (word != yes && word != no) {
      fail(fmt::format("{}: found '{}', expected {} or {}", name, hw::printable(word), yes, no));
    }
    return word == yes;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw hw::InputError(fmt::format("{}:{}: {}", hw::printable(path_), number_, what));
  }

 private:
  const std::string path_;
  std::ifstream file_;
  std::size_t number_ = 0;
  std::vector<std::string> names_, words_;
};

Json run_product(const RtlRun& run) {
  hw::Machine machine = hw::find_machine("gemmini-bare");
  machine.memory.latency = run.latency;
  machine.memory.read_beat_cycles = run.beat_cycles;
  machine.unroller.command_cycles = run.gap;
  hw::validate(machine);
  const model::Graph graph = make_matmul_graph(run.shape, machine.datapath, false, run.result);
  const mapper::Mapping mapping = mapper::map_graph(graph, machine);
  SimulationOptions options;
  options.check = true;
  const SimulationResult result = simulate(graph, mapping, machine, tlm_model::make_models(machine),
                                           {matmul_input(run.shape)}, options);
  const auto counted = [&](const char* name) {
    return hw::counter_of(result.blocks, "loops", name);
  };
  return {{"cycles", result.cycles.front()},           {"reads", counted("read_requests")},
          {"read_bytes", counted("read_bytes")},       {"writes", counted("write_requests")},
          {"written_bytes", counted("written_bytes")}, {"mismatches", result.check.mismatches}};
}

}  // namespace

std::string RtlRun::name() const {
  return fmt::format("{}x{}x{}{}{}, latency {}, beat {}, gap {}", shape.m, shape.n, shape.k,
                     result.requantised ? "" : " int32", result.bias ? " bias" : "", latency,
                     beat_cycles, gap);
}

double RtlRun::error() const {
  return static_cast<double>(ours.cycles) / static_cast<double>(rtl.cycles) - 1.0;
}

std::vector<RtlRun> read_rtl_runs(const std::string& path) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  Lines lines(path);
  std::vector<RtlRun> runs;
  while (lines.next()) {
    RtlRun run;
    try {
      run.shape = parse_matmul_shape(lines.text("MxNxK"));
    } catch (const hw::InputError& error) {
      lines.fail(error.what());
    }
    run.result.bias = lines.is("bias", "bias", "none");
    run.result.requantised = lines.is("output", "int8", "int32");
    run.latency = static_cast<std::uint32_t>(lines.number("latency", 10000));
    run.beat_cycles = static_cast<std::uint32_t>(lines.number("beat_cycles", 64));
    run.gap = static_cast<std::uint32_t>(lines.number("gap", 100000));
    run.rtl.cycles = lines.number("cycles", kMost);
    run.rtl.reads = lines.number("read_requests", kMost);
    run.rtl.read_bytes = lines.number("read_bytes", kMost);
    run.rtl.writes = lines.number("write_requests", kMost);
    run.rtl.written_bytes = lines.number("write_bytes", kMost);
    runs.push_back(run);
  }
  if (runs.empty()) throw hw::InputError(hw::printable(path) + ": no runs, expected one at least");
  return runs;
}

void run_ours(std::vector<RtlRun>& runs) {
  std::vector<Experiment> experiments;
  for (const RtlRun& run : runs) {
    experiments.emplace_back([&run] { return run_product(run); });
  }
  const std::vector<Json> documents = run_side_by_side(experiments);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Json& document = documents[i];
    RtlRun::Counts& ours = runs[i].ours;
    document.at("cycles").get_to(ours.cycles);
    document.at("reads").get_to(ours.reads);
    document.at("read_bytes").get_to(ours.read_bytes);
    document.at("writes").get_to(ours.writes);
    document.at("written_bytes").get_to(ours.written_bytes);
    document.at("mismatches").get_to(runs[i].mismatches);
  }
}

}  // namespace systole::testbench
