#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/mapping_grid.h"
#include "mapper/mapping.h"
#include "model/build/encoder_graph.h"
#include "model/integer/integer_model.h"
#include "model/model_files.h"
#include "model/seeded/shapes.h"
#include "support/network/encoder_run.h"
#include "support/tlm/systemc_test.h"

/// More of a resource hardly ever costs time: the mapper makes use of it, or leaves it alone.
namespace systole::testbench {
namespace {

using test::Workload;

// A doubling should cost nothing but what bench/mapping_bench tolerates, which has the whole grid.
// Tilings are compared by a replay, which is a few percent off, and other tiles meet other rows of
// the DRAM: of the BERT layer the doubled scratchpad of base 1 costs more (1.5 %).
constexpr double kTolerated = 0.01;
constexpr double kWorstDoubling = 0.02;
constexpr std::ptrdiff_t kMostOverTolerated = 1;

struct Doubling {
  std::string place;
  double cost;  ///< cycles with the doubled resource over those without, less 1
};

/// A layer of BERT base with 128 tokens, of shapes alone.
Workload bert_layer() {
  model::SeededOptions options;
  options.shape_only = true;
  return {model::make_seeded_encoder("bert", {1, 768, 12, 3072, true}, 128, 1, options), {}};
}

Workload vit65() {
  return {model::make_vit_graph(model::load_integer_vit(model::find_model("vit65"))), {}};
}

class MappingMonotonyTest : public test::SystemCTest {
 protected:
  /// Doublings of every base that the network fits.
  static void add_doublings(const std::string& name, const Workload& workload,
                            std::vector<Doubling>& doublings) {
    constexpr std::size_t kBases = 2;
    std::optional<std::uint64_t> base;
    for (const bench::GridMachine& next : bench::make_grid(kBases, 1)) {
      std::optional<std::uint64_t> cycles;
      try {
        cycles = workload.cycles(mapper::map_graph(workload.graph, next.machine), next.machine);
      } catch (const hw::InputError&) {
        // too small
      }
      if (next.doubled == nullptr) {
        base = cycles;
        continue;
      }
      if (!base) continue;
      const std::string place =
          name + ", base " + std::to_string(next.base) + ", " + next.doubled->name;
      EXPECT_TRUE(cycles) << place << ": the base is large enough, the double is not";
      if (!cycles) continue;
      doublings.push_back({place, static_cast<double>(*cycles) / static_cast<double>(*base) - 1});
    }
  }
};

TEST_F(MappingMonotonyTest, MoreOfAResourceHardlyEverCostsTime) {
  std::vector<Doubling> all;
  add_doublings("vit65", vit65(), all);
  add_doublings("bert", bert_layer(), all);
  ASSERT_GT(all.size(), 40U);
  std::string over;
  std::ptrdiff_t count = 0;
  for (const Doubling& doubling : all) {
    EXPECT_LT(doubling.cost, kWorstDoubling) << doubling.place;
    if (doubling.cost <= kTolerated) continue;
    ++count;
    over += doubling.place + ": " + std::to_string(doubling.cost) + "\n";
  }
  EXPECT_LE(count, kMostOverTolerated) << over;
  // Most of them are of use.
  const auto gains = std::count_if(all.begin(), all.end(),
                                   [](const Doubling& doubling) { return doubling.cost < -0.01; });
  EXPECT_GT(gains, static_cast<std::ptrdiff_t>(all.size() / 4));
}

}  // namespace
}  // namespace systole::testbench
