#include "testbench/own/own_driver.h"

#include <algorithm>

namespace systole::testbench {
namespace {

constexpr std::uint32_t kMostLanes = 64;  // a lane mask is a 64-bit word

OwnDriver chain_driver(const char* block, const char* header, const char* unit) {
  return {block, block,         {{"lanes", "Lanes", 1, kMostLanes, 16}}, header, "ChainRtl",
          unit,  "{0}, options"};
}

OwnDriver line_driver(const char* block, const char* header, const char* interface,
                      const char* unit) {
  return {block, block, {{"macs", "Macs", 8, 8, 8}}, header, interface, unit, "options"};
}

OwnDriver half_driver(const char* block, const char* unit) {
  return {block,         block, {},        "testbench/rtl/ring/fp16_unit.h",
          "Fp16UnitRtl", unit,  "options", "-GLanes=16"};
}

/// The sizes in the order of core_size().
OwnDriver core_driver() {
  return {"core",
          "core",
          {{"lanes", "Size", 4, 64, 16},
           {"load_queue", "LoadQueue", 2, 64, 8},
           {"compute_queue", "ComputeQueue", 2, 64, 16},
           {"store_queue", "StoreQueue", 2, 64, 4},
           {"fetch_commands", "FetchCommands", 2, 64, 16},
           {"chain_slots", "ChainSlots", 2, 256, 16},
           {"stages", "Stages", 1, 8, 8},
           {"parameter_beats", "ParameterBeats", 4, 1024, 64},
           {"row_statistics", "Statistics", 64, 65536, 1024},
           {"operand_bytes", "OperandBytes", 1024, 1 << 22, 1 << 16},
           {"request_bytes", "RequestBytes", 16, 1024, 64},
           {"outstanding", "Outstanding", 2, 64, 16},
           {"scratchpad_banks", "Banks", 2, 64, 4},
           {"scratchpad_rows", "BankWords", 4, 1 << 20, 1024},
           {"accumulator_banks", "SumBanks", 2, 64, 2},
           {"accumulator_rows", "SumBankRows", 8, 1 << 20, 2048},
           {"preop", "Preop", 0, 1, 0}},
          "testbench/rtl/core/core_unit.h",
          "CoreBuild",
          "CoreBuildOf<Model>",
          "core_size({{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, {12}, {13}, "
          "{14}, {15}, {16}}})"};
}

std::vector<OwnDriver> make_drivers() {
  const char* const stage = "testbench/rtl/postop/stage_unit.h";
  const char* const line = "testbench/rtl/attention/attention_line_unit.h";
  return {
      {"systolic_array",
       "systolic_array",
       {{"rows", "Rows", 2, 128, 16}, {"cols", "Cols", 2, 128, 16}},
       "testbench/rtl/array/array_command.h",
       "SystolicArrayRtl",
       "ArrayBuild<Model, {0}>",
       "arguments.overlap, options"},
      {"output_array",
       "systolic_array",
       {{"rows", "Rows", 2, 128, 64}, {"cols", "Cols", 2, 128, 8}},
       "testbench/rtl/array/output_command.h",
       "SystolicArrayRtl",
       "OutputBuild<Model, {0}, {1}>",
       "arguments.overlap, options"},
      {"accumulator_sram",
       "accumulator_sram",
       {{"cols", "Cols", 2, 32, 16},
        {"ports", "Ports", 1, 2, 2},
        {"rows", "RowsPerBank", 1, 65536, 2048}},
       "testbench/rtl/array/accumulator_sram_unit.h",
       "AccumulatorSramRtl",
       "AccumulatorSramUnit<Model>",
       "{0}, arguments.banks, options"},
      chain_driver("requantizer", stage, "StageUnit<RequantizerPins, Model>"),
      chain_driver("divider", stage, "StageUnit<DividerPins, Model>"),
      chain_driver("i_gelu", stage, "StageUnit<GeluPins, Model>"),
      chain_driver("i_exp", "testbench/rtl/nonlinear/i_exp_unit.h", "Exponential<Model>"),
      chain_driver("softmax_unit", stage, "StageUnit<SoftmaxPins, Model>"),
      {"i_sqrt",
       "i_sqrt",
       {},
       "testbench/rtl/nonlinear/i_sqrt_unit.h",
       "ChainRtl",
       "SquareRoot<Model>",
       "options"},
      chain_driver("layernorm_unit", stage, "StageUnit<LayerNormPins, Model>"),
      chain_driver("postop_pipeline", "testbench/rtl/postop/postop_pipeline_unit.h",
                   "PostopPipeline<Model>"),
      line_driver("sparser_line", line, "AttentionLineRtl", "LineUnit<Model, true>"),
      line_driver("denser_line", line, "AttentionLineRtl", "LineUnit<Model, false>"),
      {"attention_softmax",
       "attention_softmax",
       {{"lanes", "Lanes", 1, 31, 8}},
       "testbench/rtl/attention/attention_softmax_unit.h",
       "AttentionSoftmaxRtl",
       "AttentionSoftmaxUnit<Model>",
       "{0}, options"},
      line_driver("head_mix_line", "testbench/rtl/attention/head_mix_line_unit.h", "HeadMixLineRtl",
                  "HeadMixUnit<Model>"),
      half_driver("fp16_mul", "HalfUnit<Model, false>"),
      half_driver("fp16_add", "HalfUnit<Model, true>"),
      {"mpu_tree",
       "mpu_tree",
       {{"depth", "Depth", 16, 128, 64}, {"partial_sums", "Slots", 1, 256, 16}},
       "testbench/rtl/ring/mpu_tree_unit.h",
       "MpuTreeRtl",
       "MpuTreeUnit<Model>",
       "arguments.matrix, options"},
      {"ring_router",
       "ring_router",
       {},
       "testbench/rtl/ring/ring_router_unit.h",
       "RingRouterRtl",
       "RingRouterUnit<Model>",
       "options"},
      core_driver(),
  };
}

}  // namespace

const std::vector<OwnDriver>& own_drivers() {
  static const std::vector<OwnDriver> kDrivers = make_drivers();
  return kDrivers;
}

const OwnDriver* find_own_driver(const std::string& block) {
  const auto& all = own_drivers();
  const auto driver = std::find_if(all.begin(), all.end(),
                                   [&](const OwnDriver& one) { return block == one.block; });
  return driver == all.end() ? nullptr : &*driver;
}

std::vector<std::string> own_blocks() {
  std::vector<std::string> blocks;
  for (const OwnDriver& driver : own_drivers()) blocks.emplace_back(driver.block);
  return blocks;
}

std::vector<std::string> own_blocks_of_machines() {
  std::vector<std::string> blocks;
  for (const OwnDriver& driver : own_drivers()) {
    if (blocks.empty() || blocks.back() != driver.machine) blocks.emplace_back(driver.machine);
  }
  return blocks;
}

}  // namespace systole::testbench
