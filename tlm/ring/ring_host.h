#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <systemc>
#include <tlm>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/ring/pass.h"

namespace systole::tlm_model::dfx {

/// Of one core: where its registers are, and where its next program goes.
struct HostedCore {
  std::uint64_t registers = 0;  ///< byte address on the cards' bus
  std::uint64_t program = 0;    ///< byte address of the core's programs, as the core sees its DDR
  std::uint64_t on_bus = 0;     ///< the same on the cards' bus
  std::uint64_t room = 0;       ///< bytes there
};

/// Who starts the cores, pass after pass. Over PCIe it configures them, reads what a token is drawn
/// from, and learns of the end. The step from one pass to the next is made on the cards, as by
/// DFX's controller, and takes no time: programs are written without time, PROGRAM and CONTROL of
/// each core by the cards' bus.
class RingHost : public sc_core::sc_module {
 public:
  tlm_utils::simple_initiator_socket<RingHost> pcie{"pcie"};
  tlm_utils::simple_initiator_socket<RingHost> card{"card"};
  sc_core::sc_vector<sc_core::sc_in<bool>> interrupts;  ///< by core

  /// The next pass of each core; none: the end. Called when all cores have ended a pass (and at
  /// first), at the simulated time of that. It may call read(). What is in the passes must live
  /// until they are asked for again.
  using Next = std::function<std::vector<const hw::dfx::Pass*>(RingHost& host)>;
  /// Whether there is work for the cores, asked at first and whenever the host has learnt of the
  /// end of some: each is configured, runs passes until there is no next one, and is read back.
  using More = std::function<bool()>;

  /// `more`: empty: there is one work.
  RingHost(const sc_core::sc_module_name& name, const hw::Machine& machine,
           std::vector<HostedCore> cores, Next next, More more = {});

  struct Range {
    std::uint64_t address = 0;  ///< on the cards' bus
    std::uint8_t* data = nullptr;
    std::uint32_t bytes = 0;
  };
  /// Reads over PCIe, all asked for at once, and waits until everything has come.
  void read(const std::vector<Range>& ranges);

  /// When each pass ended, ps; before those of a work, its start.
  [[nodiscard]] const std::vector<std::uint64_t>& ends() const { return ends_; }
  /// Spent on PCIe.
  [[nodiscard]] std::uint64_t host_ps() const { return host_ps_; }
  /// It knows that the last pass has ended, or that a core had no program which it can run.
  [[nodiscard]] bool done() const { return done_; }
  /// Why there was no program for a core; empty: there was.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  using Socket = tlm_utils::simple_initiator_socket<RingHost>;

  void run();
  /// One work. False: a core had no program that it can run.
  bool work();
  /// Writes the program of each core, and starts them all; false, with the reason in problem(): it
  /// does not fit.
  bool start(const std::vector<const hw::dfx::Pass*>& passes);
  bool write_program(const HostedCore& of, const hw::dfx::Pass& pass);
  /// Waits for the interrupt and acknowledges it. Returns the core's STATUS.
  std::uint64_t finish(std::size_t core);
  /// Without waiting. Returns what it takes, ps.
  std::uint64_t transfer(Socket& by, tlm::tlm_command command, const Range& range);
  /// The same of a register.
  std::uint64_t access(Socket& by, tlm::tlm_command command, std::uint64_t address,
                       std::uint64_t& value);
  void write(std::uint64_t address, std::uint64_t value);
  void spend(std::uint64_t ps);

  const hw::Machine machine_;
  const std::vector<HostedCore> cores_;
  Next next_;
  More more_;
  std::vector<std::uint64_t> ends_;
  std::uint64_t host_ps_ = 0;
  bool done_ = false;
  std::string problem_;
};

}  // namespace systole::tlm_model::dfx
