#include "tlm/dma/dma_port.h"

#include "tlm/dma/request_dma.h"

namespace systole::tlm_model {

void DmaPort::translate_by(Tlb& /*tlb*/, DmaPort& /*walker*/) {
  SC_REPORT_ERROR("/systole/dma", (std::string(name()) + " does not translate addresses").c_str());
}

std::uint32_t outstanding_requests(const hw::Machine& machine, DmaUse use) {
  switch (use) {
    case DmaUse::kStore:
    case DmaUse::kAttentionOutput:
      return machine.dma.outstanding_writes;
    case DmaUse::kLoadWalker:
    case DmaUse::kStoreWalker:
      return 1;
    default:
      return machine.dma.outstanding_reads;
  }
}

std::unique_ptr<DmaPort> make_request_dma(const char* name, const hw::Machine& machine,
                                          DmaUse use) {
  return std::make_unique<RequestDma>(name, machine, outstanding_requests(machine, use));
}

}  // namespace systole::tlm_model
