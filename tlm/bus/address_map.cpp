#include "tlm/bus/address_map.h"

#include <ios>
#include <sstream>
#include <string>

#include "base/error.h"

namespace systole::tlm_model {
namespace {

std::string text(const AddressMap::Range& range) {
  std::ostringstream os;
  os << std::hex << "[0x" << range.base << ", 0x" << range.base << " + 0x" << range.size << ")";
  return os.str();
}

}  // namespace

void AddressMap::add(const Range& range) {
  if (range.size == 0 || range.base + (range.size - 1) < range.base) {
    throw hw::InputError("address map: " + text(range) +
                         ": a range needs at least one byte and must end below 2^64");
  }
  for (const Range& other : ranges_) {
    const bool before = range.base < other.base && range.size <= other.base - range.base;
    const bool after = other.base < range.base && other.size <= range.base - other.base;
    if (!before && !after) {
      throw hw::InputError("address map: " + text(range) + " overlaps " + text(other) +
                           ", expected ranges apart from each other");
    }
  }
  ranges_.push_back(range);
}

}  // namespace systole::tlm_model
