#include <gtest/gtest.h>

#include "hw/description/machine_file.h"
#include "mapper/mapping.h"
#include "model/seeded/gpt_layer_graph.h"
#include "support/input_error.h"
#include "support/network/mapped_run.h"

namespace systole::mapper {
namespace {

using hw::FusionLevel;
using model::GptLayerShape;

TEST(GptLayerGraph, GivesTheSameBytesHoweverItIsFused) {
  for (const GptLayerShape& shape :
       {GptLayerShape{32, 2, 12, 12, true}, GptLayerShape{32, 2, 12, 5, false, true}}) {
    for (const FusionLevel level : {FusionLevel::kOff, FusionLevel::kPost, FusionLevel::kAll}) {
      hw::Machine machine = hw::find_machine("transformer");
      machine.mapper.fusion = level;
      machine.preop.lanes = machine.postop.lanes;
      const model::Graph graph = model::make_gpt_layer_graph(shape, machine.datapath, 1, false);
      SCOPED_TRACE(graph.name + ", " + std::to_string(static_cast<int>(level)));
      test::expect_program_computes_graph(graph, machine, map_graph(graph, machine), 2);
    }
  }
}

TEST(GptLayerGraph, RefusesSizesThatDoNotGoTogether) {
  const hw::Machine::Datapath datapath;
  EXPECT_EQ(input_error_of([&] {
              (void)model::make_gpt_layer_graph({32, 2, 4, 5}, datapath, 1, true);
            }),
            "GPT-2 layer: 5 tokens of 4, expected 1 or more, and no more");
}

}  // namespace
}  // namespace systole::mapper
