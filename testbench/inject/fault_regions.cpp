#include "testbench/inject/fault_regions.h"

#include <algorithm>
#include <cstddef>

#include "base/units.h"
#include "hw/program/program_ranges.h"

namespace systole::testbench {
namespace {

bool overlaps(std::uint64_t begin, std::uint64_t end, const hw::LocalTile& tile, std::uint64_t rows,
              std::uint64_t bytes) {
  return rows != 0 && tile.address < end && begin < tile.address + (rows - 1) * tile.pitch + bytes;
}

/// Whether the command's product has an operand in these bytes of the scratchpad.
bool multiplies(const hw::Command& command, std::uint64_t begin, std::uint64_t end) {
  const auto* const matmul = command.as<hw::cmd::Matmul>();
  if (matmul == nullptr) return false;
  const std::uint64_t b_rows = matmul->b_transposed ? matmul->n : matmul->k;
  const std::uint64_t b_bytes = matmul->b_transposed ? matmul->k : matmul->n;
  return overlaps(begin, end, matmul->a, matmul->m, matmul->k) ||
         overlaps(begin, end, matmul->b, b_rows, b_bytes);
}

/// Whether the command's chain has its parameters there.
bool parametrises(const hw::Command& command, const hw::Program& program, std::uint64_t begin,
                  std::uint64_t end) {
  const hw::ChainUse* const use = hw::chain_use(command);
  if (use == nullptr) return false;
  const std::uint64_t words = hw::parameter_words(hw::chain_of(*use, program));
  const std::uint64_t bytes = words * hw::shape_of(command).n * 4;
  return overlaps(begin, end, {use->parameters, 0}, words == 0 ? 0 : 1, bytes);
}

/// What the bytes that a load brings are for.
FaultTarget purpose_of(const hw::Program& program, std::size_t load_index, std::uint64_t begin,
                       std::uint64_t end) {
  for (std::size_t i = load_index + 1; i < program.commands.size(); ++i) {
    if (multiplies(program.commands[i], begin, end)) return FaultTarget::kWeights;
    if (parametrises(program.commands[i], program, begin, end)) break;
  }
  return FaultTarget::kParameters;
}

/// Constants of weights or parameters that the program loads.
void add_constants(FaultTarget target, const mapper::Mapping& mapping, FaultRegion& region) {
  const hw::Program& program = mapping.program;
  const auto add = [&](const hw::DramTile& tile, std::uint64_t rows, std::uint64_t bytes) {
    if (tile.address < mapping.constants_begin) return;
    for (std::uint64_t row = 0; row < rows; ++row) {
      const std::uint64_t begin = tile.address + row * tile.pitch;
      region.add(begin, begin + bytes);
    }
  };
  for (std::size_t i = 0; i < program.commands.size(); ++i) {
    const hw::Command& command = program.commands[i];
    if (const hw::ChainUse* const use = hw::chain_use(command);
        use != nullptr && target == FaultTarget::kParameters) {
      const hw::CommandShape shape = hw::shape_of(command);
      hw::for_each_operand(*use, program, [&](const hw::DramTile& tile, hw::DType type) {
        add(tile, shape.m, shape.n * hw::bytes_of(type));
      });
    }
    const auto* const load = command.as<hw::cmd::Load>();
    if (load == nullptr || load->window) continue;
    const bool sums = command.as<hw::cmd::LoadAccumulator>() != nullptr;
    const std::uint64_t end =
        load->to.address + (std::uint64_t{load->m} - 1) * load->to.pitch + load->n;
    const FaultTarget purpose =
        sums ? FaultTarget::kParameters : purpose_of(program, i, load->to.address, end);
    if (purpose != target) continue;
    const hw::ReadRows rows = hw::read_rows(*load);
    add(load->from, rows.rows, rows.bytes);
  }
}

}  // namespace

void FaultRegion::complete() {
  std::sort(ranges_.begin(), ranges_.end());
  std::vector<std::pair<std::uint64_t, std::uint64_t>> joined;
  for (const auto& [begin, end] : ranges_) {
    if (!joined.empty() && begin <= joined.back().second) {
      joined.back().second = std::max(joined.back().second, end);
    } else {
      joined.emplace_back(begin, end);
    }
  }
  ranges_ = std::move(joined);
  size_ = 0;
  for (const auto& [begin, end] : ranges_) size_ += end - begin;
}

std::uint64_t FaultRegion::address(std::uint64_t index) const {
  for (const auto& [begin, end] : ranges_) {
    if (index < end - begin) return begin + index;
    index -= end - begin;
  }
  return end();
}

bool FaultRegion::contains(std::uint64_t address) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [address](const auto& range) {
    return range.first <= address && address < range.second;
  });
}

FaultRegion fault_region(FaultTarget target, const mapper::Mapping& mapping,
                         const hw::Machine& machine) {
  FaultRegion region;
  switch (target) {
    case FaultTarget::kScratchpad:
      region.add(0, machine.scratchpad.kib * std::uint64_t{hw::kKib});
      break;
    case FaultTarget::kAccumulator:
      region.add(0, machine.accumulator.kib * std::uint64_t{hw::kKib});
      break;
    case FaultTarget::kCommands:
      for (const hw::MemoryPiece& piece : mapping.image) {
        if (piece.is_program) region.add(piece.address, piece.address + piece.bytes.size());
      }
      break;
    case FaultTarget::kWeights:
    case FaultTarget::kParameters:
      add_constants(target, mapping, region);
      break;
    case FaultTarget::kArrayActivations:
      // The last column passes nothing on.
      for (std::uint64_t row = 0; row < machine.array.rows; ++row) {
        const std::uint64_t begin = row * machine.array.cols;
        region.add(begin, begin + machine.array.cols - 1);
      }
      break;
    case FaultTarget::kArrayWeights:
    case FaultTarget::kArraySums:
      region.add(0, std::uint64_t{machine.array.rows} * machine.array.cols);
      break;
  }
  region.complete();
  return region;
}

}  // namespace systole::testbench
