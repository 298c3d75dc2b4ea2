#include "model/metadata/datapath_metadata.h"

#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "hw/description/machine_keys.h"
#include "hw/description/machine_text.h"
#include "model/metadata/metadata.h"

namespace systole::model {
namespace {

/// Calls `use` with every key of the datapath.
template <typename Use>
void for_each_datapath_key(Use use) {
  for (const hw::MachineKey& key : hw::machine_keys()) {
    if (hw::section_of(key.path) == "datapath") use(key);
  }
}

hw::KeyValue read_value(const Metadata& metadata, const hw::MachineKey& key) {
  const std::string name(key.path);
  if (key.kind != hw::MachineKey::Kind::kWord) {
    return std::int64_t{metadata_number(metadata, name, static_cast<std::uint32_t>(key.min),
                                        static_cast<std::uint32_t>(key.max))};
  }
  const std::string text = metadata_text(metadata, name);
  const std::optional<hw::KeyValue> value = hw::word_value(key, text);
  if (!value) {
    throw hw::InputError(metadata.place + " '" + name + "': " + hw::printable(text) +
                         ", expected " + hw::expected(key));
  }
  return *value;
}

}  // namespace

std::map<std::string, std::string> datapath_metadata(const hw::Machine::Datapath& datapath) {
  hw::Machine machine;
  machine.datapath = datapath;
  std::map<std::string, std::string> metadata;
  for_each_datapath_key([&](const hw::MachineKey& key) {
    const std::int64_t value = std::get<std::int64_t>(key.get(machine));
    metadata[std::string(key.path)] = key.kind == hw::MachineKey::Kind::kWord
                                          ? std::string(key.words.at(std::size_t(value)))
                                          : std::to_string(value);
  });
  return metadata;
}

hw::Machine::Datapath read_datapath(const Metadata& metadata) {
  hw::Machine machine;
  for_each_datapath_key(
      [&](const hw::MachineKey& key) { key.set(machine, read_value(metadata, key)); });
  return machine.datapath;
}

void check_datapath(const hw::Machine::Datapath& datapath) {
  hw::Machine machine;
  machine.datapath = datapath;
  for_each_datapath_key([&](const hw::MachineKey& key) {
    const hw::KeyValue value = key.get(machine);
    if (hw::accepts(key, value)) return;
    throw hw::InputError(std::string(key.path) + ": " +
                         std::to_string(std::get<std::int64_t>(value)) + ", expected " +
                         hw::expected(key));
  });
}

}  // namespace systole::model
