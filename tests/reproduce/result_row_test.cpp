#include "reproduce/result_row.h"

#include <gtest/gtest.h>

#include <string>

#include "reproduce/reproduction.h"

namespace systole::testbench {
namespace {

using Kind = Tolerance::Kind;

Verdict verdict(double ours, Kind kind, double amount) {
  return compare("row", ours, {200.0, "%", "a paper", Tolerance{kind, amount}}).verdict();
}

TEST(ResultRow, PassesWithinItsTolerance) {
  EXPECT_EQ(verdict(210.0, Kind::kRelative, 0.05), Verdict::kPass);
  EXPECT_EQ(verdict(211.0, Kind::kRelative, 0.05), Verdict::kFail);
  EXPECT_EQ(verdict(189.0, Kind::kRelative, 0.05), Verdict::kFail);
  EXPECT_EQ(verdict(200.0, Kind::kRelative, 0.0), Verdict::kPass);
  EXPECT_EQ(verdict(201.0, Kind::kRelative, 0.0), Verdict::kFail);
  EXPECT_EQ(verdict(204.0, Kind::kAbsolute, 4.0), Verdict::kPass);
  EXPECT_EQ(verdict(195.0, Kind::kAbsolute, 4.0), Verdict::kFail);
  EXPECT_EQ(verdict(1.0, Kind::kAtMost, 0.0), Verdict::kPass);
  EXPECT_EQ(verdict(201.0, Kind::kAtMost, 0.0), Verdict::kFail);
  EXPECT_EQ(verdict(201.0, Kind::kAtLeast, 0.0), Verdict::kPass);
  EXPECT_EQ(verdict(199.0, Kind::kAtLeast, 0.0), Verdict::kFail);
}

TEST(ResultRow, IsAReferenceWithoutAFigureOrATolerance) {
  const Published published{2.0, "x", "a paper", {}};
  const ResultRow row = compare("row", 3.0, published);
  EXPECT_EQ(row.verdict(), Verdict::kReference);
  EXPECT_DOUBLE_EQ(row.difference().value(), 0.5);
  EXPECT_EQ(row.bound(), "");
  const ResultRow quoted = compare("row", std::nullopt, published);
  EXPECT_EQ(quoted.verdict(), Verdict::kReference);
  EXPECT_FALSE(quoted.difference());
  EXPECT_EQ(measured("row", 3.0, "x").verdict(), Verdict::kReference);
}

TEST(ResultRow, AToleranceOfMoreThanHalfTheFigureSaysTooLittle) {
  EXPECT_EQ(compare("row", -0.26, {-4, "%", "paper", Tolerance{Kind::kAbsolute, 8}}).verdict(),
            Verdict::kReference);
  EXPECT_EQ(compare("row", 1.1, {1, "%", "paper", Tolerance{Kind::kAbsolute, 0.5}}).verdict(),
            Verdict::kPass);
  EXPECT_EQ(compare("row", 2.0, {4, "%", "paper", Tolerance{Kind::kAbsolute, 2}}).verdict(),
            Verdict::kPass);
  EXPECT_EQ(compare("row", 1.9, {4, "%", "paper", Tolerance{Kind::kAbsolute, 2}}).verdict(),
            Verdict::kFail);
  EXPECT_EQ(compare("row", 1, {0, "cases", "paper", Tolerance{Kind::kAbsolute, 2}}).verdict(),
            Verdict::kPass);
}

TEST(ResultRow, WhatLiesInTheMiddleIsWithinTheRounding) {
  ASSERT_GT(1.3 - 1.25, 0.05) << "in doubles";
  const Published published{1.3, "x", "paper", Tolerance{Kind::kAbsolute, 0.05}};
  EXPECT_EQ(compare("row", 1.25, published).verdict(), Verdict::kPass);
  EXPECT_EQ(compare("row", 1.2499, published).verdict(), Verdict::kFail);
}

TEST(ResultRow, AnEstimateIsNeverMetOrMissed) {
  const ResultRow prices = compare("row", 2, {1, "x", {"prices", Claim::kRecollected}, kExactly});
  EXPECT_EQ(prices.verdict(), Verdict::kReference);
  const ResultRow row = compare("row", 2, {1, "x", {"silicon", Claim::kEstimate}, kExactly});
  EXPECT_EQ(row.verdict(), Verdict::kReference);
  Reproduction reproduction;
  reproduction.sections.push_back({"section", {}, {row}});
  EXPECT_NE(reproduction_text(reproduction).find("estimate"), std::string::npos);
  EXPECT_EQ(reproduction_json(reproduction)["rows"][0]["class"], "estimate");
  EXPECT_EQ(reproduction_json(reproduction)["failed"], 0);
}

TEST(ResultRow, ClassesAreCountedApart) {
  Reproduction reproduction;
  const auto row = [](double ours, Claim claim) {
    return compare("row", ours, {1, "x", {"paper", claim}, kExactly});
  };
  reproduction.sections.push_back(
      {"section",
       {},
       {row(1, Claim::kPublished), row(2, Claim::kPublished), row(1, Claim::kCalibrated),
        row(1, Claim::kFollows), row(1, Claim::kFollows), measured("row", 3, "x")}});
  EXPECT_EQ(reproduction.count(Verdict::kPass), 4U);
  EXPECT_EQ(reproduction.count(Verdict::kFail, Claim::kPublished), 1U);
  const std::string text = reproduction_text(reproduction);
  EXPECT_NE(text.find("published 1 of 2, calibrated 1 of 1, follows 2 of 2, 1 for reference"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("FAILS published ="), std::string::npos) << text;
  const nlohmann::ordered_json document = reproduction_json(reproduction);
  EXPECT_EQ(document["by_class"]["follows"]["passed"], 2);
  EXPECT_EQ(document["by_class"]["published"]["failed"], 1);
  EXPECT_EQ(document["rows"][2]["class"], "calibrated");
}

}  // namespace
}  // namespace systole::testbench
