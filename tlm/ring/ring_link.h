#pragma once

#include <tlm_utils/peq_with_get.h>

#include <cstdint>
#include <memory>
#include <systemc>
#include <vector>

#include "hw/machine/parameters.h"
#include "hw/number/half.h"
#include "tlm/common/signals.h"

/// The ring between the cores: point-to-point links with routers at their ends.
namespace systole::tlm_model::dfx {

/// Part of a vector in flight around the ring.
struct Packet {
  enum class Kind : std::uint8_t {
    kGather,  ///< final: for every core that it passes
    kReduce,  ///< a part of sums: each core adds its own
  };
  Kind kind = Kind::kGather;
  bool to_right = true;
  std::uint32_t core = 0;      ///< whose part it is, or who completed it
  std::uint32_t sequence = 0;  ///< of the exchange
  std::uint32_t hops = 0;      ///< still to go
  std::uint32_t first = 0;     ///< of the exchange's elements
  std::uint32_t elements = 0;
  std::vector<hw::Half> values;  ///< none in a run without values
};

/// What takes packets: `put` at the time at which the last bit has arrived.
class PacketSink : public virtual sc_core::sc_interface {
 public:
  virtual void put(const Packet& packet) = 0;
};

/// One direction of a link: packets one after the other at the line's rate, then the way.
class RingLink : public sc_core::sc_module, public PacketSink, public Watched {
 public:
  sc_core::sc_port<PacketSink> out{"out"};

  RingLink(const sc_core::sc_module_name& name, const hw::dfx::Ring& ring);

  /// May begin at once; waits for the packets before it.
  void put(const Packet& packet) override;

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  /// When the line is busy, and the bytes of the packets that have left.
  void watch(SignalRecorder& recorder) override;

 private:
  void deliver();

  const double ps_per_byte_;
  const std::uint64_t hop_ps_;
  tlm_utils::peq_with_get<Packet> under_way_{"under_way"};
  std::vector<Packet*> spare_;
  std::vector<std::unique_ptr<Packet>> packets_;
  std::uint64_t free_ps_ = 0;
  std::uint64_t bytes_ = 0;
  SignalRecorder* recorder_ = nullptr;
  SignalRecorder::Signal state_ = 0, sent_ = 0;  ///< shown
};

}  // namespace systole::tlm_model::dfx
