#include "testbench/run/rtl_engines.h"

#include <utility>

#include "testbench/rtl/engine/engines.h"

namespace systole::testbench {

tlm_model::Engines make_engines(const hw::Machine& machine, const RtlOptions& options,
                                RtlReport& report) {
  const hw::Machine::Backends& backend = machine.backend;
  tlm_model::Engines engines = tlm_model::make_models(machine);
  const auto in_rtl = [](hw::Backend block) { return block == hw::Backend::kRtl; };
  if (in_rtl(backend.systolic_array)) {
    engines.array = make_array_engine(machine.array, options, report);
  }
  if (in_rtl(backend.accumulator_sram)) {
    engines.accumulator = make_accumulator_engine(machine, options, report);
  }
  if (auto postop = make_postop_engine(backend, machine.postop.lanes, options, report)) {
    engines.postop = std::move(postop);
  }
  if (in_rtl(backend.sparser_line) || in_rtl(backend.denser_line)) {
    engines.attention = make_attention_engine(machine.attention, backend, options, report);
  }
  if (in_rtl(backend.ae_decoder)) {
    engines.mix = make_mix_engine(machine.attention, options, report);
  }
  return engines;
}

}  // namespace systole::testbench
