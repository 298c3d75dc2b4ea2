#include "testbench/rtl/core/core_rtl.h"

#include <stdexcept>

#include "Vcore_4_checked.h"
#include "Vcore_8_checked.h"
#include "testbench/rtl/core/core_unit.h"
#include "testbench/rtl/engine/own_block.h"

namespace systole::testbench {
namespace {

/// `its`: options of this block.
std::unique_ptr<CoreBuild> core_build(const RtlOptions& options, const RtlOptions& its,
                                      const CoreSize& size) {
  const auto own = options.own.find("core");
  if (own != options.own.end()) return make_own<CoreBuild>(*own->second, {}, its);
  if (size.lanes == kCoreSizes[0].lanes) {
    return std::make_unique<CoreBuildOf<Vcore_4_checked>>(kCoreSizes[0]);
  }
  if (size.lanes == kCoreSizes[1].lanes) {
    return std::make_unique<CoreBuildOf<Vcore_8_checked>>(kCoreSizes[1]);
  }
  throw std::invalid_argument("no core of that size is built");
}

}  // namespace

std::unique_ptr<CoreRtl> make_core(const RtlOptions& options, const CoreSize& size) {
  return core_build(options, options, size)->rtl(options);
}

std::unique_ptr<CorePorts> make_core_ports(const RtlOptions& options, const CoreSize& size) {
  const RtlOptions its = options.for_block("core", 0);
  return core_build(options, its, size)->ports(its);
}

}  // namespace systole::testbench
