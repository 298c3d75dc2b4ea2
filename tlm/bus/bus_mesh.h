#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/memory/dram_mapping.h"
#include "hw/noc/mesh.h"

namespace systole::tlm_model {

/// The mesh of a machine in the place of its bus's channels: which endpoint an initiator or a
/// target of the bus is at. A request to memory is a packet to the channel of the DRAM that has its
/// bytes, to each of them if it has bytes of several, and so is its answer. Its data begin with the
/// word of the bus in which its first byte is.
class BusMesh {
 public:
  using Endpoint = hw::Mesh::Endpoint;
  using Passage = hw::Mesh::Passage;

  /// A target of the bus, and the address of a request in it.
  struct Route {
    unsigned target = 0;
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;  ///< that are read or written
  };

  /// With endpoints for the hosts and for each channel of the DRAM.
  explicit BusMesh(const hw::Machine& machine);

  /// A core at a node.
  Endpoint add_core(std::uint32_t node, const std::string& name) {
    return mesh_.attach(node, name);
  }
  /// Target number `target` of the bus is at an endpoint.
  void place(unsigned target, Endpoint endpoint);
  /// Target number `target` is the memory: its bytes are at the channels of the DRAM. All others
  /// are at the hosts' endpoint until place().
  void place_memory(unsigned target) noexcept { memory_ = target; }
  /// Of all initiators that nobody placed.
  static constexpr Endpoint kHosts = 0;

  /// Sends a request that is ready in cycle `earliest`, with its data if it is a write.
  Passage send(Endpoint from, const Route& route, bool data, std::uint64_t earliest);
  /// Sends its answer, with its data if it is a read.
  Passage answer(Endpoint to, const Route& route, bool data, std::uint64_t earliest);

  [[nodiscard]] hw::Mesh& mesh() noexcept { return mesh_; }
  [[nodiscard]] const hw::Mesh& mesh() const noexcept { return mesh_; }

 private:
  /// Calls `send(endpoint, bytes)` for each packet of a route, and puts the passages together: that
  /// of the last to arrive, with all bytes.
  template <typename Send>
  Passage for_each_packet(const Route& route, Send send);

  hw::Mesh mesh_;
  hw::DramMapping mapping_;
  std::uint32_t word_bytes_;  ///< of the bus
  std::uint32_t channels_;
  Endpoint first_channel_ = 0;
  unsigned memory_ = ~0U;
  std::vector<Endpoint> targets_;  ///< by target but the memory
};

/// The mesh of a machine; null: it has none.
[[nodiscard]] std::unique_ptr<BusMesh> make_mesh(const hw::Machine& machine);

}  // namespace systole::tlm_model
