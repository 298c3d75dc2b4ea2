#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "support/paths.h"
#include "support/temp_directory.h"

namespace systole::test {

inline void collect_names(const nlohmann::json& value, std::set<std::string>& names) {
  if (value.is_array()) {
    for (const nlohmann::json& element : value) collect_names(element, names);
  } else if (value.is_object()) {
    for (const auto& [name, inner] : value.items()) {
      names.insert(name);
      // docs/machine.md has those of a machine.
      if (name != "machine_keys" || inner.is_array()) collect_names(inner, names);
    }
  }
}

/// What is in backticks in the first column of a page's tables.
inline std::set<std::string> documented_names(const std::string& page) {
  static const std::regex row("\n\\| ([^|]+) \\|"), quoted("`([^`\n]+)`");
  std::set<std::string> names;
  for (std::sregex_iterator line(page.begin(), page.end(), row), end; line != end; ++line) {
    const std::string first = (*line)[1];
    for (std::sregex_iterator name(first.begin(), first.end(), quoted); name != end; ++name) {
      names.insert((*name)[1]);
    }
  }
  return names;
}

/// Every name of the document, at any depth, is in a table of `page` (docs/NAME.md), and no other.
inline void expect_documented(const nlohmann::json& document, const std::string& page) {
  std::set<std::string> emitted;
  collect_names(document, emitted);
  const std::set<std::string> documented = documented_names(read_file(source_path(page)));
  if (documented.count("machine_keys") == 0) emitted.erase("machine_keys");
  for (const std::string& name : emitted) {
    EXPECT_EQ(documented.count(name), 1U) << page << " does not explain " << name;
  }
  for (const std::string& name : documented) {
    EXPECT_EQ(emitted.count(name), 1U) << page << " explains " << name;
  }
}

}  // namespace systole::test
