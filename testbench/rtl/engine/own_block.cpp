#include "testbench/rtl/engine/own_block.h"

#include "base/error.h"
#include "base/printable.h"

namespace systole::testbench {

const OwnBlock* find_own(const RtlOptions& options, const std::string& of_machine,
                         const std::string& block, std::initializer_list<OwnSize> sizes,
                         RtlCounts& counts) {
  const auto found = options.own.find(of_machine);
  if (found == options.own.end()) return nullptr;
  const OwnBlock& own = *found->second;
  const std::string folder = hw::printable(own.folder);
  if (own.block != block) {
    throw hw::InputError(folder + ": is of " + own.block + ", expected " + block +
                         " by array.dataflow of the machine");
  }
  std::size_t i = 0;
  for (const OwnSize& size : sizes) {
    const std::uint32_t built = own.sizes.at(i++);
    if (built == size.value) continue;
    throw hw::InputError(folder + ": " + own.block + " has " + std::to_string(built) + " " +
                         size.name + ", expected " + size.machine_key + " of the machine, " +
                         std::to_string(size.value));
  }
  counts.source = own.folder;
  return &own;
}

void expect_waves(const OwnBlock& own, const RtlOptions& options) {
  if (own.checked || options.wave.empty()) return;
  const std::string folder = hw::printable(own.folder);
  throw hw::InputError(
      folder + ": was added with --fast, without waveforms, expected: systole rtl add " + folder);
}

}  // namespace systole::testbench
