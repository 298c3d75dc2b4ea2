#include "tlm/core/core.h"

#include <initializer_list>
#include <string>
#include <utility>

#include "tlm/common/unbound_sockets.h"

namespace systole::tlm_model {

Engines make_models(const hw::Machine& machine) {
  return {std::make_unique<hw::ArrayModel>(machine.array),
          std::make_unique<hw::PostopModel>(machine.result_lanes()), nullptr,
          std::make_unique<hw::AttentionModel>(), std::make_unique<hw::MixModel>()};
}

Core::Mmu::Mmu(const hw::Machine& machine, const DmaFactory& make_dma)
    : tlb(machine),
      load_walker(make_dma("load_walker", machine, DmaUse::kLoadWalker)),
      store_walker(make_dma("store_walker", machine, DmaUse::kStoreWalker)) {}

Core::Core(const sc_core::sc_module_name& name, const hw::Machine& machine, Engines engines,
           bool functional, const DmaFactory& make_dma)
    : sc_module(name),
      processor("processor", machine, make_dma),
      memory(machine, engines.accumulator.get()),
      engines_(std::move(engines)),
      attention(machine.attention.lines == 0
                    ? nullptr
                    : std::make_unique<AttentionUnit>("attention", machine, *engines_.postop,
                                                      *engines_.attention, *engines_.mix,
                                                      functional, make_dma)),
      load("load", machine, processor, memory, functional, make_dma),
      array("array", machine, processor, memory, *engines_.array, attention.get(), functional),
      store("store", machine, processor, memory, *engines_.postop, *engines_.mix, functional,
            make_dma),
      loops(machine.unroller.loops == 0
                ? nullptr
                : std::make_unique<LoopUnit>("loops", machine, processor, *engines_.array,
                                             *engines_.postop, functional)),
      mmu(machine.tlb.entries == 0 ? nullptr : std::make_unique<Mmu>(machine, make_dma)) {
  SC_HAS_PROCESS(Core);
  explain_unbound_sockets();
  if (mmu) {
    load.dma->translate_by(mmu->tlb, *mmu->load_walker);
    store.write_dma->translate_by(mmu->tlb, *mmu->store_walker);
    store.read_dma->translate_by(mmu->tlb, *mmu->store_walker);
  }
  registers.register_b_transport(this, &Core::b_transport);
  SC_METHOD(finish);
  sensitive << processor.finished();
  dont_initialize();
  SC_METHOD(raise_interrupt);
  sensitive << processor.host_called();
  dont_initialize();
  SC_METHOD(drive_interrupt);
  sensitive << pending_changed();
  dont_initialize();
}

void Core::b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  serve(payload, delay, processor.clock());
}

void Core::start_program(std::uint64_t address) {
  started_ = processor.cycle();
  if (on_run_) on_run_(true);
  load.forget_chain();
  store.forget_chain();
  processor.start(address);
}

void Core::finish() {
  if (!processor.fault().empty()) {
    SC_REPORT_WARNING("/systole/core", processor.fault().c_str());
  }
  if (on_run_) on_run_(false);
  complete(processor.cycle() - started_);
}

bool Core::can_share_values() const noexcept {
  return engines_.array->is_timeless() && engines_.postop->is_timeless() &&
         engines_.attention->is_timeless() && engines_.mix->is_timeless() &&
         engines_.accumulator == nullptr && memory.observer == nullptr;
}

void Core::share_values(ValueQueue& values) noexcept {
  memory.values = &values;
  processor.share_values(values);
  if (attention) attention->share_values(values);
}

std::vector<DmaPort*> Core::ports() {
  std::vector<DmaPort*> ports = {processor.fetch.get(), load.dma.get(), store.write_dma.get(),
                                 store.read_dma.get()};
  if (attention) {
    for (DmaPort* port : attention->ports()) ports.push_back(port);
  }
  if (mmu) {
    ports.push_back(mmu->load_walker.get());
    ports.push_back(mmu->store_walker.get());
  }
  return ports;
}

void Core::set_counting(bool on, std::uint64_t cycle) {
  processor.set_counting(on, cycle);
  for (ExecutionUnit* unit : std::initializer_list<ExecutionUnit*>{&load, &array, &store}) {
    unit->set_counting(on, cycle);
  }
  if (attention) attention->set_counting(on, cycle);
  if (loops) loops->set_counting(on, cycle);
}

std::vector<hw::BlockReport> Core::reports(std::uint64_t cycles) const {
  std::vector<hw::BlockReport> reports = {processor.report(cycles), load.report(cycles),
                                          array.report(cycles), store.report(cycles)};
  if (attention) reports.push_back(attention->report(cycles));
  if (loops) reports.push_back(loops->report(cycles));
  return reports;
}

void Core::watch(SignalRecorder& recorder) {
  const std::string prefix = std::string(name()) + ".";
  memory.scratchpad.watch(recorder, prefix + "scratchpad", processor.clock());
  memory.accumulator.watch(recorder, prefix + "accumulator", processor.clock());
  if (mmu) mmu->tlb.watch(recorder, prefix + "tlb", processor.clock());
}

}  // namespace systole::tlm_model
