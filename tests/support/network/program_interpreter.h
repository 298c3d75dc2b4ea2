#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/postop/plain_stage.h"
#include "hw/program/program.h"
#include "model/graph/elements.h"

namespace systole::test {

/// A memory that knows which of its bytes have ever been written.
class TrackedMemory {
 public:
  TrackedMemory(std::string name, std::size_t bytes)
      : name_(std::move(name)), bytes_(bytes), written_(bytes, false) {}

  void write(std::uint64_t at, const void* from, std::size_t bytes) {
    check(at, bytes);
    std::memcpy(&bytes_[at], from, bytes);
    for (std::size_t i = 0; i < bytes; ++i) written_[at + i] = true;
  }
  /// Throws std::logic_error if some of the bytes were never written.
  [[nodiscard]] const std::uint8_t* read(std::uint64_t at, std::size_t bytes) const {
    check(at, bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
      if (!written_[at + i]) {
        throw std::logic_error(name_ + ": byte " + std::to_string(at + i) +
                               " is read, but nothing wrote it");
      }
    }
    return &bytes_[at];
  }

 private:
  void check(std::uint64_t at, std::size_t bytes) const {
    if (bytes == 0 || at + bytes > bytes_.size()) {
      throw std::logic_error(name_ + ": access outside of it");
    }
  }

  std::string name_;
  std::vector<std::uint8_t> bytes_;
  std::vector<bool> written_;
};

/// Executes a program command after command, without time, with plain loops and plain stages: what
/// the commands mean.
class ProgramInterpreter {
 public:
  ProgramInterpreter(const hw::Program& program, const hw::Machine& machine,
                     std::uint64_t dram_bytes)
      : dram("DRAM", dram_bytes),
        scratchpad("scratchpad", std::size_t{machine.scratchpad.kib} * 1024),
        accumulator("accumulator", std::size_t{machine.accumulator.kib} * 1024),
        statistics("row statistics", std::size_t{machine.postop.row_statistics} * 4),
        program_(program) {}

  TrackedMemory dram, scratchpad, accumulator, statistics;

  void load(const hw::MemoryImage& image) {
    for (const hw::MemoryPiece& piece : image) {
      dram.write(piece.address, piece.bytes.data(), piece.bytes.size());
    }
  }

  void execute(const hw::Command& command) {
    std::visit([this](const auto& work) { run(work); }, command.work);
  }

  /// Low half first; throws std::logic_error for what is not from -8 to 7.
  static std::vector<std::uint8_t> in_pairs(const std::vector<std::uint8_t>& values) {
    std::vector<std::uint8_t> pairs((values.size() + 1) / 2, 0);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] > 7 && values[i] < 248) throw std::logic_error("a value that is no int4");
      const int shifted = values[i] % 16 * (i % 2 == 0 ? 1 : 16);
      pairs[i / 2] = static_cast<std::uint8_t>(pairs[i / 2] + shifted);
    }
    return pairs;
  }

 private:
  void run(const hw::cmd::End& /*end*/) {}

  void run(const hw::cmd::Load& load) {
    for (std::uint64_t row = 0; row < load.m; ++row) {
      const hw::DType type = load.pre ? hw::chain_of(*load.pre, program_).out : load.type;
      const std::vector<std::uint8_t> bytes = packed(loaded(load, row), type);
      scratchpad.write(load.to.address + row * load.to.pitch, bytes.data(), bytes.size());
    }
  }
  void run(const hw::cmd::LoadAccumulator& load) {
    for (std::uint64_t row = 0; row < load.m; ++row) {
      const std::vector<std::int32_t> x = loaded(load, row);
      for (std::uint32_t i = 0; i < load.n; ++i) {
        set(load.to.address + row * load.to.pitch + i, x[i]);
      }
    }
  }
  std::vector<std::int32_t> loaded(const hw::cmd::Load& load, std::uint64_t row) {
    std::vector<std::int32_t> x =
        elements(load.from.address + row * load.from.pitch, load.n, load.type);
    return load.pre ? through_chain(*load.pre, row, std::move(x)) : x;
  }

  void run(const hw::cmd::Matmul& mm) {
    std::vector<const std::uint8_t*> b;
    const std::uint64_t depth = mm.b_int4 ? (mm.k + std::uint64_t{1}) / 2 : mm.k;
    for (std::uint64_t row = 0; row < (mm.b_transposed ? mm.n : depth); ++row) {
      b.push_back(scratchpad.read(mm.b.address + row * mm.b.pitch, mm.b_transposed ? depth : mm.n));
    }
    const auto weight = [&](std::uint32_t p, std::uint32_t j) -> std::int32_t {
      const std::uint32_t step = mm.b_int4 ? p / 2 : p;
      const std::uint8_t byte = mm.b_transposed ? b[j][step] : b[step][j];
      return mm.b_int4 ? half_of(byte, p) : static_cast<std::int8_t>(byte);
    };
    for (std::uint64_t i = 0; i < mm.m; ++i) {
      const std::uint8_t* a = scratchpad.read(mm.a.address + i * mm.a.pitch,
                                              mm.a_int4 ? (mm.k + std::uint64_t{1}) / 2 : mm.k);
      for (std::uint32_t j = 0; j < mm.n; ++j) {
        const std::uint64_t at = mm.c.address + i * mm.c.pitch + j;
        std::int32_t sum = mm.accumulate ? get(at) : 0;
        for (std::uint32_t p = 0; p < mm.k; ++p) {
          const std::int32_t left = mm.a_int4       ? half_of(a[p / 2], p)
                                    : mm.a_unsigned ? std::int32_t{a[p]}
                                                    : static_cast<std::int8_t>(a[p]);
          sum += left * weight(p, j);
        }
        set(at, sum);
      }
    }
  }

  void run(const hw::cmd::Store& store) {
    deliver(store, [&](std::uint64_t row, std::uint64_t offset, std::vector<std::uint8_t> bytes) {
      if (store.encoder) bytes = encoded(program_.mixes.at(*store.encoder), bytes);
      dram.write(store.to.address + row * store.to.pitch + offset, bytes.data(), bytes.size());
    });
  }
  void run(const hw::cmd::Move& move) {
    deliver(move, [&](std::uint64_t row, std::uint64_t offset,
                      const std::vector<std::uint8_t>& bytes) {
      scratchpad.write(move.to.address + row * move.to.pitch + offset, bytes.data(), bytes.size());
    });
  }

  /// Calls put(row of the result, bytes after its begin, bytes).
  template <typename Put>
  void deliver(const hw::cmd::Result& result, Put put) {
    const hw::Chain& chain = hw::chain_of(result.chain, program_);
    const std::size_t element = hw::bytes_of(chain.out);
    for (std::uint64_t row = 0; row < result.m; ++row) {
      std::vector<std::int32_t> x(result.n);
      for (std::uint32_t i = 0; i < result.n; ++i) {
        x[i] = get(result.from.address + row * result.from.pitch + i);
      }
      std::vector<std::uint8_t> out =
          packed(through_chain(result.chain, row, std::move(x)), chain.out);
      if (result.int4) out = in_pairs(out);
      if (!hw::transposes(chain)) {
        put(row, 0, out);
        continue;
      }
      for (std::uint32_t i = 0; i < result.n; ++i) {
        const auto from = out.begin() + static_cast<std::ptrdiff_t>(i * element);
        put(i, row * element, {from, from + static_cast<std::ptrdiff_t>(element)});
      }
    }
  }

  /// Element `p` of a row of pairs, of its byte.
  static std::int32_t half_of(std::uint8_t byte, std::uint64_t p) {
    const int half = p % 2 == 0 ? byte % 16 : byte / 16;
    return half < 8 ? half : half - 16;
  }

  // Memory to memory: the simulator itself is compared with a dense product and the reference.
  void run(const hw::cmd::Attention& /*attention*/) {
    throw std::logic_error("the interpreter does not run attention");
  }
  void run(const hw::cmd::Loop& /*loop*/) {
    throw std::logic_error("the interpreter does not run loops");
  }

  void run(const hw::cmd::HostCall& call) {
    const hw::HostFunction& function = program_.host_functions.at(call.function);
    const bool two = hw::operands_of(function.op) > 1;
    std::vector<std::uint8_t> out(call.n * hw::bytes_of(function.out));
    const auto row_of = [&](const hw::DramTile& tile, std::uint64_t row, hw::DType type) {
      return dram.read(tile.address + row * tile.pitch, call.n * hw::bytes_of(type));
    };
    for (std::uint64_t row = 0; row < call.m; ++row) {
      hw::apply_host_row(function, row_of(call.in, row, function.in),
                         two ? row_of(call.operand, row, function.tensor) : nullptr, call.n,
                         out.data(), hw::host_kept(call.valid_cols, row, call.n));
      dram.write(call.out.address + row * call.out.pitch, out.data(), out.size());
    }
  }

  /// A row through a chain, with what the chain reads and leaves elsewhere.
  std::vector<std::int32_t> through_chain(const hw::ChainUse& use, std::uint64_t row,
                                          std::vector<std::int32_t> x) {
    const hw::Chain& chain = hw::chain_of(use, program_);
    const std::size_t cols = x.size();
    hw::PlainRow values;
    values.x = std::move(x);
    if (const std::size_t words = hw::parameter_words(chain); words != 0) {
      values.parameters.resize(words * cols);
      std::memcpy(values.parameters.data(), scratchpad.read(use.parameters, words * cols * 4),
                  words * cols * 4);
    }
    const std::vector<hw::DType> types = hw::tensor_types(chain);
    const std::vector<hw::DramTile> tiles = hw::operands_of(use, program_);
    for (std::size_t i = 0; i < types.size(); ++i) {
      values.tensors.push_back(
          elements(tiles.at(i).address + row * tiles.at(i).pitch, cols, types[i]));
    }
    if (use.valid_cols != 0) values.valid_cols = use.valid_cols + row;
    values.accumulate_statistics = use.continues;
    const std::size_t words = hw::statistics_words(chain);
    const std::uint64_t at = (use.statistics + row * words) * 4;
    values.statistics.resize(words);
    if (hw::reads_row_statistics(chain) || values.accumulate_statistics) {
      std::memcpy(values.statistics.data(), statistics.read(at, words * 4), words * 4);
    }
    hw::apply_plain_row(chain, values);
    if (hw::writes_row_statistics(chain)) {
      statistics.write(at, values.statistics.data(), words * 4);
    }
    return std::move(values.x);
  }

  /// A row of in_heads * d bytes through an encoder.
  static std::vector<std::uint8_t> encoded(const hw::HeadMix& mix,
                                           const std::vector<std::uint8_t>& row) {
    const std::size_t features = row.size() / mix.in_heads;
    std::vector<std::uint8_t> out;
    for (std::size_t o = 0; o < mix.out_heads; ++o) {
      for (std::size_t f = 0; f < features; ++f) {
        std::int64_t sum = mix.bias.at(o);
        for (std::size_t i = 0; i < mix.in_heads; ++i) {
          sum += mix.weights.at(o * mix.in_heads + i) *
                 static_cast<std::int8_t>(row[i * features + f]);
        }
        out.push_back(static_cast<std::uint8_t>(
            hw::requantise(sum, mix.factors.at(o), mix.rounding, -127, 127)));
      }
    }
    return out;
  }

  [[nodiscard]] std::vector<std::int32_t> elements(std::uint64_t address, std::size_t count,
                                                   hw::DType type) const {
    const std::uint8_t* from = dram.read(address, count * hw::bytes_of(type));
    std::vector<std::int32_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = model::load_element(from, i, type);
    return values;
  }

  /// Throws std::logic_error if a value does not fit the type.
  static std::vector<std::uint8_t> packed(const std::vector<std::int32_t>& values, hw::DType type) {
    std::vector<std::uint8_t> bytes(values.size() * hw::bytes_of(type));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!model::store_element(bytes.data(), i, type, values[i])) {
        throw std::logic_error("a value outside its type");
      }
    }
    return bytes;
  }

  [[nodiscard]] std::int32_t get(std::uint64_t element) const {
    std::int32_t value = 0;
    std::memcpy(&value, accumulator.read(element * 4, 4), 4);
    return value;
  }
  void set(std::uint64_t element, std::int32_t value) { accumulator.write(element * 4, &value, 4); }

  const hw::Program& program_;
};

}  // namespace systole::test
