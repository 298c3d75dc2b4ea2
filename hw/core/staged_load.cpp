#include "hw/core/staged_load.h"

#include "hw/array/accumulator.h"
#include "hw/dma/sum_loads.h"

namespace systole::hw {

StagedLoad::StagedLoad(const cmd::Load& load, const Chain& chain, const Machine& machine, bool sums)
    : sram_(machine.scratchpad),
      code_(sums ? accumulator_code(machine) : scratchpad_code(machine)),
      word_bytes_(sums ? accumulator_word_bytes(machine) : scratchpad_word_bytes(machine)),
      settling_(sums ? kSumLoadCycles : kBankWriteCycles),
      arrivals_(load.m, load.n, machine.preop.lanes, machine.bus.width_bytes),
      parameters_(load.pre->parameters, parameter_words(chain), load.n, machine.preop.lanes,
                  scratchpad_word_bytes(machine)),
      command_{0, 0, 0, chain_key(chain), chain.stages.size(), parameters_.count()},
      flow_(chain_cycles(chain, load.m, load.n, machine.preop.lanes), chain, {load.m, load.n, 0, 0},
            machine.preop.lanes, kAccumulatorReadCycles, ResultFlow::Inputs::kRows),
      shape_{load.n, machine.preop.lanes, 8 * bytes_of(chain.out), word_bytes_},
      to_{load.to.address * bytes_of(chain.out), load.to.pitch * bytes_of(chain.out), load.m,
          load.n * bytes_of(chain.out)},
      rows_left_(load.m) {}

}  // namespace systole::hw
