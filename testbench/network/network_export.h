#pragma once

#include <string>

#include "hw/machine/machine.h"
#include "testbench/network/network_size.h"

namespace systole::testbench {

/// Writes a model as a network file (docs/network-format.md): an integer model or a checkpoint by
/// name or path, or, for the datapath of `machine`, a shape with seeded weights, all tokens at
/// once. Throws InputError for a model that cannot be read, and for a batch or tokens one by one.
void export_network(const std::string& model, const SizeOptions& size, const hw::Machine& machine,
                    const std::string& path);

}  // namespace systole::testbench
