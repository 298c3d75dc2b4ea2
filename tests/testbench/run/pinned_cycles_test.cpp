/// What the networks that come with Systole take on every preset is what tests/golden/cycles.csv
/// has. A change of these figures has to be meant: script/pin_cycles writes the table anew.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "hw/description/machine_file.h"
#include "model/model_files.h"
#include "support/paths.h"
#include "support/temp_directory.h"
#include "support/text_lines.h"
#include "testbench/common/text.h"
#include "tests/support/program/program_run.h"

namespace systole::testbench {
namespace {

const std::vector<std::string> kPresets = {
    "dfx",    "dfx-ideal", "gemmini", "gemmini-bare", "gemmini-firesim", "ita",
    "sanger", "spatten",   "survey",  "tiny",         "transformer",     "vitcod"};

/// Models with other integer functions than a preset's run there once they are quantised for it.
const std::vector<std::string> kRequantised = {"vit17", "vit17-post", "vit65"};

constexpr const char* kTableTitle =
    R"(# One inference of every network in traces/models on every preset, `systole run -n 1`: its cycles, and the
# bytes that the core moves. "requantised": after `systole quantise NETWORK -m MACHINE`.
# kjv: `systole generate -p "In the beginning " -n 16`: picoseconds, the bytes that core 0 reads from HBM,
# and those over all links. refused: what the program says instead.
# Written by script/pin_cycles, compared by tests/testbench/run/pinned_cycles_test.cpp.
machine,network,time,unit,read_bytes,written_bytes,refused
)";

/// A field of a CSV file.
std::string csv_field(const std::string& text) {
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? std::string(2, c) : std::string(1, c);
  return field + '"';
}

/// The table's row for one run of the program, which begins with `subject`. The text that the run
/// prints has to say the same.
std::string row_of_run(const std::string& subject, std::vector<std::string> arguments) {
  const TempDirectory directory;
  arguments.insert(arguments.end(), {"--stats", directory.path("stats.json")});
  const ProgramRun run = run_systole(arguments);
  if (run.exit_code != 0) {
    EXPECT_EQ(run.exit_code, 2) << subject;
    const std::string begin = "systole: ";
    EXPECT_EQ(run.err.substr(0, begin.size()), begin);
    const std::vector<std::string> lines = lines_of(run.err.substr(begin.size()));
    EXPECT_EQ(lines.size(), 1U) << run.err;
    return subject + ",,,,," + csv_field(lines.empty() ? "" : lines.front());
  }
  const nlohmann::json stats = document_of(read_file(directory.path("stats.json")));
  const auto row = [&](std::uint64_t time, const char* unit, std::uint64_t read,
                       std::uint64_t written) {
    return subject + "," + std::to_string(time) + "," + unit + "," + std::to_string(read) + "," +
           std::to_string(written) + ",";
  };
  const auto expect_said = [&](const std::string& words) {
    EXPECT_NE(run.out.find(words), std::string::npos) << words << " is not in\n" << run.out;
  };
  if (arguments.front() == "generate") {
    std::uint64_t over_links = 0;
    for (const std::uint64_t bytes : stats["link_bytes"]) over_links += bytes;
    return row(static_cast<std::uint64_t>(std::llround(stats["milliseconds"].get<double>() * 1e9)),
               "ps", stats["hbm_read_bytes"], over_links);
  }
  const auto cycles = static_cast<std::uint64_t>(stats["cycles"].get<double>());
  const std::uint64_t read = stats["dram_read_bytes"], written = stats["dram_write_bytes"];
  expect_said("\ncycles       " + grouped(cycles) + " (");
  expect_said("\ntraffic      " + grouped(read) + " bytes read, " + grouped(written) + " written");
  return row(cycles, "cycles", read, written);
}

std::string row_of_requantised(const std::string& preset, const std::string& network) {
  const TempDirectory directory;
  const std::string path = directory.path(network + ".int8.safetensors");
  output_of({"quantise", network, "-m", preset, "-o", path});
  return row_of_run(preset + "," + network + " requantised",
                    {"run", "-m", preset, "--model", path, "-n", "1"});
}

std::vector<std::string> rows_of_preset(const std::string& preset) {
  std::vector<std::string> rows;
  for (const std::string& network : model::model_names()) {
    rows.push_back(
        row_of_run(preset + "," + network, {"run", "-m", preset, "--model", network, "-n", "1"}));
    if (rows.back().find("quantise it for this machine") != std::string::npos &&
        std::find(kRequantised.begin(), kRequantised.end(), network) != kRequantised.end()) {
      rows.push_back(row_of_requantised(preset, network));
    }
  }
  const std::vector<std::string> generate = {"generate",          "-m", preset, "-p",
                                             "In the beginning ", "-n", "16"};
  if (hw::find_machine(preset).dfx.cores == 0) {
    rows.push_back(row_of_run(preset + ",kjv", generate));
  } else {
    for (const std::string cores : {"1", "2", "4"}) {
      std::vector<std::string> on_cores = generate;
      on_cores.insert(on_cores.end(), {"--cores", cores});
      rows.push_back(row_of_run(preset + ",kjv --cores " + cores, on_cores));
    }
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::string text_of_rows(const std::vector<std::string>& rows) {
  std::string text;
  for (const std::string& row : rows) text += row + "\n";
  return text;
}

class PinnedCycles : public ::testing::TestWithParam<std::string> {
 protected:
  PinnedCycles() : path_(source_path("tests/golden/cycles.csv")) {}

  /// The table's rows of this test's preset, or of all others.
  [[nodiscard]] std::vector<std::string> table_rows(bool own) const {
    std::vector<std::string> rows;
    if (!std::filesystem::exists(path_)) return rows;
    for (const std::string& line : lines_of(read_file(path_))) {
      const std::string preset = line.substr(0, line.find(','));
      if (line.front() == '#' || preset == "machine") continue;
      if ((preset == GetParam()) == own) rows.push_back(line);
    }
    return rows;
  }

  void replace_rows(const std::vector<std::string>& fresh) const {
    std::set<std::string> rows(fresh.begin(), fresh.end());
    for (const std::string& row : table_rows(false)) rows.insert(row);
    hw::write_file_atomically(path_, kTableTitle + text_of_rows({rows.begin(), rows.end()}));
  }

  const std::string path_;
};

TEST_P(PinnedCycles, AreThoseOfTheTable) {
  const std::vector<std::string> fresh = rows_of_preset(GetParam());
  if (std::getenv("SYSTOLE_UPDATE_PINNED") != nullptr && !HasFailure()) replace_rows(fresh);
  EXPECT_EQ(text_of_rows(table_rows(true)), text_of_rows(fresh))
      << "if the change is meant, run script/pin_cycles, or put these rows into " << path_ << ":\n"
      << text_of_rows(fresh);
}

INSTANTIATE_TEST_SUITE_P(Presets, PinnedCycles, ::testing::ValuesIn(kPresets),
                         [](const auto& preset) {
                           std::string name = preset.param;
                           name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
                           return name;
                         });

TEST(PinnedTable, KnowsEveryPreset) {
  std::set<std::string> presets;
  for (const auto& file : std::filesystem::directory_iterator(source_path("traces/machines"))) {
    presets.insert(file.path().stem().string());
  }
  EXPECT_EQ(presets, std::set<std::string>(kPresets.begin(), kPresets.end()))
      << "a new preset goes into kPresets; then run script/pin_cycles";
}

}  // namespace
}  // namespace systole::testbench
