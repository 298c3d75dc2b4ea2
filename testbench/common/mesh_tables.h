#pragma once

#include <string>
#include <vector>

#include "base/accounting.h"
#include "hw/description/core_system.h"

namespace systole::testbench {

/// Blocks for a table: of a mesh the links that are busiest, and the mean of the others.
[[nodiscard]] std::vector<hw::BlockReport> with_busiest_links(std::vector<hw::BlockReport> blocks);

/// The mesh of a system: how packets pass it, and what is at which node.
[[nodiscard]] std::string mesh_text(const hw::CoreSystem& system);

}  // namespace systole::testbench
