#include "mapper/choose/bank_demand.h"

#include <algorithm>
#include <vector>

#include "base/round.h"
#include "base/units.h"
#include "hw/array/array.h"
#include "hw/program/bank_words.h"
#include "mapper/tile/stream_plan.h"

namespace systole::mapper {
namespace {

/// Words at each bank of the scratchpad.
class Demand {
 public:
  explicit Demand(const hw::Machine& machine)
      : bank_bytes_(machine.scratchpad.kib * hw::kKib / machine.scratchpad.banks),
        words_(machine.scratchpad.banks, 0) {}

  void add(std::uint64_t begin, std::uint64_t bytes, std::uint64_t words) {
    hw::for_each_bank(bank_bytes_, begin, begin + bytes, words,
                      [&](std::size_t bank, std::uint64_t share) {
                        if (bank < words_.size()) words_[bank] += share;
                      });
  }
  /// Equal shares for the slots of an operand.
  void add(TileRing ring, std::uint64_t bytes, std::uint64_t words) {
    for (std::uint32_t slot = 0; slot < ring.size(); ++slot) {
      add(ring.take({0, slot}).address, bytes, words / ring.size());
    }
  }
  [[nodiscard]] std::uint64_t most() const {
    return *std::max_element(words_.begin(), words_.end());
  }

 private:
  std::uint64_t bank_bytes_;
  std::vector<std::uint64_t> words_;
};

}  // namespace

std::uint64_t bank_excess(const TiledGroup& group, const EmitTarget& to) {
  const TilingProblem& problem = group.problem;
  const Tiling& t = group.tiling;
  if (problem.k == 0) return 0;
  const hw::Machine& machine = to.machine;
  const Group& of = *group.group;
  const StreamPlan plan = stream_plan(machine, problem, t);
  const StreamRings rings =
      place_slots(plan, machine, {group.share.stream_begin, group.share.stream_end}, t.spread,
                  to.is_after(of.a, group.share), {});
  const std::uint64_t m_tiles = ceil_div(problem.m, t.m), k_tiles = ceil_div(problem.k, t.k);
  const std::uint64_t n_tiles = ceil_div(problem.n, t.c_cols) * ceil_div(t.c_cols, t.n);
  const hw::ArrayReads reads = hw::array_reads(machine.array, t.m, t.n, t.k, problem.b_int4);
  const std::uint64_t times = m_tiles * n_tiles * k_tiles;
  const std::uint64_t word = hw::scratchpad_word_bytes(machine);
  Demand demand(machine);
  const auto add = [&](const TileRing& ring, std::uint64_t slot_bytes, const model::View& view,
                       std::uint64_t read, std::uint64_t loaded) {
    if (ring.size() != 0) return demand.add(ring, slot_bytes, read + loaded);
    const Location& where = to.location(view);
    demand.add(where.address, std::uint64_t{view.rows} * where.pitch, read);
  };
  add(rings.a, plan.a.bytes, of.a, times * reads.a,
      times_loaded(problem.m * k_tiles * ceil_div(std::uint64_t{t.k}, word), t.a_loads));
  add(rings.b, plan.b.bytes, of.matmul()->b, times * reads.b,
      times_loaded(ceil_div(std::uint64_t{problem.steps(problem.k)} * problem.n, word), t.b_loads));
  if (problem.out_on_chip) {
    const Location& out = to.location(of.out);
    demand.add(out.address, std::uint64_t{of.out.rows} * out.pitch,
               problem.m * ceil_div(std::uint64_t{problem.n} * problem.out_bytes, word));
  }
  const std::uint64_t cycles = demand.most() / machine.scratchpad.ports;
  return cycles - std::min(cycles, t.compute_cycles);
}

}  // namespace systole::mapper
