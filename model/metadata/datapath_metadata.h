#pragma once

#include <map>
#include <string>

#include "hw/machine/machine.h"
#include "model/metadata/metadata.h"

/// The datapath a model was quantised for, under the keys and words of a machine file
/// ("datapath.rounding": "half-up").
namespace systole::model {

[[nodiscard]] std::map<std::string, std::string> datapath_metadata(
    const hw::Machine::Datapath& datapath);

/// Throws InputError that names the key if one is missing or its value not allowed.
[[nodiscard]] hw::Machine::Datapath read_datapath(const Metadata& metadata);

/// Throws InputError that names the key if a value is out of the range of a machine file.
void check_datapath(const hw::Machine::Datapath& datapath);

}  // namespace systole::model
