#include "mapper/step_mapper.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hw/description/machine_file.h"
#include "model/build/decode_graph.h"
#include "model/seeded/shapes.h"

namespace systole::mapper {
namespace {

/// Bytes on the heap; 0 where a sanitizer has one of its own.
std::size_t heap_bytes() { return ::mallinfo2().uordblks; }

TEST(StepMapper, KeepsNothingOfStepsThatAreOver) {
  constexpr std::uint32_t kSteps = 240;
  model::EncoderShape shape{1, 16, 1, 16};
  shape.causal = true;
  const hw::Machine machine = hw::find_machine("transformer");
  model::Graph graph =
      model::make_decode_graph(model::make_seeded_layers(shape, kSteps, 1), kSteps, "steps", 1.0);
  StepMapper mapper(graph, machine);
  const auto map_to = [&](std::uint32_t first, std::uint32_t end) {
    for (std::uint32_t token = first; token < end; ++token) {
      model::move_to_token(graph, token);
      static_cast<void>(mapper.map(graph, token == 0));
    }
    return heap_bytes();
  };
  const std::size_t early = map_to(0, 40);
  const std::size_t late = map_to(40, kSteps);
  // A step has some 50 KB of tilings that it looked up.
  EXPECT_LT(late, early + 100'000) << "after " << kSteps << " steps, " << early << " after 40";
}

/// The bytes of a program, as memory has them.
std::vector<std::uint8_t> code_of(const Mapping& mapping) { return mapping.image.back().bytes; }

// Whether it takes the memory of a mapping before it, of a longer or a shorter program, or none.
TEST(StepMapper, GivesTheSameInTheMemoryOfAnother) {
  constexpr std::uint32_t kSteps = 300;
  model::EncoderShape shape{2, 64, 2, 128};
  shape.causal = true;
  const hw::Machine machine = hw::find_machine("transformer");
  model::Graph graph =
      model::make_decode_graph(model::make_seeded_layers(shape, kSteps, 1), kSteps, "steps", 1.0);
  StepMapper mapper(graph, machine), again(graph, machine);
  Mapping last;
  std::size_t longer = 0, shorter = 0;
  for (std::uint32_t i = 0; i < kSteps; ++i) {
    model::move_to_token(graph, i * 97 % kSteps);
    const Mapping alone = mapper.map(graph, i == 0);
    const std::size_t before = last.program.commands.size();
    last = again.map(graph, i == 0, std::move(last));
    longer += last.program.commands.size() > before ? 1 : 0;
    shorter += last.program.commands.size() < before ? 1 : 0;
    ASSERT_EQ(code_of(last), code_of(alone)) << "step " << i;
    ASSERT_EQ(last.program.commands, alone.program.commands) << "step " << i;
    ASSERT_EQ(last.image.size(), alone.image.size()) << "step " << i;
  }
  EXPECT_GT(longer, 1U);
  EXPECT_GT(shorter, 0U);
}

}  // namespace
}  // namespace systole::mapper
