#pragma once

#include <algorithm>
#include <stdexcept>

#include "testbench/rtl/drive/back_pressure.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/ring/ring_router_rtl.h"
#include "testbench/rtl/ring/router_pins.h"

/// Drives rtl/ring/systole_ring_router.sv, or RTL with its ports.
namespace systole::testbench {

inline void append_flit(const std::vector<hw::Half>& flit, std::vector<hw::Half>& values) {
  values.insert(values.end(), flit.begin(), flit.end());
}

/// What a packet's last flit has after the packet's end is 0, and is not part of it. If anything
/// else comes, it stays, and is none of the values that are expected.
inline void cut_padding(std::vector<hw::Half>& values, std::size_t size) {
  while (values.size() > size && values.back() == hw::kHalfZero) values.pop_back();
}

template <typename Model>
class RingRouterUnit final : public RingRouterRtl {
 public:
  explicit RingRouterUnit(const RtlOptions& options) : dut_(options) { quiet_router(*dut_); }

  Run route(const std::vector<hw::Half>& values, std::uint32_t core, std::uint32_t hops,
            bool to_right, const BackPressure& pressure) override {
    if (values.empty() || hw::flits_of(values.size()) > hw::kMaxPacketFlits || core >= kMaxCores ||
        hops == 0 || hops >= kMaxCores) {
      throw std::invalid_argument("ring_router RTL: no packet of its");
    }
    const RouterWay way = to_right ? RouterWay::kRight : RouterWay::kLeft;
    const std::vector<RouterFlit> flits = flits_of_packet(values, core, hops);
    BackPressureInjector injector(pressure);
    OfferedBeat beat;
    Run run;
    std::uint64_t& cycles = run.packet.cycles;
    std::size_t in = 0;
    bool delivered = false, forwarded = hops == 1;
    while (!delivered || !forwarded) {
      // The operation begins with its first flit, so that one is never withheld.
      const bool wanted = in < flits.size();
      beat.offer(wanted, cycles == 0 ? nullptr : &injector,
                 [&] { drive_link(*dut_, way, flits[in]); });
      set_way_bit(dut_->valid_i, way, beat.offered());
      set_way_bit(dut_->ready_i, way, !injector.refuses());
      dut_.settle();
      ++cycles;
      const bool ready = way_bit(dut_->ready_o, way), taken_out = way_bit(dut_->ready_i, way);
      const bool withheld = ready && !beat.offered() && wanted;
      const bool refused = way_bit(dut_->valid_o, way) && !taken_out;
      run.stalled += withheld || refused ? 1 : 0;
      dut_.show_cycle(cycles);
      if (way_bit(dut_->write_o, way)) delivered = deliver(way, core, run.packet.delivered);
      if (way_bit(dut_->valid_o, way) && taken_out) {
        const RouterFlit flit = link_flit(*dut_, way);
        if (flit.core != core) throw std::runtime_error("RTL ring_router: a flit of another core");
        append_flit(flit.values, run.packet.forwarded);
        run.packet.hops = flit.hops;
        forwarded = flit.last;
      }
      const bool moved = withheld || refused || dut_->write_o != 0 || dut_->valid_o != 0;
      const bool taken = beat.take(ready);
      in += taken ? 1 : 0;
      dut_.end_cycle(moved || taken);
    }
    set_way_bit(dut_->valid_i, way, false);
    dut_.end_operation();
    cut_padding(run.packet.delivered, values.size());
    cut_padding(run.packet.forwarded, values.size());
    return run;
  }

  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  /// Writes a flit to its place among the core's. Returns whether it is the packet's last.
  bool deliver(RouterWay way, std::uint32_t core, std::vector<hw::Half>& delivered) {
    const WrittenFlit flit = written_flit<hw::kMaxPacketFlits>(*dut_, way);
    if (flit.core != core) throw std::runtime_error("RTL ring_router: a flit of another core");
    const std::size_t first = std::size_t{flit.index} * hw::kFlitHalves;
    delivered.resize(std::max(delivered.size(), first + hw::kFlitHalves));
    std::copy(flit.values.begin(), flit.values.end(),
              delivered.begin() + static_cast<std::ptrdiff_t>(first));
    dut_.show_beat(first, hw::kFlitHalves);
    return flit.last;
  }

  VerilatedDut<Model> dut_;
};

}  // namespace systole::testbench
