#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <systemc>
#include <vector>

#include "base/accounting.h"
#include "hw/machine/machine.h"
#include "hw/ring/pass.h"
#include "tlm/ring/compute_core.h"
#include "tlm/ring/ring_link.h"

namespace systole::tlm_model::dfx {

/// The next pass of each core; none: the end. What is in it must live until the pass after it is
/// asked for.
struct NextPass {
  std::vector<const hw::dfx::Pass*> passes;
  std::uint64_t host_bytes = 0;  ///< read from, or written to, the cores before it
};

/// A host that configures the cores over PCIe, and cores in a ring.
class RingSystem : public sc_core::sc_module {
 public:
  /// Called when all cores have ended a pass (and at first), at the simulated time of that.
  using Next = std::function<NextPass()>;

  /// `memories` and `engines`: by core; empty for a run without values, or with models alone.
  RingSystem(const sc_core::sc_module_name& name, const hw::Machine& machine,
             const std::vector<std::uint32_t>& register_elements,
             const std::vector<CoreMemory*>& memories, std::vector<HalfEngines> engines, Next next);

  [[nodiscard]] ComputeCore& core(std::size_t i) { return *cores_[i]; }
  [[nodiscard]] std::size_t cores() const { return cores_.size(); }
  /// Both directions of the link to the right of core i; bytes so far.
  [[nodiscard]] std::uint64_t link_bytes(std::size_t i) const;
  /// When each pass ended, ps: the first entry is the start.
  [[nodiscard]] const std::vector<std::uint64_t>& ends() const { return ends_; }
  [[nodiscard]] std::uint64_t host_ps() const { return host_ps_; }
  /// The host knows that the last pass has ended.
  [[nodiscard]] bool done() const { return done_; }
  /// Of all cores, until now.
  [[nodiscard]] std::vector<hw::BlockReport> reports() const;

 private:
  void host();
  void host_waits(double ns);

  const hw::Machine machine_;
  std::vector<std::unique_ptr<ComputeCore>> cores_;
  std::vector<std::unique_ptr<RingLink>> to_right_, to_left_;  ///< of core i
  Next next_;
  std::vector<std::uint64_t> ends_;
  std::uint64_t host_ps_ = 0;
  bool done_ = false;
};

}  // namespace systole::tlm_model::dfx
