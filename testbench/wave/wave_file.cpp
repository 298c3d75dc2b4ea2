#include "testbench/wave/wave_file.h"

#include <algorithm>
#include <utility>

namespace systole::testbench {
namespace {

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', begin)) {
    parts.push_back(path.substr(begin, dot - begin));
    begin = dot + 1;
  }
  parts.push_back(path.substr(begin));
  return parts;
}

}  // namespace

void visit_hierarchy(const std::vector<RecordedSignal>& signals, const HierarchyVisitor& visitor) {
  std::vector<std::pair<std::vector<std::string>, std::size_t>> sorted;
  for (std::size_t i = 0; i < signals.size(); ++i) {
    sorted.emplace_back(parts_of(signals[i].name), i);
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string> open;
  const auto close_to = [&](std::size_t depth) {
    for (; open.size() > depth; open.pop_back()) visitor.close();
  };
  for (auto& [parts, index] : sorted) {
    const std::string name = std::move(parts.back());
    parts.pop_back();
    std::size_t common = 0;
    while (common < std::min(open.size(), parts.size()) && open[common] == parts[common]) ++common;
    close_to(common);
    for (; common < parts.size(); ++common) {
      open.push_back(parts[common]);
      visitor.open(parts[common]);
    }
    visitor.signal(index, name);
  }
  close_to(0);
}

std::string ranged_name(const std::string& name, unsigned width) {
  return width == 1 ? name : name + " [" + std::to_string(width - 1) + ":0]";
}

}  // namespace systole::testbench
