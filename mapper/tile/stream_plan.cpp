#include "mapper/tile/stream_plan.h"

#include <algorithm>
#include <optional>

#include "base/round.h"
#include "hw/program/program.h"
#include "mapper/place/sharing.h"

namespace systole::mapper {
namespace {

using Addresses = std::vector<std::uint64_t>;

struct SlotAddresses {
  Addresses a, b, parameters, pre;
};

/// Slots from `at` upwards, each at a multiple of `step` but for the first.
Addresses upwards(const Slots& slots, std::uint64_t& at, std::uint64_t step) {
  Addresses addresses;
  addresses.reserve(slots.count);
  for (std::uint64_t i = 0; i < slots.count; ++i) {
    if (i != 0) at = round_up(at, step);
    addresses.push_back(at);
    at += slots.bytes;
  }
  return addresses;
}

/// Slots from `at` downwards, each at a multiple of `step`.
std::optional<Addresses> downwards(const Slots& slots, std::uint64_t& at, std::uint64_t step) {
  Addresses addresses;
  addresses.reserve(slots.count);
  for (std::uint64_t i = 0; i < slots.count; ++i) {
    if (at < slots.bytes) return std::nullopt;
    at = (at - slots.bytes) / step * step;
    addresses.push_back(at);
  }
  return addresses;
}

/// With slots at multiples of `a_step` and `b_step`; nothing if there is no room.
std::optional<SlotAddresses> addresses_of(const StreamPlan& plan, Span free, bool b_first,
                                          std::uint64_t alignment, std::uint64_t a_step,
                                          std::uint64_t b_step) {
  SlotAddresses addresses;
  std::uint64_t low = round_up(free.begin, alignment), high = free.end;
  (b_first ? addresses.b : addresses.a) =
      b_first ? upwards(plan.b, low, b_step) : upwards(plan.a, low, a_step);
  const std::optional<Addresses> at_end =
      b_first ? downwards(plan.a, high, a_step) : downwards(plan.b, high, b_step);
  if (!at_end) return std::nullopt;
  (b_first ? addresses.a : addresses.b) = *at_end;
  low = round_up(low, alignment);
  addresses.parameters = upwards(plan.parameters, low, alignment);
  low = round_up(low, alignment);
  addresses.pre = upwards(plan.pre, low, alignment);
  return low <= high ? std::optional(addresses) : std::nullopt;
}

/// Slots that an operand of `tiles` tiles can use: loads run further ahead. Of `reused` tiles that
/// are multiplied several times in turn, the next as many can come in.
std::uint64_t most_slots(std::uint64_t tiles, std::uint64_t reused) {
  return std::min(tiles, std::max<std::uint64_t>(4, 2 * reused));
}

/// More slots for an operand, as far as there is room.
void deepen(Slots& slots, std::uint64_t most, std::uint64_t room, const StreamPlan& plan) {
  const std::uint64_t taken = plan.bytes();
  if (slots.count == 0 || slots.count >= most || taken >= room) return;
  slots.count += std::min(most - slots.count, (room - taken) / slots.bytes);
}

/// Whether slots fit in so many banks, after `offset` bytes of each, none of them in two.
bool fits_in_banks(const Slots& slots, std::uint64_t banks, std::uint64_t bank_bytes,
                   std::uint64_t offset) {
  const std::uint64_t room = bank_bytes - std::min(bank_bytes, offset);
  return slots.count == 0 || room / slots.bytes * banks >= slots.count;
}

/// Slots in turn in `banks` banks from `first` on, after `offset` bytes of each, which they fit.
Addresses in_banks(const Slots& slots, std::uint64_t first, std::uint64_t banks,
                   std::uint64_t bank_bytes, std::uint64_t offset) {
  Addresses addresses;
  addresses.reserve(slots.count);
  for (std::uint64_t i = 0; i < slots.count; ++i) {
    addresses.push_back(first + i % banks * bank_bytes + offset + i / banks * slots.bytes);
  }
  return addresses;
}

/// Bytes of each bank before the slots of the first operand: what is small comes there, unless it
/// has room before the banks.
std::uint64_t offset_in_banks(const StreamPlan& plan, std::uint64_t before) {
  const std::uint64_t small = plan.parameters.all() + plan.pre.all();
  return small <= before ? 0 : small;
}

/// Banks that an operand needs for a tile to come in beside the one that the array reads.
std::uint64_t banks_beside(const Slots& slots) { return std::min<std::uint64_t>(slots.count, 2); }

/// How many of the banks A has of its own, so that every tile is in one bank, and none of B in one
/// of A's: half of them if that will do, else as near to it as there is room; nothing if there is
/// none. Where there are enough banks each operand has two, and no tile comes in where the array
/// reads.
std::optional<std::uint64_t> banks_of_a(const StreamPlan& plan, std::uint64_t banks,
                                        std::uint64_t bank_bytes, std::uint64_t offset) {
  if (banks == 0 || offset > bank_bytes) return std::nullopt;
  const bool enough = banks >= banks_beside(plan.a) + banks_beside(plan.b);
  const std::uint64_t of_any = plan.a.count == 0 || plan.b.count == 0 ? 0 : 1;
  const std::uint64_t least_a = enough ? banks_beside(plan.a) : of_any;
  const std::uint64_t least_b = enough ? banks_beside(plan.b) : of_any;
  const auto fit = [&](std::uint64_t of_a) {
    return of_a >= least_a && of_a + least_b <= banks &&
           fits_in_banks(plan.a, of_a, bank_bytes, offset) &&
           fits_in_banks(plan.b, banks - of_a, bank_bytes, of_a == 0 ? offset : 0);
  };
  const std::uint64_t first = plan.a.count == 0 ? 0 : plan.b.count == 0 ? banks : banks / 2;
  for (std::uint64_t further = 0; further <= banks; ++further) {
    if (further <= first && fit(first - further)) return first - further;
    if (first + further <= banks && fit(first + further)) return first + further;
  }
  return std::nullopt;
}

/// Every operand in banks of its own, its tiles in turn in all of them; nothing if there is no
/// room.
std::optional<SlotAddresses> addresses_by_bank(const StreamPlan& plan, std::uint64_t begin,
                                               std::uint64_t end, std::uint64_t alignment,
                                               std::uint64_t bank_bytes) {
  const std::uint64_t first = round_up(begin, bank_bytes);
  if (first >= end) return std::nullopt;
  const std::uint64_t banks = (end - first) / bank_bytes;
  const std::uint64_t offset = offset_in_banks(plan, first - begin);
  const std::optional<std::uint64_t> of_a = banks_of_a(plan, banks, bank_bytes, offset);
  if (!of_a) return std::nullopt;
  SlotAddresses addresses;
  std::uint64_t at = offset == 0 ? begin : first;
  addresses.parameters = upwards(plan.parameters, at, alignment);
  addresses.pre = upwards(plan.pre, at, alignment);
  addresses.a = in_banks(plan.a, first, *of_a, bank_bytes, offset);
  addresses.b = in_banks(plan.b, first + *of_a * bank_bytes, banks - *of_a, bank_bytes,
                         *of_a == 0 ? offset : 0);
  return addresses;
}

/// Slots of both operands in turn in all banks; nothing if there is no room.
std::optional<SlotAddresses> addresses_spread(const StreamPlan& plan, std::uint64_t begin,
                                              std::uint64_t end, std::uint64_t alignment,
                                              std::uint64_t bank_bytes) {
  // What is left of each bank.
  std::vector<Span> left;
  for (std::uint64_t at = begin; at < end; at = left.back().end) {
    left.push_back({round_up(at, alignment), std::min(end, (at / bank_bytes + 1) * bank_bytes)});
  }
  std::size_t next = 0;
  bool fits = true;
  const auto place = [&](const Slots& slots) {
    Addresses addresses;
    addresses.reserve(slots.count);
    for (std::uint64_t i = 0; i < slots.count; ++i) {
      std::size_t tried = 0;
      const auto has_room = [&](const Span& bank) { return bank.begin + slots.bytes <= bank.end; };
      while (tried < left.size() && !has_room(left[next % left.size()])) ++next, ++tried;
      if (tried == left.size()) {
        fits = false;
        return addresses;
      }
      Span& bank = left[next++ % left.size()];
      addresses.push_back(bank.begin);
      bank.begin = round_up(bank.begin + slots.bytes, alignment);
    }
    return addresses;
  };
  SlotAddresses addresses;
  addresses.b = place(plan.b);
  addresses.a = place(plan.a);
  addresses.parameters = place(plan.parameters);
  addresses.pre = place(plan.pre);
  return fits ? std::optional(addresses) : std::nullopt;
}

}  // namespace

StreamPlan stream_plan(const hw::Machine& machine, const TilingProblem& problem, const Tiling& t) {
  const std::uint64_t alignment = slot_alignment(machine);
  const std::uint64_t copies = t.double_buffered ? 2 : 1;
  const auto slots = [&](std::uint64_t bytes, std::uint64_t tiles, bool stays) -> Slots {
    if (bytes == 0) return {};
    return {stays ? tiles : std::min(tiles, copies), round_up(bytes, alignment)};
  };
  const hw::Machine::Array& array = machine.array;
  const std::uint64_t m_tiles = ceil_div(problem.m, t.m), c_tiles = ceil_div(problem.n, t.c_cols);
  StreamPlan plan;
  plan.parameters = slots(std::uint64_t{4} * problem.parameter_words * t.c_cols, c_tiles, false);
  if (problem.k == 0) {
    plan.pre = slots(std::uint64_t{4} * problem.pre_words * t.c_cols, c_tiles, false);
    return plan;
  }
  const std::uint64_t k_tiles = ceil_div(problem.k, t.k);
  const std::uint64_t n_tiles = c_tiles * ceil_div(t.c_cols, t.n);
  plan.pre = slots(std::uint64_t{4} * problem.pre_words * t.k, k_tiles, false);
  if (!problem.a_on_chip) {
    plan.a =
        slots(t.m * operand_pitch(problem.a_cols(t.k), array.rows), m_tiles * k_tiles, t.a_stays);
  }
  if (!problem.b_on_chip) {
    // Stored k x n or, transposed, n x k: the larger of the two forms.
    const std::uint64_t depth = problem.b_rows(t.k);
    const std::uint64_t bytes =
        std::max(depth * operand_pitch(t.n, array.cols), t.n * operand_pitch(depth, array.rows));
    plan.b = slots(bytes, n_tiles * k_tiles, t.b_stays);
  }
  if (!t.double_buffered) return plan;
  const std::uint64_t most_a =
      t.a_stays ? 0 : most_slots(m_tiles * k_tiles, t.far_ahead && t.m_outer ? k_tiles : 0);
  const std::uint64_t most_b =
      t.b_stays ? 0 : most_slots(n_tiles * k_tiles, t.far_ahead && !t.m_outer ? k_tiles : 0);
  if (!t.banks_apart) {
    deepen(plan.b, most_b, problem.stream_bytes, plan);
    deepen(plan.a, most_a, problem.stream_bytes, plan);
    return plan;
  }
  for (const auto& [operand, most] : {std::pair{&plan.b, most_b}, {&plan.a, most_a}}) {
    while (operand->count != 0 && operand->count < most) {
      ++operand->count;
      if (plan.bytes() <= problem.stream_bytes && has_banks_apart(plan, machine, problem)) continue;
      --operand->count;
      break;
    }
  }
  return plan;
}

bool has_banks_apart(const StreamPlan& plan, const hw::Machine& machine,
                     const TilingProblem& problem) {
  return banks_of_a(plan, problem.free_banks, machine.scratchpad.bank_bytes(),
                    offset_in_banks(plan, problem.before_banks))
      .has_value();
}

TileRing::TileRing(const std::vector<std::uint64_t>& addresses, std::uint64_t bytes,
                   const std::vector<Span>& busy) {
  slots_.reserve(addresses.size());
  for (const std::uint64_t address : addresses) slots_.push_back({address, {}, 0});
  const auto is_free = [&](const Slot& slot) {
    return std::none_of(busy.begin(), busy.end(), [&](const Span& span) {
      return span.begin < slot.address + bytes && slot.address < span.end;
    });
  };
  const auto first = std::find_if(slots_.begin(), slots_.end(), is_free);
  // They are filled from there on.
  if (first != slots_.end()) std::rotate(slots_.begin(), first, slots_.end());
}

TileRing::Place TileRing::take(Tile tile) {
  ++uses_;
  for (Slot& slot : slots_) {
    if (slot.used == 0 || slot.tile != tile) continue;
    slot.used = uses_;
    return {slot.address, false};
  }
  // Of slots that were never used, the first one.
  Slot& slot = *std::min_element(slots_.begin(), slots_.end(),
                                 [](const Slot& a, const Slot& b) { return a.used < b.used; });
  slot = {slot.address, tile, uses_};
  return {slot.address, true};
}

StreamRings place_slots(const StreamPlan& plan, const hw::Machine& machine, Span free, bool spread,
                        bool b_first, const std::vector<Span>& busy) {
  const std::uint64_t alignment = slot_alignment(machine);
  const std::uint64_t bank = machine.scratchpad.bank_bytes();
  std::optional<SlotAddresses> at;
  if (spread) at = addresses_spread(plan, free.begin, free.end, alignment, bank);
  if (!at) at = addresses_by_bank(plan, free.begin, free.end, alignment, bank);
  for (const auto& [a_step, b_step] :
       {std::pair{bank, bank}, {bank, alignment}, {alignment, bank}, {alignment, alignment}}) {
    if (!at) at = addresses_of(plan, free, b_first, alignment, a_step, b_step);
  }
  return {TileRing(at->a, plan.a.bytes, busy), TileRing(at->b, plan.b.bytes, busy),
          TileRing(at->parameters, plan.parameters.bytes, busy),
          TileRing(at->pre, plan.pre.bytes, busy)};
}

}  // namespace systole::mapper
