#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <systemc>
#include <vector>

#include "base/accounting.h"
#include "hw/machine/machine.h"
#include "hw/stream/stream_core.h"
#include "tlm/common/time.h"
#include "tlm/memory/memory_target.h"

namespace systole::tlm_model {

/// The memory that a streaming core is fed from. Its wrapper streams beats ahead of their use, so
/// requests take no time of their own: the core's streams do.
class SharedMemory final : public MemoryTarget {
 public:
  SharedMemory(const sc_core::sc_module_name& name, std::uint64_t bytes);

  void peek(std::uint64_t address, void* data, std::size_t bytes) const;
  void poke(std::uint64_t address, const void* data, std::size_t bytes);

 private:
  void move(bool write, RequestBatch::Request& request) override;
  void copy(bool write, std::uint64_t address, unsigned char* data, std::uint64_t bytes) override;
  bool offer(std::uint64_t address, tlm::tlm_dmi& dmi) override;

  std::vector<std::uint8_t> bytes_;
};

/// A streaming attention core: hw::stream::StreamCore for its time, and an initiator for the values
/// of a layer. The simulation kernel sees tiles, not beats.
class StreamUnit final : public sc_core::sc_module {
 public:
  /// A layer.
  struct Job {
    std::vector<hw::stream::Work> works;
    /// Reads the operands and computes; returns the states of the softmax rows, if there are any.
    /// Empty: no values.
    std::function<const std::vector<hw::stream::SoftmaxRow>*(StreamUnit&)> begin;
    std::function<void(StreamUnit&)> end;  ///< writes the results
  };
  /// Fills in the next job; false: there is none.
  using Next = std::function<bool(Job&)>;

  tlm_utils::simple_initiator_socket<StreamUnit> socket{"socket"};

  StreamUnit(const sc_core::sc_module_name& name, const hw::Machine& machine, Next next);

  void read(std::uint64_t address, void* data, std::size_t bytes);
  void write(std::uint64_t address, const void* data, std::size_t bytes);

  /// When a job was started, and when its last result had left; and its phases.
  struct Times {
    std::uint64_t begin = 0, end = 0;
    std::vector<hw::stream::PhaseTimes> phases;
  };
  [[nodiscard]] const std::vector<Times>& times() const noexcept { return times_; }
  [[nodiscard]] bool done() const noexcept { return done_; }
  [[nodiscard]] hw::BlockReport report() const;
  void trace(sc_core::sc_trace_file* file) const override;

 private:
  void run();
  void transfer(tlm::tlm_command command, std::uint64_t address, void* data, std::size_t bytes);

  const hw::Machine machine_;
  const Clock clock_;
  const Next next_;
  hw::stream::StreamCore core_;
  std::vector<Times> times_;
  std::uint64_t read_bytes_ = 0, written_bytes_ = 0;
  bool done_ = false;
  std::uint8_t phase_ = hw::stream::kPhases;  ///< traced; none
  std::uint64_t beats_ = 0;                   ///< traced
};

/// A streaming core and its memory.
class StreamSystem final : public sc_core::sc_module {
 public:
  SharedMemory memory;
  StreamUnit unit;

  StreamSystem(const sc_core::sc_module_name& name, const hw::Machine& machine,
               std::uint64_t memory_bytes, StreamUnit::Next next);

  [[nodiscard]] bool done() const { return unit.done(); }
  [[nodiscard]] std::vector<hw::BlockReport> reports() const { return {unit.report()}; }
};

}  // namespace systole::tlm_model
