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
    switch (command.opcode) {
      case hw::Opcode::kEnd:
        return;
      case hw::Opcode::kLoad:
      case hw::Opcode::kLoadAccumulator:
        return load(command);
      case hw::Opcode::kMatmul:
        return matmul(command);
      case hw::Opcode::kStore:
      case hw::Opcode::kMove:
        return store(command);
      case hw::Opcode::kAttention:
        // Memory to memory: the simulator itself is compared with a dense product.
        throw std::logic_error("the interpreter does not run attention");
      case hw::Opcode::kHost:
        return host(command);
      case hw::Opcode::kLoop:
        // Memory to memory: the simulator itself is compared with the reference.
        throw std::logic_error("the interpreter does not run loops");
    }
  }

 private:
  void load(const hw::Command& c) {
    const hw::Chain* const chain = hw::chain_of(c, program_);
    for (std::uint64_t row = 0; row < c.m; ++row) {
      std::vector<std::int32_t> x = elements(c.dram + row * c.dram_pitch, c.n, c.type);
      if (chain != nullptr) x = through_chain(c, *chain, row, std::move(x));
      if (c.opcode == hw::Opcode::kLoadAccumulator) {
        for (std::uint32_t i = 0; i < c.n; ++i) set(c.c + row * c.c_pitch + i, x[i]);
      } else {
        const std::vector<std::uint8_t> bytes = packed(x, chain == nullptr ? c.type : chain->out);
        scratchpad.write(c.a + row * c.a_pitch, bytes.data(), bytes.size());
      }
    }
  }

  void matmul(const hw::Command& c) {
    std::vector<const std::uint8_t*> b;
    for (std::uint64_t row = 0; row < (c.b_transposed ? c.n : c.k); ++row) {
      b.push_back(scratchpad.read(c.b + row * c.b_pitch, c.b_transposed ? c.k : c.n));
    }
    for (std::uint64_t i = 0; i < c.m; ++i) {
      const std::uint8_t* a = scratchpad.read(c.a + i * c.a_pitch, c.k);
      for (std::uint32_t j = 0; j < c.n; ++j) {
        const std::uint64_t at = c.c + i * c.c_pitch + j;
        std::int32_t sum = c.accumulate ? get(at) : 0;
        for (std::uint32_t p = 0; p < c.k; ++p) {
          const std::int32_t left =
              c.a_unsigned ? std::int32_t{a[p]} : std::int32_t{static_cast<std::int8_t>(a[p])};
          sum += left * static_cast<std::int8_t>(c.b_transposed ? b[j][p] : b[p][j]);
        }
        set(at, sum);
      }
    }
  }

  void store(const hw::Command& c) {
    const hw::Chain& chain = *hw::chain_of(c, program_);
    const std::size_t element = hw::bytes_of(chain.out);
    for (std::uint64_t row = 0; row < c.m; ++row) {
      std::vector<std::int32_t> x(c.n);
      for (std::uint32_t i = 0; i < c.n; ++i) x[i] = get(c.c + row * c.c_pitch + i);
      std::vector<std::uint8_t> out = packed(through_chain(c, chain, row, std::move(x)), chain.out);
      if (c.opcode == hw::Opcode::kStore && c.mix != 0) {
        out = encoded(program_.mixes.at(c.mix - std::size_t{1}), out);
      }
      if (!hw::transposes(chain)) {
        put(c, row, 0, out.data(), out.size());
        continue;
      }
      for (std::uint32_t i = 0; i < c.n; ++i) {
        put(c, i, row * element, &out[i * element], element);
      }
    }
  }

  /// Writes bytes `offset` after the begin of a row of the result.
  void put(const hw::Command& c, std::uint64_t row, std::uint64_t offset, const std::uint8_t* from,
           std::size_t bytes) {
    if (c.opcode == hw::Opcode::kMove) {
      scratchpad.write(c.b + row * c.b_pitch + offset, from, bytes);
    } else {
      dram.write(c.dram + row * c.dram_pitch + offset, from, bytes);
    }
  }

  /// A row of a command through its chain, with what the chain reads and leaves elsewhere.
  std::vector<std::int32_t> through_chain(const hw::Command& c, const hw::Chain& chain,
                                          std::uint64_t row, std::vector<std::int32_t> x) {
    hw::PlainRow values;
    values.x = std::move(x);
    if (const std::size_t words = hw::parameter_words(chain); words != 0) {
      values.parameters.resize(words * c.n);
      std::memcpy(values.parameters.data(), scratchpad.read(c.parameters, words * c.n * 4),
                  words * c.n * 4);
    }
    const std::vector<hw::DType> types = hw::tensor_types(chain);
    const std::vector<hw::OperandTile> tiles = hw::operands_of(c, program_);
    for (std::size_t i = 0; i < types.size(); ++i) {
      values.tensors.push_back(
          elements(tiles.at(i).address + row * tiles.at(i).pitch, c.n, types[i]));
    }
    if (c.k != 0) values.valid_cols = c.k + row;
    const bool stores = hw::unit_of(c.opcode) == hw::Unit::kStore;
    values.accumulate_statistics = stores && c.accumulate;
    const std::size_t words = hw::statistics_words(chain);
    const std::uint64_t at = (c.statistics + row * words) * 4;
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

  void host(const hw::Command& c) {
    const hw::HostFunction& function = program_.host_functions.at(c.chain);
    const bool two = hw::operands_of(function.op) > 1;
    std::vector<std::uint8_t> out(c.n * hw::bytes_of(function.out));
    for (std::uint64_t row = 0; row < c.m; ++row) {
      const std::size_t second = c.n * hw::bytes_of(function.tensor);
      hw::apply_host_row(function,
                         dram.read(c.dram + row * c.dram_pitch, c.n * hw::bytes_of(function.in)),
                         two ? dram.read(c.a + row * c.a_pitch, second) : nullptr, c.n, out.data(),
                         hw::host_kept(c.k, row, c.n));
      dram.write(c.tensor + row * c.tensor_pitch, out.data(), out.size());
    }
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
