#include "testbench/run/rtl_engines.h"

#include <memory>
#include <utility>

#include "testbench/rtl/engine/accumulator_engine.h"
#include "testbench/rtl/engine/array_engine.h"
#include "testbench/rtl/engine/attention_engine.h"
#include "testbench/rtl/engine/chain_twin.h"
#include "testbench/rtl/engine/mix_engine.h"
#include "testbench/rtl/engine/postop_engine.h"

namespace systole::testbench {

tlm_model::Engines make_engines(const hw::Machine& machine, const RtlOptions& options,
                                RtlReport& report) {
  const hw::Machine::Backends& backend = machine.backend;
  tlm_model::Engines engines = tlm_model::make_models(machine);
  if (backend.systolic_array == hw::Backend::kRtl) {
    engines.array = std::make_unique<ArrayRtlEngine>(
        machine.array, options.for_block("systolic_array", machine.array.cols),
        report["systolic_array"]);
  }
  if (backend.accumulator_sram == hw::Backend::kRtl) {
    engines.accumulator = std::make_unique<AccumulatorRtlEngine>(
        machine, options.for_block("accumulator_sram", machine.array.cols),
        report["accumulator_sram"]);
  }
  auto twins = make_stage_twins(backend, machine.postop.lanes, options);
  auto pipeline = make_chain_twin(backend, machine.postop.lanes, options);
  if (!twins.empty() || pipeline) {
    engines.postop = std::make_unique<PostopRtlEngine>(machine.postop.lanes, std::move(twins),
                                                       report, std::move(pipeline));
  }
  if (backend.sparser_line == hw::Backend::kRtl || backend.denser_line == hw::Backend::kRtl) {
    engines.attention =
        std::make_unique<AttentionRtlEngine>(machine.attention, backend, options, report);
  }
  if (backend.ae_decoder == hw::Backend::kRtl) {
    engines.mix = std::make_unique<MixRtlEngine>(
        machine.attention, options.for_block("ae_decoder", machine.attention.macs_per_line),
        report["ae_decoder"]);
  }
  return engines;
}

}  // namespace systole::testbench
