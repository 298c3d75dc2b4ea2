#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/description/machine_keys.h"
#include "mapper/mapping.h"
#include "model/float/gpt.h"
#include "model/network/network_ops.h"
#include "support/network/attention_run.h"
#include "support/paths.h"
#include "support/program/program_run.h"
#include "testbench/common/child_process.h"
#include "testbench/generation/generation.h"
#include "testbench/network/matmul_graph.h"
#include "testbench/run/simulation.h"
#include "testbench/stream/stream_run.h"
#include "tests/testbench/docs/docs_tables.h"
#include "tlm/core/core.h"

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

/// The pages, README and CONTRIBUTING.
std::vector<fs::path> all_pages() {
  std::vector<fs::path> found = pages();
  found.push_back(kSource / "README.md");
  found.push_back(kSource / "CONTRIBUTING.md");
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
      "<!-- generated: ((keys|counters|stalls) [a-z0-9_]+|stages|network ops|array "
      "cycles|instruction fields) -->\n");
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
  Tables tables{{"stages", stages_table()},
                {"array cycles", array_cycles_table()},
                {"network ops", network_ops_table()},
                {"instruction fields", instruction_fields_table()}};
  for (const hw::MachineKey& key : hw::machine_keys()) {
    const std::string section(hw::section_of(key.path));
    if (!section.empty()) tables.try_emplace("keys " + section, keys_table(section));
  }
  return tables;
}

/// Of a core for text generation, whose units all have the same names. In a separate process: it
/// is another simulation.
Tables ring_tables() {
  const Bytes text = run_in_child([] {
    const hw::Machine machine = hw::find_machine("dfx");
    GenerationTask task;
    task.shape = model::gpt_shape("kjv");
    task.prompt = {0};
    const hw::BlockReport report = generate(machine, task).blocks.front();
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
  const auto add = [&](const hw::BlockReport& report) {
    tables["counters " + report.name] = counters_table(report);
    tables["stalls " + report.name] = stalls_table(report);
  };
  for (const hw::BlockReport& report : result.blocks) add(report);
  // A block that only some machines have.
  const hw::Machine engines = hw::find_machine("vitcod");
  const model::AttentionMask mask = test::synthetic_mask({1, 1, 4, 4}, 1);
  for (const hw::BlockReport& report :
       test::time_attention(test::shape_of(mask, 8), test::split_by_cycles(mask, 8, engines),
                            engines)
           .blocks) {
    if (report.name == "attention") add(report);
  }
  return tables;
}

/// Of these blocks of a machine, in a separate process too.
Tables block_tables(const hw::Machine& machine, const std::set<std::string>& blocks) {
  const Bytes text = run_in_child([&] {
    const MatmulShape shape{16, 16, 16};
    const model::Graph graph = make_matmul_graph(shape, machine.datapath, false);
    const SimulationResult result =
        simulate(graph, mapper::map_graph(graph, machine), machine, tlm_model::make_models(machine),
                 {matmul_input(shape)}, {});
    nlohmann::json tables;
    for (const hw::BlockReport& report : result.blocks) {
      if (blocks.count(report.name) == 0) continue;
      tables["counters " + report.name] = counters_table(report);
      tables["stalls " + report.name] = stalls_table(report);
    }
    return nlohmann::json::to_msgpack(tables);
  });
  return nlohmann::json::from_msgpack(text).get<Tables>();
}

/// Of a core with a loop unroller and a memory of fixed latency.
Tables loop_tables() { return block_tables(hw::find_machine("gemmini-bare"), {"loops", "memory"}); }

Tables mesh_tables() {
  hw::Machine machine = hw::find_machine("tiny");
  machine.noc.columns = machine.noc.rows = 2;
  return block_tables(machine, {"noc"});
}

/// Of a streaming core.
Tables stream_tables() {
  const Bytes text = run_in_child([] {
    StreamRequest request;
    request.shape = {64, 64, 64, 0};
    nlohmann::json tables;
    for (const hw::BlockReport& report : run_stream(request, hw::find_machine("ita")).blocks) {
      tables["counters " + report.name] = counters_table(report);
      tables["stalls " + report.name] = stalls_table(report);
    }
    return nlohmann::json::to_msgpack(tables);
  });
  return nlohmann::json::from_msgpack(text).get<Tables>();
}

/// Every table is in a page, and every page that shows one of `tables` shows it right.
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
  // First: a copy of this process must not have simulated yet.
  Tables tables = ring_tables();
  tables.merge(loop_tables());
  tables.merge(mesh_tables());
  tables.merge(stream_tables());
  tables.merge(report_tables());
  expect_in_pages(tables);
  tables.merge(code_tables());
  for (const fs::path& page : pages()) {
    for (const Slot& slot : slots_of(page, read_text(page))) {
      EXPECT_EQ(tables.count(slot.name), 1U) << page << " shows `" << slot.name << "`";
    }
  }
}

TEST(Docs, HaveTheSchemaOfNetworkFiles) {
  const fs::path page = kSource / "docs/network-schema.json";
  const std::string schema = model::network_schema().dump(1) + "\n";
  EXPECT_EQ(read_text(page), schema) << "put this into " << page << ":\n" << schema;
}

TEST(Docs, LinkOnlyToFilesThatExist) {
  static const std::regex link("\\]\\(([^)#]+)(#[^)]*)?\\)");
  std::size_t checked = 0;
  for (const fs::path& page : all_pages()) {
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

/// The text between two backticks of a line.
std::vector<std::string> quoted_in(const std::string& text) {
  static const std::regex quoted("`([^`\n]+)`");
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), quoted), last; it != last; ++it) {
    found.push_back(it->str(1));
  }
  return found;
}

TEST(Docs, NameOnlyFilesThatExist) {
  static const std::regex path("[a-z0-9_]+/[A-Za-z0-9_./-]*");
  static const std::regex placeholder("(^|[^A-Za-z])(NAME|DIR|FILE)([^A-Za-z]|$)");
  // What is there after a build alone.
  static const std::regex built("build/.*");
  std::set<std::string> folders;
  for (const auto& entry : fs::directory_iterator(kSource)) {
    if (entry.is_directory()) folders.insert(entry.path().filename().string());
  }
  std::size_t checked = 0;
  for (const fs::path& page : all_pages()) {
    for (const std::string& name : quoted_in(read_text(page))) {
      if (!std::regex_match(name, path) || std::regex_search(name, placeholder) ||
          std::regex_match(name, built) || folders.count(name.substr(0, name.find('/'))) == 0) {
        continue;
      }
      ++checked;
      EXPECT_TRUE(fs::exists(kSource / name)) << page << " names " << name;
    }
  }
  EXPECT_GT(checked, 100U);
}

/// Lines of code of a page: in fences or indented by four, those that end in a backslash joined
/// with the next; and the texts in backticks.
std::vector<std::string> code_of(const std::string& page) {
  std::vector<std::string> code = quoted_in(page);
  std::istringstream lines(page);
  bool fenced = false, goes_on = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("```", 0) == 0) {
      fenced = !fenced;
    } else if (fenced || line.rfind("    ", 0) == 0) {
      line.erase(0, line.find_first_not_of(' '));
      if (goes_on) {
        code.back() += line;
      } else {
        code.push_back(line);
      }
      goes_on = !line.empty() && line.back() == '\\';
      if (goes_on) code.back().back() = ' ';
    }
  }
  return code;
}

/// The words of a command, up to what ends it in a shell, without quoted text.
std::vector<std::string> command_words(std::string line) {
  static const std::regex quotes("\"[^\"]*\"|'[^']*'"), end(" (#|&&|\\||>|;).*$|;.*$");
  line = std::regex_replace(std::regex_replace(line, quotes, "Q"), end, "");
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// The options of every command by its --help.
std::map<std::string, std::set<std::string>> options_by_command() {
  static const std::regex command("\n  ([a-z]+) "), options("\n  (-[^ ]+)"), one("-[A-Za-z-]+");
  std::map<std::string, std::set<std::string>> known;
  const std::string program = output_of({"--help"});
  const std::size_t list = program.find("Subcommands:");
  for (std::sregex_iterator
           it(program.begin() + static_cast<std::ptrdiff_t>(list), program.end(), command),
       last;
       it != last; ++it) {
    std::set<std::string>& names = known[it->str(1)];
    const std::string help = output_of({it->str(1), "--help"});
    for (std::sregex_iterator group(help.begin(), help.end(), options); group != last; ++group) {
      const std::string text = group->str(1);
      for (std::sregex_iterator name(text.begin(), text.end(), one); name != last; ++name) {
        names.insert(name->str());
      }
    }
  }
  return known;
}

TEST(Docs, ShowCommandsThatTheProgramTakes) {
  static const std::regex form("(\\$ )?systole ([a-z].*)"), option("(-[A-Za-z]|--[a-z-]+)(=.*)?");
  static const std::regex key("([a-z0-9_]+\\.[a-z0-9_]+)=.*");
  const std::map<std::string, std::set<std::string>> known = options_by_command();
  ASSERT_GT(known.size(), 10U);
  std::size_t checked = 0;
  for (const fs::path& page : all_pages()) {
    for (const std::string& line : code_of(read_text(page))) {
      std::smatch match;
      if (!std::regex_match(line, match, form)) continue;
      const std::vector<std::string> words = command_words(match[2]);
      const auto command = known.find(words.front());
      ASSERT_NE(command, known.end()) << page << ": " << line;
      ++checked;
      for (std::size_t i = 1; i < words.size(); ++i) {
        std::smatch found;
        if (words[i - 1] == "--set" && std::regex_match(words[i], found, key)) {
          EXPECT_NE(hw::find_machine_key(found.str(1)), nullptr) << page << ": " << line;
        }
        if (words[i].size() < 2 || words[i].front() != '-') continue;
        ASSERT_TRUE(std::regex_match(words[i], found, option)) << page << ": " << line;
        EXPECT_EQ(command->second.count(found[1]), 1U)
            << page << ": " << found[1] << " in " << line;
      }
    }
  }
  EXPECT_GT(checked, 100U);
}

TEST(Docs, WriteAnOptionOneWay) {
  for (const fs::path& page : all_pages()) {
    EXPECT_EQ(read_text(page).find("--functional="), std::string::npos)
        << page << ": expected --functional off";
  }
}

/// The names in `TWINS := ...` of Makefile.verilator, variables replaced.
std::size_t blocks_in_rtl() {
  const std::string makefile = read_text(kSource / "Makefile.verilator");
  static const std::regex definition("\n([A-Z_]+) *:= ((\\\\\n|[^\n])*)"),
      reference("\\$\\(([A-Z_]+)\\)");
  std::map<std::string, std::string> values;
  for (std::sregex_iterator it(makefile.begin(), makefile.end(), definition), last; it != last;
       ++it) {
    values[it->str(1)] = std::regex_replace(it->str(2), std::regex("\\\\\n"), " ");
  }
  std::string blocks = values["TWINS"];
  for (std::smatch found; std::regex_search(blocks, found, reference);) {
    blocks = found.prefix().str() + values[found[1]] + found.suffix().str();
  }
  std::istringstream words(blocks);
  return static_cast<std::size_t>(std::distance(std::istream_iterator<std::string>(words),
                                                std::istream_iterator<std::string>()));
}

TEST(Docs, CountTheBlocksInRtl) {
  static const std::vector<std::string> numbers{
      "twenty",      "twenty-one", "twenty-two",   "twenty-three", "twenty-four",
      "twenty-five", "twenty-six", "twenty-seven", "twenty-eight", "twenty-nine",
      "thirty",      "thirty-one", "thirty-two",   "thirty-three", "thirty-four"};
  const std::size_t blocks = blocks_in_rtl();
  ASSERT_GE(blocks, 20U);
  ASSERT_LT(blocks, 20 + numbers.size());
  std::string number = numbers[blocks - 20];
  EXPECT_NE(read_text(kSource / "README.md").find("twins of " + number + " blocks"),
            std::string::npos)
      << number;
  number.front() = static_cast<char>(number.front() - 'a' + 'A');
  EXPECT_NE(read_text(kSource / "docs/rtl.md").find("\n" + number + " blocks "), std::string::npos)
      << number;
}

}  // namespace
}  // namespace systole::testbench
