#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>

#include "support/documented_names.h"

/// The document of `systole reproduce`.
namespace systole::testbench {

inline const nlohmann::json& row_of(const nlohmann::json& document, const std::string& name) {
  for (const nlohmann::json& row : document["rows"]) {
    if (row["name"] == name) return row;
  }
  throw std::out_of_range("no row " + name);
}

/// Every name of the document is explained, every row says what is ours and what was published, and
/// the counts are those of the rows.
inline void expect_good_rows(nlohmann::json document) {
  document["inputs"] = nullptr;  // its names are labels
  for (nlohmann::json& section : document["sections"]) section.erase("figures");  // columns too
  test::expect_documented(document, "docs/reproduce.md");
  std::size_t passed = 0, failed = 0;
  std::set<std::string> names;
  for (const nlohmann::json& row : document["rows"]) {
    const std::string name = row["name"];
    EXPECT_TRUE(names.insert(row["section"].get<std::string>() + name).second) << name;
    EXPECT_FALSE(row["ours"].is_null() && row["published"].is_null()) << name;
    EXPECT_EQ(row["published"].is_null(), row["source"] == "") << name;
    EXPECT_NE(row["unit"], "") << name;
    if (row["verdict"] == "pass") ++passed;
    if (row["verdict"] == "fail") ++failed;
    if (row["verdict"] == "reference") continue;
    EXPECT_FALSE(row["ours"].is_null() || row["published"].is_null()) << name;
    EXPECT_NE(row["bound"], "") << name;
  }
  EXPECT_EQ(document["passed"], passed);
  EXPECT_EQ(document["failed"], failed);
  EXPECT_GT(passed, 0U);
}

}  // namespace systole::testbench
