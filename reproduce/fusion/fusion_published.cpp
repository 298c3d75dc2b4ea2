#include "reproduce/fusion/fusion_published.h"

namespace systole::testbench {
namespace {

constexpr Source kLayer{"follows from the operators of GPT-2's layer", Claim::kFollows};
constexpr Source kArticle{"an article on fused operators, chains of 3 or 4 on a Raspberry Pi 5"};
/// Half of the last digit that is printed.
constexpr Tolerance kAsPrinted{Tolerance::Kind::kAbsolute, 0.05};

}  // namespace

const Published& fusion_published(std::string_view key) {
  static const std::vector<Published> figures = {
      {"345M.off", 43.5, "MB", kLayer, kAsPrinted, 1},
      {"345M.post", 33.6, "MB", kLayer, kAsPrinted, 1},
      {"345M.all", 32.5, "MB", kLayer, kAsPrinted, 1},
      {"345M.gain", 1.30, "x", kLayer, kWithin5Percent, 2},
      {"article", 1.3, "x", kArticle, {}, 1},
      {"same", 0, "bytes", {"no rounding belongs to a pass", Claim::kFollows}, kExactly},
      {"faster", 1, "x", {"fused passes are to be faster", Claim::kFollows}, kAtLeast},
      {"no slower",
       0.99,
       "x",
       {"chosen: 1 % for the order of requests", Claim::kFollows},
       kAtLeast,
       2},
  };
  return find_published(figures, key);
}

Published follows(double value, std::string_view unit) {
  return {"", value, unit, {"follows from the operators", Claim::kFollows}, kExactly};
}

}  // namespace systole::testbench
