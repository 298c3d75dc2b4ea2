#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "hw/machine_file.h"
#include "hw/machine_keys.h"
#include "mapper/mapping.h"
#include "model/gpt.h"
#include "support/attention_run.h"
#include "support/paths.h"
#include "testbench/child_process.h"
#include "testbench/generation.h"
#include "testbench/matmul_graph.h"
#include "testbench/simulation.h"
#include "tests/testbench/docs_tables.h"
#include "tlm/core.h"

namespace systole::testbench {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = source_path("");

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<fs::path> pages() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "docs")) {
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// A place in a page that shows a table: "keys array", "counters bus".
struct Slot {
  fs::path page;
  std::string name;
  std::size_t begin, end;  ///< of the text between the markers
};

std::vector<Slot> slots_of(const fs::path& page, const std::string& text) {
  static const std::regex marker(
      "<!-- generated: ((keys|counters|stalls) [a-z0-9_]+|stages|array "
      "cycles) -->\n");
  static const std::string end = "<!-- end -->";
  std::vector<Slot> slots;
  for (std::sregex_iterator it(text.begin(), text.end(), marker), last; it != last; ++it) {
    const auto begin = static_cast<std::size_t>(it->position() + it->length());
    const std::size_t stop = text.find(end, begin);
    EXPECT_NE(stop, std::string::npos) << page << ": no " << end << " after " << it->str();
    if (stop != std::string::npos) slots.push_back({page, it->str(1), begin, stop});
  }
  return slots;
}

/// Every table by the name that its marker gives it.
using Tables = std::map<std::string, std::string>;

Tables code_tables() {
  Tables tables{{"stages", stages_table()}, {"array cycles", array_cycles_table()}};
  for (const hw::MachineKey& key : hw::machine_keys()) {
    const std::string section(hw::section_of(key.path));
    if (!section.empty()) tables.try_emplace("keys " + section, keys_table(section));
  }
  return tables;
}

/// Of a core for text generation, whose units all have the same names. In a process of its own: it
/// is another simulation.
Tables ring_tables() {
  const Bytes text = run_in_child([] {
    const hw::Machine machine = hw::find_machine("dfx");
    GenerationTask task;
    task.shape = model::gpt_shape("kjv");
    task.prompt = {0};
    const tlm_model::BlockReport report = generate(machine, task).blocks.front();
    const nlohmann::json tables = {{"counters dfx_core", counters_table(report)},
                                   {"stalls dfx_core", stalls_table(report)}};
    return nlohmann::json::to_msgpack(tables);
  });
  return nlohmann::json::from_msgpack(text).get<Tables>();
}

/// Those that only a run knows: the blocks of a machine and what they count.
Tables report_tables() {
  hw::Machine machine = hw::find_machine("tiny");
  machine.l2.kib = 16;
  machine.host.operators = hw::HostOperators::kFloat;
  const MatmulShape shape{8, 8, 8};
  const model::Graph graph = make_matmul_graph(shape, machine.datapath, false);
  const SimulationResult result =
      simulate(graph, mapper::map_graph(graph, machine), machine, tlm_model::make_models(machine),
               {matmul_input(shape)}, {});
  Tables tables;
  const auto add = [&](const tlm_model::BlockReport& report) {
    tables["counters " + report.name] = counters_table(report);
    tables["stalls " + report.name] = stalls_table(report);
  };
  for (const tlm_model::BlockReport& report : result.blocks) add(report);
  // A block that only some machines have.
  const hw::Machine engines = hw::find_machine("vitcod");
  const model::AttentionMask mask = test::synthetic_mask({1, 1, 4, 4}, 1);
  for (const tlm_model::BlockReport& report :
       test::time_attention(test::shape_of(mask, 8), test::split_by_cycles(mask, 8, engines),
                            engines)
           .blocks) {
    if (report.name == "attention") add(report);
  }
  return tables;
}

/// Every table stands in a page, and every page that shows one of `tables` shows it right.
void expect_in_pages(const Tables& tables) {
  std::set<std::string> shown;
  for (const fs::path& page : pages()) {
    const std::string text = read_text(page);
    for (const Slot& slot : slots_of(page, text)) {
      const auto table = tables.find(slot.name);
      if (table == tables.end()) continue;
      shown.insert(slot.name);
      EXPECT_EQ(text.substr(slot.begin, slot.end - slot.begin), table->second)
          << "put this between the markers `" << slot.name << "` of " << page << ":\n"
          << table->second;
    }
  }
  for (const auto& [name, table] : tables) {
    EXPECT_EQ(shown.count(name), 1U) << "no page shows `" << name << "`:\n" << table;
  }
}

TEST(Docs, ShowTheKeysStagesAndArrayCyclesOfTheCode) { expect_in_pages(code_tables()); }

TEST(Docs, ShowTheCountersAndStallCausesOfARunAndNothingUnknown) {
  Tables tables = ring_tables();  // first: a copy of this process must not have simulated yet
  tables.merge(report_tables());
  expect_in_pages(tables);
  tables.merge(code_tables());
  for (const fs::path& page : pages()) {
    for (const Slot& slot : slots_of(page, read_text(page))) {
      EXPECT_EQ(tables.count(slot.name), 1U) << page << " shows `" << slot.name << "`";
    }
  }
}

TEST(Docs, LinkOnlyToFilesThatExist) {
  static const std::regex link("\\]\\(([^)#]+)(#[^)]*)?\\)");
  std::vector<fs::path> all = pages();
  all.push_back(kSource / "README.md");
  all.push_back(kSource / "CONTRIBUTING.md");
  std::size_t checked = 0;
  for (const fs::path& page : all) {
    const std::string text = read_text(page);
    for (std::sregex_iterator it(text.begin(), text.end(), link), last; it != last; ++it) {
      const std::string target = it->str(1);
      if (target.find("://") != std::string::npos) continue;
      ++checked;
      EXPECT_TRUE(fs::exists(page.parent_path() / target)) << page << " links to " << target;
    }
  }
  EXPECT_GT(checked, 0U);
}

}  // namespace
}  // namespace systole::testbench
