#include "tlm/ring/ring_system.h"

#include <algorithm>
#include <string>
#include <utility>

#include "hw/ring/ring_map.h"
#include "tlm/common/time.h"

namespace systole::tlm_model::dfx {
namespace {

std::string numbered(const char* text, std::size_t i) { return text + std::to_string(i); }

std::vector<HostedCore> hosted(const hw::Machine& machine, const std::vector<RingPlace>& places) {
  std::vector<HostedCore> cores;
  for (std::uint32_t i = 0; i < places.size(); ++i) {
    const hw::dfx::CoreAddresses at = hw::dfx::addresses_of(machine, i);
    const std::uint64_t program = places[i].program, bytes = hw::dfx::ddr_bytes(machine);
    cores.push_back({at.registers, program, at.ddr + program, std::max(bytes, program) - program});
  }
  return cores;
}

}  // namespace

RingBoard::RingBoard(const sc_core::sc_module_name& name, const hw::Machine& machine,
                     std::vector<RingPlace> places, bool functional,
                     const std::vector<std::uint64_t>& shared_ddr)
    : sc_module(name), bus("bus") {
  require_ps_resolution();
  for (std::uint32_t i = 0; i < places.size(); ++i) {
    const hw::dfx::CoreAddresses at = hw::dfx::addresses_of(machine, i);
    cores_.push_back(std::make_unique<ComputeCore>(
        numbered("core", i).c_str(), machine, i, at, places[i].register_elements, functional,
        !shared_ddr.empty(), std::move(places[i].engines)));
    connect_core(machine, i, shared_ddr);
  }
  if (cores_.size() > 1) connect_ring(machine);
}

void RingBoard::connect_core(const hw::Machine& machine, std::uint32_t index,
                             const std::vector<std::uint64_t>& shared_ddr) {
  const hw::dfx::CoreAddresses at = hw::dfx::addresses_of(machine, index);
  ComputeCore& made = *cores_[index];
  interrupts_.push_back(
      std::make_unique<sc_core::sc_signal<bool>>(numbered("interrupt", index).c_str()));
  made.interrupt(*interrupts_.back());
  bus.connect_target(made.hbm.socket, at.hbm, made.hbm.capacity());
  if (made.ddr) {
    bus.connect_target(made.ddr->socket, at.ddr, made.ddr->capacity());
  } else {
    ddr_windows_.push_back(std::make_unique<MemoryWindow>(
        numbered("ddr", index).c_str(), shared_ddr.at(index), hw::dfx::ddr_bytes(machine)));
    bus.connect_target(ddr_windows_.back()->target, at.ddr, ddr_windows_.back()->bytes());
  }
  bus.connect_target(made.registers, at.registers, CoreRegisters::kRegisterBytes);
  bus.connect_target(made.vectors, at.vectors, hw::dfx::vector_bytes(machine));
  made.hbm_port.socket.bind(bus.initiators);
  made.ddr_port.socket.bind(bus.initiators);
}

void RingBoard::connect_ring(const hw::Machine& machine) {
  const std::size_t cores = cores_.size();
  for (std::size_t i = 0; i < cores; ++i) {
    const auto connect = [&](std::vector<std::unique_ptr<RingLink>>& links, const char* text,
                             RingRouter& to) -> RingLink& {
      links.push_back(std::make_unique<RingLink>(numbered(text, i).c_str(), machine.ring));
      links.back()->out.bind(to);
      return *links.back();
    };
    RingRouter& own = cores_[i]->router;
    own.right.bind(connect(to_right_, "to_right", cores_[(i + 1) % cores]->router));
    own.left.bind(connect(to_left_, "to_left", cores_[(i + cores - 1) % cores]->router));
  }
}

std::uint64_t RingBoard::link_bytes(std::size_t i) const {
  if (to_right_.empty()) return 0;
  return to_right_[i]->bytes() + to_left_[(i + 1) % to_left_.size()]->bytes();
}

std::vector<hw::BlockReport> RingBoard::reports() {
  std::vector<hw::BlockReport> all;
  for (const auto& core : cores_) {
    for (hw::BlockReport& report : core->reports()) all.push_back(std::move(report));
  }
  return all;
}

RingSystem::RingSystem(const sc_core::sc_module_name& name, const hw::Machine& machine,
                       std::vector<RingPlace> places, bool functional, RingHost::Next next,
                       const std::vector<std::uint64_t>& shared_ddr, RingCluster cluster)
    : RingSystem(name, machine, hosted(machine, places), std::move(places), functional,
                 std::move(next), shared_ddr, std::move(cluster)) {}

RingSystem::RingSystem(const sc_core::sc_module_name& name, const hw::Machine& machine,
                       std::vector<HostedCore> hosted, std::vector<RingPlace>&& places,
                       bool functional, RingHost::Next next,
                       const std::vector<std::uint64_t>& shared_ddr, RingCluster&& cluster)
    : RingBoard(name, machine, std::move(places), functional, shared_ddr),
      pcie("pcie", machine.pcie, std::move(cluster.turns)),
      host("host", machine, std::move(hosted), std::move(next), std::move(cluster.more)) {
  host.pcie.bind(pcie.host);
  pcie.card.bind(bus.initiators);
  host.card.bind(bus.initiators);
  for (std::size_t i = 0; i < cores(); ++i) host.interrupts[i].bind(interrupt(i));
}

std::vector<hw::BlockReport> RingSystem::reports() {
  std::vector<hw::BlockReport> all = RingBoard::reports();
  all.push_back(pcie.report(to_ps(sc_core::sc_time_stamp())));
  return all;
}

std::string RingSystem::fault() {
  if (!host.problem().empty()) return host.problem();
  for (std::size_t i = 0; i < cores(); ++i) {
    if (!core(i).fault().empty()) return core(i).name() + (": " + core(i).fault());
  }
  return {};
}

}  // namespace systole::tlm_model::dfx
