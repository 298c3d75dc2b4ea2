#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "hw/description/machine_text.h"
#include "model/build/text_graph.h"
#include "model/checkpoint/text_checkpoint.h"
#include "model/quantise/quantiser.h"
#include "support/network/encoder_run.h"
#include "support/network/tiny_text.h"
#include "support/temp_directory.h"
#include "support/tlm/systemc_test.h"

/// Texts whose rows have their own scales, on machines of any shape.
namespace systole::testbench {
namespace {

using test::TinyText;

class RowScalesTest : public test::SystemCTest {
 protected:
  /// A text of `length` seeded tokens.
  [[nodiscard]] test::Workload workload(const TinyText& file, std::uint32_t length) const {
    const model::TextCheckpoint real =
        model::load_text_checkpoint(file.write(directory_.path("t.safetensors")));
    const model::TokenIds ids = model::load_token_ids(
        TinyText::write_ids(directory_.path("ids.safetensors"), 8, length), real.shape);
    model::QuantiserOptions options;
    options.row_scales = true;
    const model::IntegerText text = model::quantise(real, ids, options);
    test::Workload made{model::make_text_graph(text, length), {}};
    const std::vector<std::int32_t> codes = model::embed_tokens(text, ids.text(0).ids);
    for (const std::int32_t code : codes) {  // s16
      const auto word = static_cast<std::uint32_t>(code);
      if (made.inputs.empty()) made.inputs.emplace_back();
      made.inputs.front().push_back(static_cast<std::uint8_t>(word & 0xffU));
      made.inputs.front().push_back(static_cast<std::uint8_t>(word >> 8U & 0xffU));
    }
    return made;
  }

  TempDirectory directory_;
};

TEST_F(RowScalesTest, GiveTheSameValuesOnAnyMachine) {
  test::Random random(29);
  int machines = 0;
  for (const std::uint32_t length : {1U, 5U, 11U}) {
    for (const TinyText& file : {TinyText::bert(), TinyText::classifier(), TinyText::gpt2()}) {
      const test::Workload work = workload(file, length);
      const std::vector<std::vector<std::uint8_t>> expected = test::expected_outputs(work);
      for (int i = 0; i < 4; ++i) {
        const auto [machine, mapping] = test::random_fit(random, work.graph);
        SimulationOptions options;
        options.check = true;
        const SimulationResult result = work.simulate(mapping, machine, options);
        EXPECT_EQ(result.check.mismatches, 0U) << result.check.first << "\n"
                                               << hw::to_toml(machine);
        EXPECT_EQ(result.outputs, expected) << hw::to_toml(machine);
        EXPECT_GE(static_cast<double>(result.cycles.front()), result.bounds.front())
            << hw::to_toml(machine);
        SimulationOptions timing;
        timing.functional = false;
        EXPECT_EQ(work.simulate(mapping, machine, timing).cycles, result.cycles);
        ++machines;
      }
    }
  }
  EXPECT_EQ(machines, 36);
}

}  // namespace
}  // namespace systole::testbench
