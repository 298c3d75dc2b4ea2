/// Whether the tree is as docs/architecture.md and CONTRIBUTING.md say: which room includes which,
/// folders that do not include each other in a circle, and none too full to be read; headers that
/// have two includers or a reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/temp_directory.h"

namespace systole::testbench {
namespace {

/// What the files of a room, or of a folder, include of others.
using IncludeGraph = std::map<std::string, std::set<std::string>>;

/// The table of rooms: what each may include.
IncludeGraph rules_of_rooms() {
  const std::string page = read_file(source_path("docs/architecture.md"));
  static const std::regex row("\n\\| `([a-z/]+)/` \\|[^\n]*\\| ([^|\n]*) \\|(?=\n)"),
      quoted("`([a-z/]+)`"), none("-|all of them");
  IncludeGraph rules;
  for (std::sregex_iterator it(page.begin(), page.end(), row), last; it != last; ++it) {
    const std::string uses = it->str(2);
    if (std::regex_match(uses, none)) continue;
    std::set<std::string>& allowed = rules[it->str(1)];
    for (std::sregex_iterator name(uses.begin(), uses.end(), quoted); name != last; ++name) {
      allowed.insert(name->str(1));
    }
  }
  return rules;
}

/// The room in which a file is, empty for none: a room within a room is one by itself.
std::string room_of(const std::string& path, const IncludeGraph& rules) {
  std::string room;
  for (const auto& [name, allowed] : rules) {
    if (path.rfind(name + "/", 0) == 0 && name.size() > room.size()) room = name;
  }
  return room;
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

/// Source files of a folder at the top of the tree, at any depth, by their path from the top.
std::vector<std::string> sources_in(const std::string& top) {
  static const std::set<std::string> kinds{".h", ".cpp", ".sv", ".svh"};
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_path(top))) {
    if (kinds.count(entry.path().extension().string()) == 0) continue;
    found.push_back(entry.path().lexically_relative(source_path("")).string());
  }
  return found;
}

/// What a file includes by a path from the top of the tree.
std::vector<std::string> includes_of(const std::string& path) {
  static const std::string begin = "#include \"";
  std::vector<std::string> found;
  std::ifstream file(source_path(path));
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(begin, 0) != 0) continue;
    const std::string name = line.substr(begin.size(), line.rfind('"') - begin.size());
    if (name.find('/') != std::string::npos) found.push_back(name);
  }
  return found;
}

/// Folders that include each other in a circle, as "a -> b -> a"; empty if there are none.
class CircleFinder {
 public:
  explicit CircleFinder(const IncludeGraph& graph) : graph_(graph) {
    for (const auto& [folder, included] : graph) {
      if (circle_.empty()) visit(folder);
    }
  }
  [[nodiscard]] const std::string& circle() const { return circle_; }

 private:
  void visit(const std::string& folder) {
    if (done_.count(folder) != 0 || !circle_.empty()) return;
    bool within = false;
    for (const std::string& before : path_) {
      within |= before == folder;
      if (within) circle_ += before + " -> ";
    }
    if (within) {
      circle_ += folder;
      return;
    }
    const auto included = graph_.find(folder);
    if (included == graph_.end()) return;
    path_.push_back(folder);
    for (const std::string& next : included->second) visit(next);
    path_.pop_back();
    done_.insert(folder);
  }

  const IncludeGraph& graph_;
  std::vector<std::string> path_;
  std::set<std::string> done_;
  std::string circle_;
};

TEST(Architecture, RoomsIncludeOnlyWhatTheTableAllows) {
  const IncludeGraph rules = rules_of_rooms();
  ASSERT_EQ(rules.count("base"), 1U);
  std::size_t checked = 0;
  for (const auto& [top, allowed] : rules) {
    if (top.find('/') != std::string::npos) continue;
    for (const std::string& path : sources_in(top)) {
      const std::string room = room_of(path, rules);
      for (const std::string& name : includes_of(path)) {
        const std::string other = room_of(name, rules);
        if (other == room) continue;
        ++checked;
        EXPECT_EQ(rules.at(room).count(other), 1U)
            << path << " includes " << name << ", which docs/architecture.md does not allow";
      }
    }
  }
  EXPECT_GT(checked, 800U);
}

TEST(Architecture, TheTableHasEveryRoom) {
  const IncludeGraph rules = rules_of_rooms();
  for (const auto& entry : std::filesystem::directory_iterator(source_path(""))) {
    const std::string top = entry.path().filename().string();
    static const std::set<std::string> no_rooms{"build", "tests", "bench"};
    if (!entry.is_directory() || top.front() == '.' || no_rooms.count(top) != 0) continue;
    for (const std::string& path : sources_in(top)) {
      if (std::filesystem::path(path).extension() != ".h") continue;
      ASSERT_FALSE(room_of(path, rules).empty()) << path << " is in no room";
    }
  }
}

TEST(Architecture, FoldersDoNotIncludeEachOtherInACircle) {
  const IncludeGraph rules = rules_of_rooms();
  IncludeGraph folders;
  for (const auto& [top, allowed] : rules) {
    if (top.find('/') != std::string::npos) continue;
    for (const std::string& path : sources_in(top)) {
      for (const std::string& name : includes_of(path)) {
        if (folder_of(name) != folder_of(path)) folders[folder_of(path)].insert(folder_of(name));
      }
    }
  }
  EXPECT_GT(folders.size(), 50U);
  EXPECT_EQ(CircleFinder(folders).circle(), "");
}

TEST(Architecture, ACircleOfFoldersIsFound) {
  IncludeGraph folders{{"a", {"b", "d"}}, {"b", {"c", "d"}}, {"c", {"d"}}};
  EXPECT_EQ(CircleFinder(folders).circle(), "");
  folders["d"] = {"b"};
  EXPECT_EQ(CircleFinder(folders).circle(), "b -> c -> d -> b");
}

TEST(Architecture, FoldersHaveAtMost25Files) {
  std::map<std::string, std::size_t> files;
  for (const char* top : {"base", "hw", "model", "mapper", "analysis", "tlm", "testbench",
                          "reproduce", "rtl", "tests", "bench"}) {
    for (const std::string& path : sources_in(top)) ++files[folder_of(path)];
  }
  for (const auto& [folder, count] : files) EXPECT_LE(count, 25U) << folder;
}

/// Headers with one includer that are not part of it, and why.
const std::map<std::string, std::string> kAloneForAReason{
    {"testbench/rtl/array/accumulator_sram_unit.h", "what systole rtl add compiles for users' RTL"},
    {"testbench/rtl/array/output_command.h", "what systole rtl add compiles for users' RTL"},
    {"testbench/rtl/attention/attention_line_unit.h",
     "what systole rtl add compiles for users' RTL"},
    {"testbench/rtl/attention/attention_softmax_unit.h",
     "what systole rtl add compiles for users' RTL"},
    {"testbench/rtl/attention/head_mix_line_unit.h",
     "what systole rtl add compiles for users' RTL"},
    {"testbench/rtl/core/core_unit.h", "what systole rtl add compiles for users' RTL"},
    {"testbench/rtl/nonlinear/i_exp_unit.h", "what systole rtl add compiles for users' RTL"},
    {"testbench/rtl/nonlinear/i_sqrt_unit.h", "what systole rtl add compiles for users' RTL"},
    {"testbench/rtl/postop/stage_unit.h", "what systole rtl add compiles for users' RTL"},
    {"testbench/rtl/ring/fp16_unit.h", "what systole rtl add compiles for users' RTL"},
    {"testbench/rtl/ring/mpu_tree_unit.h", "what systole rtl add compiles for users' RTL"},
    {"testbench/rtl/ring/ring_router_unit.h", "what systole rtl add compiles for users' RTL"},
};

std::size_t count_lines(const std::string& path) {
  std::ifstream file(source_path(path));
  return static_cast<std::size_t>(
      std::count(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(), '\n'));
}

/// The .cpp file of a header, whether or not it has one.
std::string implementation_of(const std::string& header) {
  return std::filesystem::path(header).replace_extension(".cpp").string();
}

/// Lines of a header, of its only includer, and of what implements both.
std::size_t lines_together(const std::string& header, const std::string& includer) {
  const bool is_header = std::filesystem::path(includer).extension() == ".h";
  return count_lines(header) + count_lines(implementation_of(header)) + count_lines(includer) +
         (is_header ? count_lines(implementation_of(includer)) : 0);
}

TEST(Architecture, AHeaderHasTwoIncludersOrAReason) {
  constexpr std::size_t kMostLines = 400;
  const IncludeGraph rules = rules_of_rooms();
  std::map<std::string, std::set<std::string>> includers;
  for (const char* top : {"base", "hw", "model", "mapper", "analysis", "tlm", "testbench",
                          "reproduce", "tests", "bench"}) {
    for (const std::string& path : sources_in(top)) {
      for (const std::string& name : includes_of(path)) {
        if (path != implementation_of(name)) includers[name].insert(path);
      }
    }
  }
  for (const char* top :
       {"base", "hw", "model", "mapper", "analysis", "tlm", "testbench", "reproduce"}) {
    for (const std::string& path : sources_in(top)) {
      if (std::filesystem::path(path).extension() != ".h") continue;
      const std::set<std::string>& users = includers[path];
      ASSERT_FALSE(users.empty()) << "nothing includes " << path;
      const std::string& user = *users.begin();
      const bool alone = users.size() == 1 && room_of(user, rules) == room_of(path, rules) &&
                         lines_together(path, user) <= kMostLines;
      EXPECT_EQ(alone, kAloneForAReason.count(path) != 0)
          << path << ": included by " << users.size() << ", first " << user;
    }
  }
}

}  // namespace
}  // namespace systole::testbench
