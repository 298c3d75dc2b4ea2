#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <systemc>
#include <tlm>
#include <utility>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/program/program.h"
#include "tlm/host/host_compute.h"

namespace systole::tlm_model {

/// The host CPU as the accelerator sees it: it writes inputs to memory, starts the core through its
/// registers, sleeps until the interrupt, and reads results. If the machine leaves operators to it,
/// an interrupt may also ask for one of them (register HOST_CALL).
class Host : public sc_core::sc_module {
 public:
  /// States shown in waveforms.
  enum State : std::uint8_t {
    kSetup,
    kWriteInputs,
    kStart,
    kSleep,
    kAnswer,
    kReadOutputs,
    kDone,
    kReadOperands,
    kCompute,
    kWriteResults,
    kStates  ///< how many there are
  };

  tlm_utils::simple_initiator_socket<Host> socket{"socket"};
  sc_core::sc_in<bool> interrupt{"interrupt"};

  /// One piece of memory to write before, or to read after, an inference.
  struct Buffer {
    std::uint64_t address;
    std::vector<std::uint8_t> bytes;
  };
  struct Job {
    std::vector<Buffer> inputs;
    std::vector<Buffer> outputs;  ///< filled
    /// Address of the program to run; none: that of the job before.
    std::optional<std::uint64_t> program;
    std::uint64_t cycles = 0;  ///< core cycles from start to completion, as the core counts them
  };
  /// Prepares the next job, or returns false when there is none left. It may wait.
  using Prepare = std::function<bool(Job&)>;
  /// Takes the results of a job.
  using Deliver = std::function<void(const Job&)>;

  std::unique_ptr<HostCompute> compute;  ///< nullptr: the host computes nothing

  /// Starts the core on the program at `program_address`. `functional` off: the same cycles without
  /// values.
  Host(const sc_core::sc_module_name& name, const hw::Machine& machine,
       std::uint64_t core_registers, std::uint64_t program_address, bool functional);

  /// The software of the next program: what its commands for the host call. Must outlive the run.
  void set_functions(const std::vector<hw::HostFunction>& functions) { functions_ = &functions; }
  void set_work(Prepare prepare, Deliver deliver);

  /// What happens after the last job; by default the simulation stops.
  void set_on_done(std::function<void()> on_done) { on_done_ = std::move(on_done); }

  /// There are no more jobs.
  [[nodiscard]] bool done() const noexcept { return state_ == kDone; }

  /// Moves bytes without taking simulated time. Throws std::out_of_range where no memory answers.
  void debug(tlm::tlm_command command, std::uint64_t address, std::uint8_t* data,
             std::size_t bytes);

  void trace(sc_core::sc_trace_file* file) const override;

 private:
  void run();
  void transfer(tlm::tlm_command command, std::uint64_t address, std::uint8_t* data,
                std::size_t bytes);
  void sleep();
  /// Acknowledges the interrupt, and executes the command that it asked for. False: it asked for
  /// none, the core is done.
  bool answer();
  /// The time since the last account was no work, or waited for `cause`.
  void account_idle();
  void account_stall(HostCompute::Cause cause);
  void write_register(std::uint64_t offset, std::uint64_t value);
  [[nodiscard]] std::uint64_t read_register(std::uint64_t offset);

  const hw::Machine::Host params_;
  const std::uint64_t registers_;
  const std::vector<hw::HostFunction>* functions_ = nullptr;
  const std::uint64_t program_address_;
  Prepare prepare_;
  Deliver deliver_;
  std::function<void()> on_done_ = [] { sc_core::sc_stop(); };
  std::uint8_t state_ = kSetup;   ///< traced
  std::uint32_t inferences_ = 0;  ///< traced: begun so far
};

}  // namespace systole::tlm_model
