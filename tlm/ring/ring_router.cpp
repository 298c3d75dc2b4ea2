#include "tlm/ring/ring_router.h"

#include <algorithm>
#include <utility>

namespace systole::tlm_model::dfx {
namespace {

using hw::dfx::Exchange;
using Kind = Packet::Kind;

/// Part of chunk `chunk` of summed vectors that travels in one direction: all, or a half.
struct Chunk {
  std::uint32_t first, elements;
};
Chunk chunk_of(const Exchange& exchange, std::uint32_t chunk, bool to_right, std::uint32_t ways) {
  const std::uint32_t begin = exchange.first[chunk], end = exchange.first[chunk + 1];
  const std::uint32_t middle = ways == 1 ? end : begin + (end - begin) / 2;
  return to_right ? Chunk{begin, middle - begin} : Chunk{middle, end - middle};
}

}  // namespace

RingRouter::RingRouter(const sc_core::sc_module_name& name, const hw::Machine& machine,
                       std::uint32_t core, std::unique_ptr<hw::RouterEngine> engine)
    : sc_module(name),
      machine_(machine),
      core_(core),
      clock_(machine.core.clock_mhz),
      engine_(std::move(engine)) {
  SC_HAS_PROCESS(RingRouter);
  SC_METHOD(on_timer);
  sensitive << timer_;
  dont_initialize();
}

std::uint32_t RingRouter::directions() const {
  return machine_.dfx.cores == 1 ? 0 : machine_.ring.directions;
}

std::size_t RingRouter::expected(const Exchange& exchange) const {
  std::size_t parts = 0;
  for (std::uint32_t core = 0; core < machine_.dfx.cores; ++core) {
    if (exchange.sums) {
      for (std::uint32_t way = 0; way < directions(); ++way) {
        if (chunk_of(exchange, core, way == 0, directions()).elements != 0) ++parts;
      }
    } else if (core != core_ && exchange.first[core + 1] != exchange.first[core]) {
      ++parts;
    }
  }
  return parts;
}

void RingRouter::send(const Exchange& exchange, std::uint32_t sequence,
                      std::vector<hw::Half> values) {
  State& state = exchanges_[sequence];
  state.sent = true;
  const std::uint32_t others = machine_.dfx.cores - 1;
  Packet packet;
  packet.sequence = sequence;
  packet.core = core_;
  if (!exchange.sums) {
    packet.first = exchange.first[core_];
    packet.elements = exchange.first[core_ + 1] - packet.first;
    packet.values = std::move(values);
    if (packet.elements == 0) return;
    // Around both ways, the longer half to the right.
    const std::uint32_t to_left = directions() == 2 ? others / 2 : 0;
    for (const bool to_right : {true, false}) {
      packet.to_right = to_right;
      packet.hops = to_right ? others - to_left : to_left;
      if (packet.hops != 0) forward(packet);
    }
    return;
  }
  state.own = std::move(values);
  packet.kind = Kind::kReduce;
  packet.hops = others;
  for (std::uint32_t way = 0; way < directions(); ++way) {
    packet.to_right = way == 0;
    const Chunk chunk = chunk_of(exchange, core_, packet.to_right, directions());
    packet.first = chunk.first;
    packet.elements = chunk.elements;
    if (!state.own.empty()) {
      packet.values.assign(state.own.begin() + chunk.first,
                           state.own.begin() + chunk.first + chunk.elements);
    }
    if (packet.elements != 0) forward(packet);
  }
  for (Packet& early : std::exchange(state.too_early, {})) add_own(state, std::move(early));
}

std::vector<RingRouter::Arrival> RingRouter::receive(const Exchange& exchange,
                                                     std::uint32_t sequence) {
  const std::size_t parts = expected(exchange);
  while (exchanges_[sequence].arrivals.size() < parts) wait(changed_);
  std::vector<Arrival> arrivals = std::move(exchanges_[sequence].arrivals);
  exchanges_.erase(sequence);
  std::sort(arrivals.begin(), arrivals.end(),
            [](const Arrival& a, const Arrival& b) { return a.first < b.first; });
  return arrivals;
}

void RingRouter::put(const Packet& packet) {
  std::uint64_t cycles = machine_.ring.router_cycles;
  if (packet.kind == Kind::kReduce) {
    const std::uint32_t depth = machine_.matrix.depth;
    cycles += machine_.matrix.add_cycles + (packet.elements + depth - 1) / depth;
  }
  later(cycles, packet);
}

void RingRouter::later(std::uint64_t cycles, const Packet& packet) {
  const std::uint64_t now = to_ps(sc_core::sc_time_stamp());
  const std::uint64_t at = clock_.edge_ps(clock_.cycle_from_ps(now) + cycles);
  leaving_.emplace(at, packet);
  timer_.notify(from_ps(at - now));
}

void RingRouter::on_timer() {
  const std::uint64_t now = to_ps(sc_core::sc_time_stamp());
  while (!leaving_.empty() && leaving_.begin()->first <= now) {
    Packet packet = std::move(leaving_.begin()->second);
    leaving_.erase(leaving_.begin());
    State& state = exchanges_[packet.sequence];
    if (packet.kind == Kind::kReduce) {
      add_own(state, std::move(packet));
      continue;
    }
    if (packet.values.empty()) {
      deliver(state, packet);
      if (--packet.hops != 0) forward(std::move(packet));
      continue;
    }
    // Its last flit arrived when it was put in.
    engine_->begin_at(clock_.cycle_from_ps(now) - machine_.ring.router_cycles + 1 -
                      hw::flits_of(packet.values.size()));
    hw::RoutedPacket routed =
        engine_->route(packet.values, packet.core, packet.hops, packet.to_right);
    packet.values = std::move(routed.delivered);
    deliver(state, packet);
    packet.values = std::move(routed.forwarded);
    packet.hops = routed.hops;
    if (packet.hops != 0) forward(std::move(packet));
  }
  if (!leaving_.empty()) timer_.notify(from_ps(leaving_.begin()->first - now));
}

void RingRouter::add_own(State& state, Packet packet) {
  if (!state.sent) {
    state.too_early.push_back(std::move(packet));
    return;
  }
  if (!packet.values.empty() && packet.first + packet.values.size() > state.own.size()) {
    SC_REPORT_ERROR("/systole/ring", "cores add up different vectors");
  }
  for (std::uint32_t i = 0; i < packet.values.size(); ++i) {
    packet.values[i] = hw::half_add(packet.values[i], state.own[packet.first + i]);
  }
  if (--packet.hops == 0) {
    // Complete: for all cores, this one included, which it reaches first.
    packet.kind = Kind::kGather;
    packet.hops = machine_.dfx.cores - 1;
    packet.core = core_;
    deliver(state, packet);
  }
  forward(std::move(packet));
}

void RingRouter::forward(Packet packet) { (packet.to_right ? right : left)->put(packet); }

void RingRouter::deliver(State& state, const Packet& packet) {
  state.arrivals.push_back({packet.first, packet.elements,
                            clock_.cycle_from_ps(to_ps(sc_core::sc_time_stamp())), packet.values});
  changed_.notify();
}

}  // namespace systole::tlm_model::dfx
