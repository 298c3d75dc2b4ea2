#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"
#include "mapper/mapping.h"
#include "model/build/host_operators.h"
#include "model/build/seq2seq_graph.h"
#include "support/network/encoder_run.h"
#include "support/network/random_seq2seq.h"
#include "support/random/random_machine.h"
#include "support/tlm/systemc_test.h"
#include "testbench/network/networks.h"
#include "testbench/network/tensors.h"

/// Both parts of an encoder-decoder at once, on machines of any shape.
namespace systole::testbench {
namespace {

using test::between;
using test::Random;

class PairPropertyTest : public test::SystemCTest {};

TEST_F(PairPropertyTest, AnyPairOfTextsOnAnyMachineHasTheReferencesBits) {
  constexpr std::uint64_t kPairs = 40;
  int runs = 0, padded = 0;
  for (std::uint64_t seed = 0; seed < kPairs && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    hw::Machine machine = test::random_machine(random);
    machine.mapper.strategy = hw::MappingStrategy::kCost;
    test::RandomSeq2Seq made(random);
    const model::IntegerSeq2Seq network = made.integers(machine);
    const std::uint32_t source = between(random, 1, 12), target = between(random, 1, 12);
    test::Workload workload;
    workload.graph =
        model::for_machine(model::make_seq2seq_graph(network, source, target), machine);
    workload.inputs.push_back(embedding_bytes(
        model::embed_pair(network, made.words(source, network.encoder.shape.vocabulary),
                          made.words(target, network.decoder.shape.vocabulary)),
        workload.graph.tensors[input_tensor(workload.graph)].type));
    if (source > 1 && between(random, 0, 1) == 0) {
      model::attend_to_source(workload.graph, between(random, 1, source - 1));
      ++padded;
    }
    mapper::Mapping mapping;
    try {
      mapping = mapper::map_graph(workload.graph, machine);
    } catch (const hw::InputError&) {
      continue;  // too small
    }
    SimulationOptions options;
    options.check = true;
    const SimulationResult result = workload.simulate(mapping, machine, options);
    EXPECT_EQ(result.check.mismatches, 0U) << result.check.first;
    EXPECT_EQ(result.check.operators, mapping.program.operators.size());
    EXPECT_LE(result.bounds.front(), static_cast<double>(result.cycles.front()));
    ++runs;
  }
  EXPECT_GT(runs, 25);
  EXPECT_GT(padded, 8);
}

}  // namespace
}  // namespace systole::testbench
