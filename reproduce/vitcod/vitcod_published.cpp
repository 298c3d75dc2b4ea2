#include "reproduce/vitcod/vitcod_published.h"

namespace systole::testbench {
namespace {

using Kind = Tolerance::Kind;

constexpr Tolerance kWithinATenthOfAPoint{Kind::kAbsolute, 0.1};

const Source kMask{"counted on the authors' mask of DeiT-Tiny at 95 %", Claim::kFollows};
const Source kLimit{"a limit that follows from the authors' mask of DeiT-Tiny", Claim::kFollows};
const Source kDeitShape{"counted from DeiT-Tiny's shape", Claim::kFollows};
const Source kContributions{"ViTCoD (HPCA 2023), section VI, DeiT"};
const Source kMovement{"ViTCoD, section VI, breakdown of the latency"};
const Source kRoofline{"ViTCoD, figure 2, labels of the axes", Claim::kFollows};
const Source kAt90{"ViTCoD, abstract and section VI-D, mean of six models at 90 %"};
const Source kMean{"ViTCoD, section VI-D as others sum it up, mean over 60 to 90 %"};
const Source kFigure19{"ViTCoD, figure 19 as others sum it up"};
const Source kChip{"ViTCoD as others sum it up, 28 nm at 500 MHz"};
const Source kCounter{"run of the authors' public cycle counter"};

}  // namespace

const std::vector<Published>& vitcod_figures() {
  static const std::vector<Published> figures = {
      {"sddmm.ideal", 9300, "cycles", kMask, kWithin5Percent},
      {"sddmm.packed", 12808, "cycles", kMask, kWithin5Percent},
      {"sddmm.column_per_line", 13656, "cycles", kMask, kWithin5Percent},
      {"sddmm.best_columns", 11080, "cycles", kMask, kWithin5Percent},
      {"sddmm.broadcast", 57776, "cycles", kMask, kWithin5Percent},
      {"sddmm.unordered", 56736, "cycles", kMask, kWithin5Percent},
      {"sddmm.unordered_broadcast", 60064, "cycles", kMask, kWithin5Percent},
      {"sddmm.limit", 12200, "cycles", kLimit, kAtMost},
      {"attention.least", 18600, "cycles", kLimit, kAtLeast},
      {"pruning.90", 8.14, "x", kContributions, {}},
      {"pruning.mean", 5.14, "x", kContributions, {}},
      {"reordering.90", 2.03, "x", kContributions, {}},
      {"reordering.mean", 2.59, "x", kContributions, {}},
      {"traffic.plain", 1361664, "B", kDeitShape, kExactly},
      {"traffic.auto_encoder", 1059072, "B", kDeitShape, kExactly},
      {"movement.plain", 50, "%", kMovement, {}},
      {"movement.auto_encoder", 28, "%", kMovement, {}},
      {"roofline.sparse", 0.6, "MAC/B", kRoofline, {}},
      {"roofline.vitcod", 3.9, "MAC/B", kRoofline, {}},
      {"roofline.compute", 256, "GMAC/s", kRoofline, kExactly},
      {"speedup.sanger.90", 6.8, "x", kAt90, {}},
      {"speedup.sanger.mean", 4.3, "x", kMean, {}},
      {"speedup.spatten.90", 10.1, "x", kAt90, {}},
      {"speedup.spatten.mean", 6.8, "x", kMean, {}},
      {"speedup.gpu.90", 86.0, "x", kAt90, {}},
      {"speedup.gpu.mean", 46.5, "x", kMean, {}},
      {"speedup.edge_gpu.90", 142.9, "x", kAt90, {}},
      {"speedup.edge_gpu.90.figure",
       160.6,
       "x",
       "ViTCoD, figures 15 and 19 as others sum it up",
       {}},
      {"speedup.edge_gpu.mean", 77.0, "x", kMean, {}},
      {"speedup.cpu.90", 235.3, "x", kAt90, {}},
      {"speedup.cpu.mean", 127.2, "x", kMean, {}},
      {"energy.sanger", 9.8, "x", kFigure19, {}},
      {"power", 323.9, "mW", kChip, {}},
      {"share.macs", 14.6, "%", kDeitShape, kWithinATenthOfAPoint},
      {"counter.4096", 9492, "cycles", kCounter, {}},
      {"counter.512.auto_encoder", 42455, "cycles", kCounter, {}},
      {"counter.512.plain", 37727, "cycles", kCounter, {}},
  };
  return figures;
}

Published break_even_prediction(double value, std::string_view unit) {
  return {"break_even", value, std::string(unit),
          "for h heads, c of them in memory: c MACs for each byte per cycle, or, if D MACs decode "
          "after the transfer, D (h - c) / (h c) bytes per cycle",
          kWithin5Percent};
}

const Published& vitcod_published(std::string_view key) {
  return find_published(vitcod_figures(), key);
}

}  // namespace systole::testbench
