#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "mapper/mapping.h"
#include "model/graph/graph_builder.h"
#include "model/prune/prune_graph.h"
#include "support/network/encoder_run.h"
#include "support/random/random_machine.h"
#include "support/tlm/systemc_test.h"

/// Networks whose layers have other heads and neurons each, on machines of any shape.
namespace systole::testbench {
namespace {

using test::between;
using test::Random;
using test::Workload;

class PrunedPropertyTest : public test::SystemCTest {};

TEST_F(PrunedPropertyTest, AnyPrunedEncoderOnAnyMachineHasTheReferencesBits) {
  int runs = 0;
  for (std::uint64_t seed = 0; seed < 60 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    model::EncoderShape shape;
    shape.layers = 2;
    shape.heads = between(random, 2, 4);
    shape.width = shape.heads * 8;
    shape.hidden = between(random, 8, 48);
    shape.post_norm = between(random, 0, 1) == 0;
    const std::uint32_t length = between(random, 4, 20);
    Workload workload = test::encoder_workload(shape, length, 1);
    std::map<model::TensorId, model::GoneColumns> columns;
    for (const std::string layer : {"blocks.0.", "blocks.1."}) {
      const std::uint32_t gone_heads = between(random, 0, shape.heads - 1);
      model::GoneColumns heads(shape.width, false), neurons(shape.hidden, false);
      std::fill_n(heads.begin(), gone_heads * 8, true);
      std::fill_n(neurons.begin(), between(random, 0, shape.hidden - 1), true);
      columns[model::find_tensor(workload.graph, layer + "attn.context")] = heads;
      columns[model::find_tensor(workload.graph, layer + "mlp.gelu")] = neurons;
    }
    workload.graph = model::without_columns(workload.graph, columns);
    std::size_t second = 0;
    while (workload.graph.nodes[second].name.rfind("blocks.1.", 0) != 0) ++second;
    workload.graph =
        model::with_fewer_tokens(workload.graph, second, length, between(random, 1, length));
    hw::Machine machine = test::random_machine(random);
    machine.mapper.strategy = hw::MappingStrategy::kCost;
    machine.host.operators = hw::HostOperators::kNone;
    mapper::Mapping mapping;
    try {
      mapping = mapper::map_graph(workload.graph, machine);
    } catch (const hw::InputError&) {
      continue;  // too small, or without a unit
    }
    SimulationOptions options;
    options.check = true;
    const SimulationResult result = workload.simulate(mapping, machine, options);
    EXPECT_EQ(result.check.mismatches, 0U) << result.check.first;
    EXPECT_LE(result.bounds.front(), static_cast<double>(result.cycles.front()));
    ++runs;
  }
  EXPECT_GT(runs, 30);
}

}  // namespace
}  // namespace systole::testbench
