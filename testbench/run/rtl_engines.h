#pragma once

#include "hw/machine/machine.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/drive/rtl_options.h"
#include "tlm/core/core.h"

namespace systole::testbench {

/// The engines of a machine, each block from where `machine.backend` says. Blocks in RTL count into
/// `report`, which must outlive the engines. `options.wave`, if set, is the stem of the names of
/// the FST files, one per block. Throws InputError for a block of which no RTL of this size is
/// built.
[[nodiscard]] tlm_model::Engines make_engines(const hw::Machine& machine, const RtlOptions& options,
                                              RtlReport& report);

}  // namespace systole::testbench
