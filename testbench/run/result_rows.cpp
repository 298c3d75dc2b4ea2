#include "testbench/run/result_rows.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "hw/number/int4.h"
#include "hw/program/program.h"

namespace systole::testbench {
namespace {

/// Where a command leaves its result.
struct WrittenTile {
  bool stays = false;  ///< in the scratchpad
  std::uint64_t begin = 0, rows = 0, row_bytes = 0;
};

/// Nothing: it leaves none. `element`: bytes of an element of the operator's result.
std::optional<WrittenTile> written_by(const hw::Command& command, const hw::Program& program,
                                      std::size_t element) {
  const auto tile = [](bool stays, std::uint64_t begin, const hw::WrittenRows& rows) {
    return WrittenTile{stays, begin, rows.rows, rows.bytes};
  };
  if (const auto* const store = command.as<hw::cmd::Store>()) {
    return tile(false, store->to.address, hw::written_rows(*store, program));
  }
  if (const auto* const move = command.as<hw::cmd::Move>()) {
    return tile(true, move->to.address, hw::written_rows(*move, program));
  }
  if (const auto* const loop = command.as<hw::cmd::Loop>(); loop && loop->c.address != 0) {
    return tile(false, loop->c.address, hw::written_rows(*loop, program));
  }
  if (const auto* const attention = command.as<hw::cmd::Attention>()) {
    return tile(false, attention->out.address,
                {attention->queries, std::size_t{attention->heads} * attention->n * element});
  }
  if (const auto* const call = command.as<hw::cmd::HostCall>()) {
    return tile(false, call->out.address, {call->m, call->n * element});
  }
  return std::nullopt;
}

}  // namespace

void ResultRows::begin(const mapper::Mapping& mapping) {
  mapping_ = &mapping;
  ring_rows_.assign(mapping.program.operators.size(), 0);
}

void ResultRows::read(std::uint32_t index, const std::function<void(const WrittenRow&)>& visit) {
  const hw::Command& command = mapping_->program.commands[index];
  const hw::Operator& result = mapping_->program.operators[command.op];
  const model::View& view = mapping_->groups[command.op].written();
  const std::size_t element = hw::bytes_of(result.type);
  const std::optional<WrittenTile> written = written_by(command, mapping_->program, element);
  if (!written) return;
  const auto [stays, begin, rows, row_bytes] = *written;
  const std::size_t cols = graph_.tensors[view.tensor].cols;
  const std::size_t begin_bytes = (std::size_t{view.row} * cols + view.col) * element;
  std::vector<std::uint8_t> found(row_bytes), values;
  const auto first_of = [&](std::uint64_t at) {
    // A ring's first row tile need not have its lowest slot.
    const auto pitch = static_cast<std::int64_t>(result.pitch);
    const std::int64_t offset = static_cast<std::int64_t>(at - result.address) % pitch;
    return static_cast<std::uint64_t>(offset < 0 ? offset + pitch : offset);
  };
  // Rows of a ring arrive in order, from the first column on.
  const bool ring = result.place == hw::Operator::Place::kRing;
  std::uint64_t ring_row = 0;
  // A tile is of one section.
  const std::uint64_t section_bytes = result.section_bytes();
  const std::uint64_t section = ring ? 0 : (begin - result.address) / section_bytes;
  const std::uint64_t section_begin = result.address + section * section_bytes;
  if (ring) {
    std::uint64_t& done = ring_rows_[command.op];
    if (first_of(begin) == 0) done += rows;
    ring_row = done - rows;
  }
  for (std::uint64_t i = 0; i < rows; ++i) {
    const std::uint64_t at = begin + i * result.pitch;
    if (stays) {
      std::memcpy(found.data(), core_.memory.scratchpad.data() + at, row_bytes);
    } else if (const std::uint8_t* const stored = system_.stored({at, row_bytes})) {
      std::memcpy(found.data(), stored, row_bytes);
    } else {
      system_.peek(at, found.data(), row_bytes);
    }
    const std::uint64_t row = ring ? ring_row + i : (at - section_begin) / result.pitch;
    std::uint64_t first = first_of(at) + section * result.section * element;
    if (result.int4) {
      first *= hw::kInt4Pair;
      values.resize(std::min(row_bytes * hw::kInt4Pair, result.cols - first));
      hw::expand_int4(found.data(), row_bytes, 1, values.size(), true,
                      reinterpret_cast<std::int8_t*>(values.data()), values.size());
    }
    visit({command.op, row, first, view.tensor,
           begin_bytes + row * view.pitch(cols) * element + first, result.int4 ? values : found});
  }
}

}  // namespace systole::testbench
