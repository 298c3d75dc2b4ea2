#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/postop/postop.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// A block in RTL that does whole chains.
class ChainTwin {
 public:
  virtual ~ChainTwin() = default;
  [[nodiscard]] virtual const char* block() const = 0;
  [[nodiscard]] virtual bool serves(const hw::Chain& chain) const = 0;
  /// The words of a tile behind the chain, before they saturate to the output type. Of `operands`
  /// all but the output. `expected`: what the model makes of it, shown in the waveform.
  virtual RtlCycles run(const hw::Chain& chain, const hw::ChainOperands& operands,
                        std::vector<std::int32_t>& words, const std::int32_t* expected) = 0;
  /// Cycles that run() must take: hw::chain_cycles().
  [[nodiscard]] virtual std::uint64_t contract(const hw::Chain& chain, std::size_t rows,
                                               std::size_t cols) const = 0;
  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired
};

/// The twin of the whole pipeline, null if `backends` does not ask for it. Throws InputError for a
/// number of lanes that no RTL is built for.
[[nodiscard]] std::unique_ptr<ChainTwin> make_chain_twin(const hw::Machine::Backends& backends,
                                                         std::uint32_t lanes,
                                                         const RtlOptions& options);

}  // namespace systole::testbench
