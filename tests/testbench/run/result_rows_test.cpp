#include "testbench/run/result_rows.h"

#include <gtest/gtest.h>

#include <cstddef>

#include "hw/description/machine_text.h"
#include "model/graph/reference.h"
#include "support/network/encoder_run.h"
#include "support/random/random_machine.h"
#include "support/tlm/systemc_test.h"
#include "testbench/network/tensors.h"
#include "testbench/run/tensor_file.h"

namespace systole::testbench {
namespace {

class ResultRowsTest : public test::SystemCTest {};

// Tiles come in the order of the mapping, some from rings, some in part from each head.
TEST_F(ResultRowsTest, MakeTheTensorsOfTheReferenceOnEveryMachine) {
  test::Random random(21);
  const test::Workload workload = test::encoder_workload({2, 24, 3, 40, true}, 19, 2);
  const model::Tensor& input = workload.graph.tensors[input_tensor(workload.graph)];
  model::Reference reference(workload.graph, {false, false});
  std::size_t compared = 0;
  for (int i = 0; i < 24; ++i) {
    const auto [machine, mapping] = test::random_fit(random, workload.graph);
    SCOPED_TRACE(hw::to_toml(machine));
    SimulationOptions options;
    options.tensors = find_tensors(".*", workload.graph, mapping);
    const SimulationResult result = workload.simulate(mapping, machine, options);
    ASSERT_EQ(result.tensors.size(), options.tensors.size());
    for (std::size_t run = 0; run < workload.inputs.size(); ++run) {
      reference.set_input(input.name, widen(workload.inputs[run], input.type));
      reference.run();
      for (std::size_t t = 0; t < options.tensors.size(); ++t) {
        const model::TensorId id = options.tensors[t];
        EXPECT_EQ(result.tensors[t].at(run), reference.bytes(id))
            << workload.graph.tensors[id].name << ", inference " << run;
        ++compared;
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(compared, 500U);
}

}  // namespace
}  // namespace systole::testbench
