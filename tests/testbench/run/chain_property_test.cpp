#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "mapper/mapping.h"
#include "model/seeded/seeded_chain.h"
#include "support/network/encoder_run.h"
#include "support/random/random_machine.h"
#include "support/temp_directory.h"
#include "support/tlm/systemc_test.h"

/// Chains of a user's own, on machines of any shape: no bit depends on what is fused.
namespace systole::testbench {
namespace {

using test::between;
using test::Random;
using test::Workload;

/// A chain file of random operators, in the notation of docs/fusion.md.
class RandomChain {
 public:
  explicit RandomChain(Random& random) : random_(random) {
    const bool picture = between(random, 0, 2) == 0;
    text = "name = \"random\"\n";
    if (picture) {
      channels_ = between(random, 1, 20);
      side_ = between(random, 4, 9);
      input("s8", fmt::format("[{}, {}, {}]", channels_, side_, side_));
      for (std::uint32_t i = between(random, 2, 5); i > 0; --i) picture_node();
    } else {
      rows_ = between(random, 1, 40);
      cols_ = 4 * between(random, 1, 16);
      input(between(random, 0, 1) == 0 ? "s8" : "s16", fmt::format("[{}, {}]", rows_, cols_));
      for (std::uint32_t i = between(random, 2, 6); i > 0; --i) matrix_node();
    }
  }

  std::string text;
  std::map<std::string, int> ops;

 private:
  void input(const std::string& type, const std::string& shape) {
    text += fmt::format("[[inputs]]\nname = \"x\"\ntype = \"{}\"\nshape = {}\n", type, shape);
    type_ = type;
    at_ = "x";
  }
  void node(const std::string& op, const std::string& type, const std::string& keys) {
    const std::string name = fmt::format("n{}", ++nodes_);
    text += fmt::format("[[nodes]]\nname = \"{}\"\nop = \"{}\"\n{}", name, op, keys);
    at_ = name;
    type_ = type;
    ++ops[op];
  }
  /// The next operators take bytes.
  void to_bytes() {
    if (type_ != "s8") node("requantise", "s8", "");
  }
  void to_words() {
    if (type_ != "s16") node("requantise", "s16", "type = \"s16\"\n");
  }

  void matrix_node() {
    switch (between(random_, 0, 8)) {
      case 0:
        to_bytes();
        cols_ = 4 * between(random_, 1, 16);
        return node("linear", "s8", fmt::format("outputs = {}\n", cols_));
      case 1:
        return node("layer_norm", "s8", "");
      case 2:
        to_bytes();
        return node("gelu", "s8", "");
      case 3:
        to_words();
        return node("silu", "s16", "");
      case 4:
        to_words();
        return node("tanh", "s8", "");
      case 5: {
        to_words();
        const std::string keys = fmt::format("inputs = [\"{}\", \"{}\"]\n", at_, at_);
        return node("multiply", "s16", keys);
      }
      case 6: {
        const std::string dividend = at_;
        if (type_ == "s16")
          to_bytes();
        else
          to_words();
        return node("divide", "s16", fmt::format("inputs = [\"{}\", \"{}\"]\n", dividend, at_));
      }
      case 7: {
        to_bytes();
        const std::string identity = at_;
        node("linear", "s32", fmt::format("outputs = {}\ntype = \"s32\"\n", cols_));
        return node("add", "s16", fmt::format("inputs = [\"{}\", \"{}\"]\n", identity, at_));
      }
      default:
        return attend();
    }
  }

  /// Attention of the value to a projection of itself.
  void attend() {
    to_bytes();
    const std::string query = at_;
    node("linear", "s8", fmt::format("outputs = {}\n", cols_));
    const std::string key = at_;
    const bool causal = between(random_, 0, 1) == 0;
    node("attention", "s8",
         fmt::format("inputs = [\"{0}\", \"{1}\", \"{1}\"]\nheads = {2}\ncausal = {3}\n", query,
                     key, between(random_, 0, 1) == 0 ? 1 : 4, causal));
  }

  void picture_node() {
    switch (between(random_, 0, 4)) {
      case 0:
        side_ += 2;
        if (between(random_, 0, 1) == 0) return node("pad", "s8", "padding = 1\n");
        return node("pad", "s8", "padding = [0, 1, 2, 1]\n");
      case 1:
        if (side_ < 3) break;
        side_ -= 2;
        return node("max_pool", "s8", "rows = 3\ncols = 3\n");
      case 2:
        if (side_ < 2) break;
        side_ = side_ / 2;
        return node("average_pool", "s8", "rows = 2\ncols = 2\nstride = 2\n");
      case 3:
        node("convolution", "s8",
             fmt::format("outputs = {0}\nrows = 1\ncols = 1\ngroups = {0}\n", channels_));
        return node("relu", "s8", "");
      default:
        break;
    }
    channels_ = between(random_, 1, 20);
    node("convolution", "s8",
         fmt::format("outputs = {}\nrows = 3\ncols = 3\npadding = {}\n", channels_,
                     between(random_, 0, 1) == 0 ? "1" : "[2, 0, 0, 2]"));
  }

  Random& random_;
  std::string at_, type_;
  std::uint32_t nodes_ = 0, rows_ = 0, cols_ = 0, channels_ = 0, side_ = 0;
};

class ChainPropertyTest : public test::SystemCTest {};

TEST_F(ChainPropertyTest, AnyChainOnAnyMachineHasTheSameBitsHoweverItIsFused) {
  constexpr std::uint64_t kChains = 120;
  const TempDirectory directory;
  std::map<std::string, int> ops;
  int runs = 0, padded = 0, fewer = 0;
  for (std::uint64_t seed = 0; seed < kChains && !HasFailure(); ++seed) {
    Random random(seed);
    const RandomChain chain(random);
    SCOPED_TRACE(chain.text);
    for (const auto& [op, count] : chain.ops) ops[op] += count;
    hw::Machine machine = test::random_machine(random);
    machine.host.operators = hw::HostOperators::kNone;
    machine.mapper.strategy = hw::MappingStrategy::kCost;
    model::OperatorNetwork network =
        model::read_chain(directory.write("chain.toml", chain.text), seed, machine.datapath);
    Workload workload{std::move(network.graph), {}};
    const model::Tensor& in = workload.graph.tensors[input_tensor(workload.graph)];
    workload.inputs.push_back(model::seeded_codes(in, seed, machine.datapath));
    std::vector<std::vector<std::uint8_t>> first;
    std::size_t passes = 0;
    for (const hw::FusionLevel level :
         {hw::FusionLevel::kOff, hw::FusionLevel::kPost, hw::FusionLevel::kAll}) {
      machine.mapper.fusion = level;
      mapper::Mapping mapping;
      try {
        mapping = mapper::map_graph(workload.graph, machine);
      } catch (const hw::InputError&) {
        break;  // too small, or without a unit
      }
      SimulationOptions options;
      options.check = true;
      const SimulationResult result = workload.simulate(mapping, machine, options);
      EXPECT_EQ(result.check.mismatches, 0U) << result.check.first;
      EXPECT_LE(result.bounds.front(), static_cast<double>(result.cycles.front()));
      if (level == hw::FusionLevel::kOff) {
        first = result.outputs;
        passes = mapping.groups.size();
      }
      EXPECT_EQ(result.outputs, first);
      fewer += mapping.groups.size() < passes ? 1 : 0;
      for (const mapper::Group& group : mapping.groups) padded += group.pads != 0 ? 1 : 0;
      ++runs;
    }
  }
  EXPECT_GT(runs, 150);
  EXPECT_GT(fewer, 100) << "chains that fuse";
  EXPECT_GT(padded, 5) << "zeros that became padding";
  for (const char* const op :
       {"linear", "layer_norm", "gelu", "silu", "tanh", "multiply", "divide", "add", "attention",
        "pad", "max_pool", "average_pool", "convolution", "relu", "requantise"}) {
    EXPECT_GT(ops[op], 5) << op;
  }
}

}  // namespace
}  // namespace systole::testbench
