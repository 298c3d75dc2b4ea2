#include "hw/ring/pass_image.h"

#include <cstring>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "hw/ring/instruction_fields.h"

namespace systole::hw::dfx {
namespace {

constexpr std::uint32_t kMagic = 0x50584644;  // "DFXP"

class PassWriterArchive {
 public:
  explicit PassWriterArchive(std::uint8_t* to) : to_(to) {}
  template <typename... Field>
  void operator()(const Field&... fields) {
    (put(fields), ...);
  }

 private:
  template <typename Field>
  void put(const Field& field) {
    std::memcpy(to_, &field, sizeof field);
    to_ += sizeof field;
  }
  std::uint8_t* to_;
};

class PassReaderArchive {
 public:
  explicit PassReaderArchive(const std::uint8_t* from) : from_(from) {}
  template <typename... Field>
  void operator()(Field&... fields) {
    (take(fields), ...);
  }
  /// A byte that is neither false nor true was read.
  [[nodiscard]] bool is_bad() const { return bad_; }

 private:
  template <typename Field>
  void take(Field& field) {
    if constexpr (std::is_same_v<Field, bool>) {
      bad_ = bad_ || *from_ > 1;
      field = *from_ == 1;
    } else {
      std::memcpy(&field, from_, sizeof field);
    }
    from_ += sizeof field;
  }
  const std::uint8_t* from_;
  bool bad_ = false;
};

/// To or from an archive.
template <typename Archive, typename AnyInstruction>
void pass_through(Archive& archive, AnyInstruction& instruction) {
  visit_fields([&](const char*, auto& field) { archive(field); }, instruction);
}

/// Bytes of an exchange among `cores`.
std::size_t exchange_bytes(std::uint32_t cores) { return 4 + 1 + 4 * (std::size_t{cores} + 1); }

struct PassHeader {
  std::uint32_t magic = kMagic, bytes = 0, exchanges = 0, instructions = 0, cores = 0;
};

PassHeader header_of(const std::vector<std::uint8_t>& bytes) {
  PassHeader header;
  PassReaderArchive(bytes.data())(header.magic, header.bytes, header.exchanges, header.instructions,
                                  header.cores);
  return header;
}

std::uint64_t whole_bytes(const PassHeader& header) {
  return kPassHeaderBytes + std::uint64_t{header.exchanges} * exchange_bytes(header.cores) +
         std::uint64_t{header.instructions} * instruction_bytes();
}

/// Of those so far.
std::size_t instruction_bytes_of(const std::vector<InstructionField>& fields) {
  return fields.empty() ? 0 : fields.back().offset + fields.back().bytes;
}

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw InputError("pass: " + where + ": " + what);
}

}  // namespace

std::vector<InstructionField> instruction_fields() {
  std::vector<InstructionField> fields;
  const Instruction any;
  visit_fields(
      [&](const char* name, const auto& field) {
        fields.push_back({name, instruction_bytes_of(fields), sizeof field});
      },
      any);
  return fields;
}

std::size_t instruction_bytes() { return instruction_bytes_of(instruction_fields()); }

std::vector<std::uint8_t> encode_pass(const Pass& pass, std::uint32_t cores) {
  PassHeader header;
  header.exchanges = static_cast<std::uint32_t>(pass.exchanges.size());
  header.instructions = static_cast<std::uint32_t>(pass.instructions.size());
  header.cores = cores;
  header.bytes = static_cast<std::uint32_t>(whole_bytes(header));
  std::vector<std::uint8_t> bytes(header.bytes);
  PassWriterArchive out(bytes.data());
  out(header.magic, header.bytes, header.exchanges, header.instructions, header.cores);
  for (const Exchange& exchange : pass.exchanges) {
    out(exchange.base, exchange.sums);
    for (const std::uint32_t bound : exchange.first) out(bound);
  }
  for (const Instruction& instruction : pass.instructions) pass_through(out, instruction);
  return bytes;
}

std::uint32_t pass_bytes(const std::vector<std::uint8_t>& header) {
  if (header.size() < kPassHeaderBytes) refuse("header", "found its begin alone");
  const PassHeader read = header_of(header);
  if (read.magic != kMagic) refuse("header", "found other bytes than \"DFXP\"");
  // So that no product overflows.
  if (read.bytes > kMaxPassBytes || read.cores > kMaxPassBytes || whole_bytes(read) != read.bytes) {
    refuse("header", "found " + std::to_string(read.bytes) + " bytes, expected those of " +
                         std::to_string(read.exchanges) + " exchanges and " +
                         std::to_string(read.instructions) + " instructions");
  }
  return read.bytes;
}

Pass decode_pass(const std::vector<std::uint8_t>& bytes, const Machine& machine,
                 const PassLimits& limits) {
  if (pass_bytes(bytes) != bytes.size()) refuse("header", "found less than all of it");
  const PassHeader header = header_of(bytes);
  if (header.cores != machine.dfx.cores) {
    refuse("header", "of a ring of " + std::to_string(header.cores) + " cores, expected " +
                         std::to_string(machine.dfx.cores));
  }
  PassReaderArchive in(bytes.data() + kPassHeaderBytes);
  Pass pass;
  pass.exchanges.resize(header.exchanges);
  for (std::uint32_t i = 0; i < header.exchanges; ++i) {
    Exchange& exchange = pass.exchanges[i];
    in(exchange.base, exchange.sums);
    exchange.first.resize(std::size_t{header.cores} + 1);
    for (std::uint32_t& bound : exchange.first) in(bound);
    const std::string problem = problem_of(exchange, limits);
    if (!problem.empty()) refuse("exchange " + std::to_string(i), problem);
  }
  pass.instructions.resize(header.instructions);
  for (std::uint32_t i = 0; i < header.instructions; ++i) {
    pass_through(in, pass.instructions[i]);
    const std::string problem = problem_of(pass.instructions[i], pass, machine, limits);
    if (!problem.empty()) refuse("instruction " + std::to_string(i), problem);
  }
  if (in.is_bad()) refuse("flags", "found a byte that is neither 0 nor 1");
  return pass;
}

}  // namespace systole::hw::dfx
