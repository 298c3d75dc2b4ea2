#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <cstdint>
#include <systemc>
#include <tlm>
#include <vector>

#include "encoder.h"
#include "tlm/core/core.h"

/// A CPU: puts a program and its input into memory, starts a core and waits for its interrupt. All
/// that a core needs is the address of a program.
class Cpu : public sc_core::sc_module {
 public:
  tlm_utils::simple_initiator_socket<Cpu> socket{"socket"};
  sc_core::sc_in<bool> interrupt{"interrupt"};

  /// The core's registers are at `registers` on the bus, and what it calls address 0 of memory is
  /// at `memory`.
  Cpu(const sc_core::sc_module_name& name, const Encoder& encoder, std::uint64_t registers,
      std::uint64_t memory)
      : sc_module(name), encoder_(encoder), registers_(registers), memory_(memory) {
    SC_HAS_PROCESS(Cpu);
    SC_THREAD(run);
  }

  std::uint64_t cycles = 0;  ///< that the core counted, once it is done
  bool correct = false;      ///< every byte of the output was expected

 private:
  using Core = systole::tlm_model::Core;

  void run() {
    // A loader's work, which takes no simulated time: constants, weights and the program itself.
    for (const systole::hw::MemoryPiece& piece : encoder_.mapping.image) {
      copy(tlm::TLM_WRITE_COMMAND, piece.address, const_cast<std::uint8_t*>(piece.bytes.data()),
           piece.bytes.size());
    }
    move_rows(tlm::TLM_WRITE_COMMAND, encoder_.place_of_input(), input_);
    set(Core::kProgram, encoder_.mapping.program_address);
    set(Core::kControl, Core::kStart);
    wait(interrupt.posedge_event());
    set(Core::kControl, Core::kAcknowledge);
    std::vector<std::uint8_t> output(encoder_.expected.size());
    move_rows(tlm::TLM_READ_COMMAND, encoder_.place_of_output(), output);
    correct = output == encoder_.expected;
    access(tlm::TLM_READ_COMMAND, registers_ + Core::kCycles,
           reinterpret_cast<std::uint8_t*>(&cycles), sizeof cycles);
  }

  void set(std::uint64_t offset, std::uint64_t value) {
    access(tlm::TLM_WRITE_COMMAND, registers_ + offset, reinterpret_cast<std::uint8_t*>(&value),
           sizeof value);
  }

  /// A bus transaction, with its time.
  void access(tlm::tlm_command command, std::uint64_t address, std::uint8_t* data,
              std::size_t bytes) {
    tlm::tlm_generic_payload payload;
    fill(payload, command, address, data, bytes);
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    socket->b_transport(payload, delay);
    if (payload.is_response_error()) SC_REPORT_ERROR("/cpu", "the bus answers with an error");
    wait(delay);
  }

  void copy(tlm::tlm_command command, std::uint64_t address, std::uint8_t* data,
            std::size_t bytes) {
    tlm::tlm_generic_payload payload;
    fill(payload, command, memory_ + address, data, bytes);
    if (socket->transport_dbg(payload) != bytes) SC_REPORT_ERROR("/cpu", "no memory there");
  }

  /// Rows of a tensor lie at a pitch in memory and one after another in `bytes`.
  void move_rows(tlm::tlm_command command, const systole::mapper::TensorPlace& place,
                 std::vector<std::uint8_t>& bytes) {
    for (std::uint32_t row = 0; row < place.rows; ++row) {
      copy(command, place.address + std::uint64_t{row} * place.pitch,
           bytes.data() + row * place.row_bytes(), place.row_bytes());
    }
  }

  static void fill(tlm::tlm_generic_payload& payload, tlm::tlm_command command,
                   std::uint64_t address, std::uint8_t* data, std::size_t bytes) {
    payload.set_command(command);
    payload.set_address(address);
    payload.set_data_ptr(data);
    payload.set_data_length(static_cast<unsigned>(bytes));
    payload.set_streaming_width(static_cast<unsigned>(bytes));
  }

  const Encoder& encoder_;
  const std::uint64_t registers_, memory_;
  std::vector<std::uint8_t> input_ = encoder_.input;
};
