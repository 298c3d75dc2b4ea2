#include "tlm/ring/core_timing.h"

#include <algorithm>

#include "hw/number/integer.h"

namespace systole::tlm_model::dfx {
namespace {

using hw::kHalfBytes;
using hw::dfx::Opcode;
using hw::dfx::Second;

/// DDR takes part in no product, so its port is as wide as two channels of DDR4-2400 are fast.
constexpr std::uint64_t kDdrPortBytes = 256;
/// Vectors from DDR that wait for their turn.
constexpr std::uint32_t kVectorSlots = 4;

hw::BlockAccount make_account() {
  return {"cycles",
          {{"operands", "an instruction waits for what an earlier one computes"},
           {"issue", "scheduler and scoreboard"},
           {"memory", "weights or vectors are not there yet"},
           {"adder", "a partial sum waits for the one before it"}}};
}

}  // namespace

CoreTiming::CoreTiming(const hw::Machine& machine, std::uint32_t register_elements, PortMemory& hbm,
                       PortMemory& ddr)
    : machine_(machine),
      clock_(machine.core.clock_mhz),
      depth_(machine.matrix.depth),
      tree_cycles_((hw::bit_length(depth_) - 1) * machine.matrix.add_cycles),
      hbm_(hbm, clock_),
      ddr_(ddr, clock_),
      weights_(hbm_, machine.matrix.prefetch_tiles,
               std::uint64_t{machine.hbm.channels} * machine.hbm.port_bytes),
      ddr_weights_(ddr_, machine.matrix.prefetch_tiles, kDdrPortBytes),
      vectors_(ddr_, kVectorSlots, kDdrPortBytes),
      ready_((register_elements + depth_ - 1) / depth_, 0),
      read_(ready_.size(), 0),
      scalar_ready_(hw::dfx::kScalars, 0),
      accounts_(hw::dfx::kUnits, make_account()) {}

void CoreTiming::watch(SignalRecorder& recorder, const std::string& prefix) {
  for (std::size_t unit = 0; unit < accounts_.size(); ++unit) {
    const std::string name(hw::dfx::name_of(static_cast<Unit>(unit)));
    states_.push_back(std::make_unique<AccountSignal>(recorder, prefix + name + ".state",
                                                      accounts_[unit], &clock_));
    accounts_[unit].watch(*states_.back());
  }
}

std::uint64_t CoreTiming::latest(const std::vector<std::uint64_t>& times, Span span) const {
  std::uint64_t last = 0;
  for (std::uint32_t i = span.begin; i < span.end; ++i) last = std::max(last, times[i]);
  return last;
}

void CoreTiming::raise(std::vector<std::uint64_t>& times, Span span, std::uint64_t cycle) {
  for (std::uint32_t i = span.begin; i < span.end; ++i) times[i] = std::max(times[i], cycle);
}

std::uint64_t CoreTiming::begin(Unit unit, std::uint64_t operands, std::uint64_t results) {
  const std::size_t index = index_of(unit);
  const std::uint64_t turn = std::max(floor_, free_[index]);
  const std::uint64_t valid = std::max({turn, operands, results});
  const std::uint64_t first = valid + machine_.dfx.issue_cycles;
  accounts_[index].idle_until(turn);
  accounts_[index].stall_until(valid, kOperands);
  accounts_[index].stall_until(first, kIssue);
  ++counts_[index];
  return first;
}

CoreTiming::Times CoreTiming::issue(const Instruction& instruction) {
  switch (instruction.op) {
    case Opcode::kConv1d:
    case Opcode::kMaskedMm:
    case Opcode::kMm:
      return matrix(instruction);
    case Opcode::kRecip:
    case Opcode::kRecipSqrt:
      return scalar(instruction);
    case Opcode::kRotate:
      return rotate(instruction);
    case Opcode::kWriteKeys:
    case Opcode::kWriteValues:
      return write_cache(instruction);
    default:
      return vector(instruction);
  }
}

CoreTiming::Times CoreTiming::matrix(const Instruction& instruction) {
  const auto& weights = instruction.weights;
  const hw::MatrixUnit unit = machine_.matrix.unit(weights.int8);
  const std::uint32_t rows = instruction.rows, lanes = unit.lanes;
  const auto inputs = [&](std::uint32_t row) {
    return span(instruction.src + row * instruction.pitch, weights.k_tiles * depth_);
  };
  const auto outputs = [&](std::uint32_t row, std::uint32_t slice, std::uint32_t slices) {
    return span(instruction.dst + row * instruction.pitch + slice * lanes, slices * lanes);
  };
  std::uint64_t operands = 0, results = 0;
  for (std::uint32_t r = 0; r < rows; ++r) {
    Span in = inputs(r);
    if (by_vector()) in.end = in.begin + 1;
    operands = std::max(operands, latest(ready_, in));
    if (weights.int8) operands = std::max(operands, scalar_ready_[instruction.other + r]);
    const Span out = outputs(r, 0, weights.slices);
    results = std::max({results, latest(ready_, out), latest(read_, out)});
  }
  const std::uint32_t vectors = (instruction.has_bias ? 1 : 0) + (weights.int8 ? 1 : 0);
  const std::uint64_t vector_bytes = std::uint64_t{weights.slices} * lanes * kHalfBytes;
  std::uint64_t bias = 0;  // and scales, which are its neighbours for this purpose
  if (vectors != 0) {
    bias = vectors_.fetch(instruction.has_bias ? instruction.memory : instruction.scales,
                          vectors * vector_bytes, vectors, 0);
  }
  const std::uint64_t first = begin(Unit::kMatrix, std::max(operands, bias), results);
  const std::uint64_t cache = weights.in_ddr ? 0 : hbm_.cache_ready(weights.address);
  OperandStream& stream = weights.in_ddr ? ddr_weights_ : weights_;
  hw::BlockAccount& account = accounts_[index_of(Unit::kMatrix)];

  // As many slices at a time as there are partial sums for all rows.
  const std::uint32_t together =
      std::min({weights.block, std::max(machine_.matrix.partial_sums / rows, 1U), stream.slots()});
  const std::uint64_t fill = hw::fill_cycles(unit) + machine_.matrix.function_cycles;
  const std::uint64_t tile_bytes = std::uint64_t{depth_} * lanes * (weights.int8 ? 1 : kHalfBytes);
  std::uint64_t cycle = first;  // the next slice may enter
  std::uint64_t end = first;
  for (std::uint32_t slice = 0; slice < weights.slices; slice += together) {
    const std::uint32_t slices = std::min(together, weights.slices - slice);
    const std::uint64_t entered = std::uint64_t{slices} * rows;
    std::uint64_t sums_free = 0;  // when the adder has given the sums of the K tile before
    for (std::uint32_t k = 0; k < weights.k_tiles; ++k) {
      const std::uint64_t tile = std::uint64_t{slice} * weights.k_tiles + std::uint64_t{k} * slices;
      const std::uint64_t there =
          stream.fetch(weights.address + tile * tile_bytes, slices * tile_bytes, slices, cache);
      std::uint64_t operand = 0;
      if (by_vector()) {
        for (std::uint32_t r = 0; r < rows; ++r) {
          operand = std::max(operand, ready_[inputs(r).begin + k]);
        }
      }
      account.stall_until(std::max(cycle, operand), kOperands);
      account.stall_until(std::max({cycle, operand, there}), kMemory);
      const std::uint64_t start = std::max({cycle, operand, there, sums_free});
      account.stall_until(start, kAdder);
      cycle = start + entered;
      account.busy_until(cycle);
      stream.release(slices, cycle);
      sums_free = start + unit.add;
    }
    end = cycle + fill;
    for (std::uint32_t r = 0; r < rows; ++r) raise(ready_, outputs(r, slice, slices), end);
  }
  free_[index_of(Unit::kMatrix)] = cycle;
  for (std::uint32_t r = 0; r < rows; ++r) raise(read_, inputs(r), cycle);
  vectors_.release(vectors, cycle);
  if (instruction.op == Opcode::kMaskedMm) {
    raise(ready_, span(instruction.dst, (instruction.elements + depth_ - 1) / depth_ * depth_),
          end);
    scalar_ready_[instruction.result] = end;
  }
  for (std::uint32_t r = 0; instruction.finds_largest && r < rows; ++r) {
    raise(ready_, span(instruction.winner + r * instruction.pitch, depth_), end);
  }
  return {first, end, cycle};
}

std::uint32_t CoreTiming::latency(Opcode op) const {
  switch (op) {
    case Opcode::kLoad:
      return 1;
    case Opcode::kMul:
    case Opcode::kQuantise:
      return machine_.matrix.multiply_cycles;
    case Opcode::kExp:
      return machine_.vector.exp_cycles;
    case Opcode::kRecip:
      return machine_.vector.recip_cycles;
    case Opcode::kRecipSqrt:  // after the adder for the constant
      return machine_.matrix.add_cycles + machine_.vector.recip_sqrt_cycles;
    default:
      return machine_.matrix.add_cycles;
  }
}

CoreTiming::Times CoreTiming::vector(const Instruction& instruction) {
  const bool accumulates = instruction.op == Opcode::kAccum || instruction.op == Opcode::kAbsMax;
  const bool reads = instruction.op != Opcode::kLoad;
  const Span src = span(instruction.src, instruction.elements);
  const Span dst = span(instruction.dst, instruction.elements);
  const Span other = span(instruction.other, instruction.elements);
  const std::uint32_t vectors = src.end - src.begin;
  const bool two = instruction.second == Second::kVector;

  std::uint64_t operands = 0;
  const std::uint32_t needed = by_vector() ? 1 : vectors;
  if (reads) operands = latest(ready_, {src.begin, src.begin + needed});
  if (two) operands = std::max(operands, latest(ready_, {other.begin, other.begin + needed}));
  if (instruction.second == Second::kScalar) {
    operands = std::max(operands, scalar_ready_[instruction.other]);
  }
  const bool fetches = instruction.second == Second::kMemory;
  std::uint64_t there = 0;
  if (fetches) {
    there = vectors_.fetch(instruction.memory, instruction.elements * kHalfBytes, 1,
                           instruction.op == Opcode::kLoad ? floor_ : 0);
  }
  std::uint64_t results = 0;
  if (!accumulates) results = std::max(latest(ready_, dst), latest(read_, dst));
  // Each vector makes room for itself where instructions are chained.
  const std::uint64_t first = begin(Unit::kVector, operands, by_vector() ? 0 : results);

  hw::BlockAccount& account = accounts_[index_of(Unit::kVector)];
  account.stall_until(there, kMemory);
  const std::uint32_t latency = this->latency(instruction.op);
  std::uint64_t cycle = std::max(first, there), end = cycle;
  for (std::uint32_t i = 0; i < vectors; ++i) {
    std::uint64_t start = cycle;
    if (reads) start = std::max(start, ready_[src.begin + i]);
    if (two) start = std::max(start, ready_[other.begin + i]);
    if (!accumulates) start = std::max(start, read_[dst.begin + i]);
    account.stall_until(start, kOperands);
    cycle = start + 1;
    account.busy_until(cycle);
    if (reads) read_[src.begin + i] = std::max(read_[src.begin + i], cycle);
    if (two) read_[other.begin + i] = std::max(read_[other.begin + i], cycle);
    end = std::max(end, start + latency);
    if (!accumulates) ready_[dst.begin + i] = std::max(ready_[dst.begin + i], start + latency);
  }
  if (accumulates) {
    // The sums of the vectors are one vector, or several, for the same tree; then the constant. A
    // level of comparators takes a cycle.
    const std::uint32_t tree =
        instruction.op == Opcode::kAccum ? tree_cycles_ : tree_cycles_ / machine_.matrix.add_cycles;
    end = cycle - 1;
    for (std::uint32_t sums = vectors;; sums = (sums + depth_ - 1) / depth_) {
      end += tree;
      if (sums == 1) break;
      end += (sums + depth_ - 1) / depth_ - 1;
    }
    end += machine_.matrix.multiply_cycles;
    scalar_ready_[instruction.result] = end;
  }
  free_[index_of(Unit::kVector)] = cycle;
  if (fetches) vectors_.release(1, cycle);
  return {first, end, cycle};
}

CoreTiming::Times CoreTiming::scalar(const Instruction& instruction) {
  const std::uint64_t first = begin(Unit::kVector, scalar_ready_[instruction.other], 0);
  const std::uint64_t end = first + latency(instruction.op);
  scalar_ready_[instruction.result] = end;
  free_[index_of(Unit::kVector)] = first + 1;
  accounts_[index_of(Unit::kVector)].busy_until(first + 1);
  return {first, end, first + 1};
}

CoreTiming::Times CoreTiming::rotate(const Instruction& instruction) {
  constexpr std::uint32_t kTurns = 2;  // of the multipliers: cosines, then sines
  const Span src = span(instruction.src, instruction.heads * instruction.elements);
  const Span dst = span(instruction.dst, instruction.heads * instruction.elements);
  const Span needed = by_vector() ? Span{src.begin, src.begin + 1} : src;
  const std::uint64_t results = std::max(latest(ready_, dst), latest(read_, dst));
  const std::uint64_t there =
      vectors_.fetch(instruction.memory, kTurns * instruction.elements * kHalfBytes, kTurns, 0);
  const std::uint64_t first =
      begin(Unit::kVector, latest(ready_, needed), by_vector() ? 0 : results);

  hw::BlockAccount& account = accounts_[index_of(Unit::kVector)];
  account.stall_until(there, kMemory);
  const std::uint32_t latency =
      kTurns - 1 + machine_.matrix.multiply_cycles + machine_.matrix.add_cycles;
  std::uint64_t cycle = std::max(first, there), end = cycle;
  for (std::uint32_t i = 0; i < src.end - src.begin; ++i) {
    const std::uint64_t start = std::max({cycle, ready_[src.begin + i], read_[dst.begin + i]});
    account.stall_until(start, kOperands);
    cycle = start + kTurns;
    account.busy_until(cycle);
    end = start + latency;
    raise(read_, {src.begin + i, src.begin + i + 1}, cycle);
    raise(ready_, {dst.begin + i, dst.begin + i + 1}, end);
  }
  free_[index_of(Unit::kVector)] = cycle;
  vectors_.release(kTurns, cycle);
  return {first, end, cycle};
}

CoreTiming::Times CoreTiming::write_cache(const Instruction& instruction) {
  const bool transposes = instruction.op == Opcode::kWriteValues;
  const Span src = span(instruction.src, instruction.heads * instruction.elements);
  const std::uint64_t first = begin(Unit::kDma, latest(ready_, src), 0);
  hw::BlockAccount& account = accounts_[index_of(Unit::kDma)];
  const std::uint64_t row_bytes = instruction.elements * kHalfBytes;
  const std::uint32_t vectors = instruction.elements / depth_;
  const std::uint64_t cache = instruction.memory;
  hbm_.open_cache(cache, instruction.heads * instruction.head_bytes);
  std::uint64_t cycle = first;
  for (std::uint32_t head = 0; head < instruction.heads; ++head) {
    cycle += vectors * (transposes ? machine_.vector.transpose_cycles : 1);
    // A row of keys is a part of one beat of all channels; a column of values is spread over the
    // tiles of `lanes` elements each, which are neighbours: a beat for each.
    const std::uint64_t bytes = transposes ? row_bytes * depth_ : row_bytes;
    const std::uint64_t at =
        transposes ? instruction.token / depth_ * bytes : instruction.token * row_bytes;
    hbm_.write(cache, cache + head * instruction.head_bytes + at, bytes, cycle);
  }
  account.busy_until(cycle);
  raise(read_, src, cycle);
  free_[index_of(Unit::kDma)] = cycle;
  return {first, cycle, cycle};
}

std::uint64_t CoreTiming::sync_begin(std::uint32_t first, std::uint32_t elements) {
  // An instruction for each way around the ring: the vector leaves with the last of them.
  const std::uint64_t more = machine_.ring.directions - 1;
  return begin(Unit::kRouter, latest(ready_, span(first, elements)), 0) +
         more * machine_.dfx.issue_cycles;
}

void CoreTiming::arrived(std::uint32_t first, std::uint32_t elements, std::uint64_t cycle) {
  raise(ready_, span(first, elements), cycle);
}

void CoreTiming::wait(std::uint64_t cycle) {
  accounts_[index_of(Unit::kRouter)].busy_until(cycle);
  free_[index_of(Unit::kRouter)] = cycle;
  floor_ = std::max(floor_, cycle);
}

}  // namespace systole::tlm_model::dfx
