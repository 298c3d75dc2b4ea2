#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"

namespace systole::testbench {
namespace {

using nlohmann::json;

/// Names as the documentation writes them: the numbers of channels and banks and the names of
/// sockets are not listed one by one.
std::string documented(const std::string& name) {
  static const std::regex part("(channel|bank)[0-9]+"), socket("^system\\..*\\.socket\\."),
      link("^(noc\\.)?(link_[0-9]+_[0-9]+|from|to)_[a-zA-Z0-9]+");
  const std::string any = std::regex_replace(name, link, "$1LINK");
  return std::regex_replace(std::regex_replace(any, part, "$1N"), socket, "INITIATOR.");
}

void collect(const json& value, std::set<std::string>& names) {
  if (value.is_array()) {
    for (const json& element : value) collect(element, names);
  }
  if (!value.is_object()) return;
  for (const auto& [name, inner] : value.items()) {
    names.insert(documented(name));
    if (name != "machine_keys") collect(inner, names);  // those are in docs/machine.md
  }
}

/// What is in backticks.
std::set<std::string> names_in(const std::string& document) {
  static const std::regex quoted("`([^`\n]+)`");
  std::set<std::string> names;
  for (std::sregex_iterator match(document.begin(), document.end(), quoted), end; match != end;
       ++match) {
    names.insert((*match)[1]);
  }
  return names;
}

TEST(StatisticsDoc, EveryNameIsDocumentedAndNoOther) {
  std::set<std::string> emitted;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"run", "-m", "tiny", "--model", "vit17", "-n", "1", "--check", "--json"},
           {"run", "-m", "gemmini", "--model", "gpt2", "--layers", "1", "--length", "1", "--decode",
            "--functional", "off", "--json"},
           {"run", "-m", "gemmini", "--model", "resnet-18", "--layers", "1", "--functional", "off",
            "--json"},
           {"run", "-m", "tiny", "--model", "bert-base", "-l", "4", "--layers", "1", "--heads", "1",
            "--d", "8", "--ffn", "16", "--rtl", "core", "--json"},
           {"run", "-m", "tiny", "--model", "vit17", "-n", "2", "--cores", "2", "--functional",
            "off", "--json"},
           {"matmul", "16x16x16", "-m", "tiny", "--set", "noc.columns=2", "--json"},
           {"matmul", "16x16x16", "-m", "gemmini", "--set", "dram.channels=2", "--set", "l2.kib=64",
            "--json"}}) {
    const ProgramRun run = run_systole(arguments);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    collect(document_of(run.out), emitted);
  }
  const std::string text = read_file(source_path("docs/statistics.md"));
  const std::set<std::string> described = names_in(text);
  static const std::regex of_core("^core[0-9]+\\.");  // blocks of cores among several
  for (const std::string& each : emitted) {
    const std::string name = std::regex_replace(each, of_core, "");
    EXPECT_EQ(described.count(name), 1U) << "docs/statistics.md does not explain `" << name << "`";
  }
  // Names in the first or second column of a table: they exist.
  static const std::regex row("\n\\| (?:`([^`]+)`|) \\|(?: `([^`]+)` \\|)?");
  std::size_t rows = 0;
  for (std::sregex_iterator match(text.begin(), text.end(), row), end; match != end; ++match) {
    for (const std::size_t column : {1U, 2U}) {
      const std::string name = (*match)[column];
      if (name.empty() || (column == 2 && name == "unit")) continue;  // a unit, not a name
      ++rows;
      EXPECT_EQ(emitted.count(name), 1U) << "docs/statistics.md explains `" << name << "`";
    }
  }
  EXPECT_GT(rows, 60U);
}

}  // namespace
}  // namespace systole::testbench
