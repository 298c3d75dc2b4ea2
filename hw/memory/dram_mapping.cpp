#include "hw/memory/dram_mapping.h"

#include <stdexcept>
#include <string>

namespace systole::hw {
namespace {

bool power_of_two(std::uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

unsigned log2_of(std::uint64_t value) {
  unsigned bits = 0;
  while (value >>= 1) ++bits;
  return bits;
}

const Machine::Dram& checked(const Machine::Dram& dram) {
  std::string problems;
  const auto require = [&problems](bool ok, const char* field, std::uint64_t value,
                                   const char* rule) {
    if (!ok) problems += "\n  " + std::string(field) + " = " + std::to_string(value) + ": " + rule;
  };
  const char* const rule = "must be a power of two";
  require(dram.mib > 0, "mib", dram.mib, "must be at least 1");
  require(power_of_two(dram.channels), "channels", dram.channels, rule);
  require(power_of_two(dram.banks), "banks", dram.banks, rule);
  require(power_of_two(dram.bank_groups) && dram.bank_groups <= dram.banks, "bank_groups",
          dram.bank_groups, "must be a power of two, at most banks");
  require(power_of_two(dram.bus_bytes), "bus_bytes", dram.bus_bytes, rule);
  require(power_of_two(dram.burst_length), "burst_length", dram.burst_length, rule);
  require(power_of_two(dram.row_bytes) &&
              dram.row_bytes >= std::uint64_t{dram.bus_bytes} * dram.burst_length,
          "row_bytes", dram.row_bytes, "must be a power of two, at least one burst");
  if (!problems.empty()) throw std::invalid_argument("DRAM geometry:" + problems);
  return dram;
}

}  // namespace

DramMapping::DramMapping(const Machine::Dram& dram) {
  burst_bytes_ = std::uint64_t{checked(dram).bus_bytes} * dram.burst_length;
  unsigned shift = log2_of(burst_bytes_);
  const auto field = [&shift](std::uint32_t values) {
    const Field result{shift, values - 1};
    shift += log2_of(values);
    return result;
  };
  channel_ = field(dram.channels);
  group_ = field(dram.bank_groups);
  shift += log2_of(dram.row_bytes / burst_bytes_);
  bank_ = field(dram.banks / dram.bank_groups);
  bank_bits_ = log2_of(dram.banks / dram.bank_groups);
  row_shift_ = shift;
}

}  // namespace systole::hw
