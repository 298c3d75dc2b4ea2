/// Tiles that went through stages while they were loaded belong to one operator; others of the same
/// tensor must not take them for their own.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "mapper/mapping.h"
#include "support/network/mapped_run.h"
#include "support/random/random_graph.h"

namespace systole::mapper {
namespace {

using test::GraphSketch;

/// What a matmul makes of x before it multiplies.
enum class Staging : std::uint8_t { kNone, kRelu, kHalve };

/// One matmul after the other on the same x, whose tiles are all of the same size.
model::Graph matmuls_on_x(const std::vector<Staging>& stagings) {
  GraphSketch g("readers", 3);
  const model::View x = g.input("x", 1, 16);
  model::View out;
  for (std::size_t i = 0; i < stagings.size(); ++i) {
    const std::string name = std::to_string(i);
    model::View a = x;
    if (stagings[i] == Staging::kRelu) {
      a = g.stage("relu" + name, x, GraphSketch::relu(), hw::DType::kS8);
    } else if (stagings[i] == Staging::kHalve) {
      a = g.stage("halve" + name, x, GraphSketch::to_bits(8, 1), hw::DType::kS8);
    }
    out = g.matmul("c" + name, a, g.weight("w" + name, 16, 16));
  }
  return g.take(out);
}

/// Loads that bring a tile of x.
std::ptrdiff_t loads_of_x(const Mapping& mapping) {
  const std::uint64_t x = mapping.tensors[0].address;
  return std::count_if(mapping.program.commands.begin(), mapping.program.commands.end(),
                       [&](const hw::Command& command) {
                         const auto* const load = std::get_if<hw::cmd::Load>(&command.work);
                         return load != nullptr && load->from.address == x;
                       });
}

class StagedTiles : public ::testing::TestWithParam<std::vector<Staging>> {};

TEST_P(StagedTiles, AreNotThoseOfAnotherOperator) {
  hw::Machine machine;
  machine.preop.lanes = 16;
  machine.mapper.on_chip = 0;  // a separate pass is slower then than stages on the load
  const model::Graph graph = matmuls_on_x(GetParam());
  ASSERT_EQ(graph.tensors[0].name, "x");
  const Mapping mapping = map_graph(graph, machine);
  ASSERT_EQ(mapping.groups.size(), GetParam().size());
  for (std::size_t i = 0; i < GetParam().size(); ++i) {
    const bool staged = GetParam()[i] != Staging::kNone;
    ASSERT_EQ(mapping.groups[i].pre.has_value(), staged) << i;
  }
  EXPECT_EQ(loads_of_x(mapping), static_cast<std::ptrdiff_t>(GetParam().size()))
      << "every operator loads its own tile";
  test::expect_program_computes_graph(graph, machine, mapping, 7);
}

std::string name_of_readers(const ::testing::TestParamInfo<std::vector<Staging>>& readers) {
  const char* const names[] = {"Plain", "Relu", "Halve"};
  std::string name;
  for (const Staging staging : readers.param) name += names[static_cast<std::size_t>(staging)];
  return name;
}

// x is tensor 0, and the first operator has the number 0 too.
INSTANTIATE_TEST_SUITE_P(
    Readers, StagedTiles,
    ::testing::Values(std::vector{Staging::kRelu, Staging::kHalve},
                      std::vector{Staging::kRelu, Staging::kNone},
                      std::vector{Staging::kNone, Staging::kRelu},
                      std::vector{Staging::kNone, Staging::kHalve, Staging::kNone},
                      std::vector{Staging::kRelu, Staging::kNone, Staging::kRelu}),
    name_of_readers);

}  // namespace
}  // namespace systole::mapper
