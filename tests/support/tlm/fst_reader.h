#pragma once

#include <gtkwave/fstapi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/tlm/vcd_reader.h"

namespace systole::test {

/// A waveform in GTKWave's format, by GTKWave's own reader: what parse_vcd() makes of the same
/// changes. Before its first change a signal has no value. A value with other digits than 0 and 1,
/// or with more than 64 of them, is none. What changes several times at a time has its last value.
inline Vcd read_fst(const std::string& path) {
  const std::unique_ptr<void, void (*)(void*)> reader(fstReaderOpen(path.c_str()), [](void* fst) {
    if (fst != nullptr) fstReaderClose(fst);
  });
  if (!reader) throw std::runtime_error("FST: cannot be read: " + path);
  constexpr int kPicoseconds = -12;
  if (fstReaderGetTimescale(reader.get()) != kPicoseconds) throw std::runtime_error("FST: not ps");
  Vcd vcd;
  vcd.begin = fstReaderGetStartTime(reader.get());
  vcd.end = fstReaderGetEndTime(reader.get());
  std::vector<std::string> scopes{""};
  struct Reading {
    std::vector<std::vector<Vcd::Variable*>> variables;  ///< by handle
    std::uint64_t now = 0;
    bool moves_back = false;
  } reading;
  reading.variables.resize(fstReaderGetMaxHandle(reader.get()) + 1);
  while (const fstHier* entry = fstReaderIterateHier(reader.get())) {
    if (entry->htyp == FST_HT_SCOPE) {
      scopes.push_back(scopes.back() + entry->u.scope.name + ".");
    } else if (entry->htyp == FST_HT_UPSCOPE) {
      scopes.pop_back();
    } else if (entry->htyp == FST_HT_VAR) {
      const std::string name = entry->u.var.name;
      Vcd::Variable& variable = vcd.variables[scopes.back() + name.substr(0, name.find(' '))];
      variable.width = entry->u.var.length;
      variable.changes = {{vcd.begin, std::nullopt}};  // unless a change says otherwise
      reading.variables.at(entry->u.var.handle).push_back(&variable);
    }
  }
  fstReaderSetFacProcessMaskAll(reader.get());
  const auto take = [](void* data, std::uint64_t time, fstHandle handle,
                       const unsigned char* digits) {
    auto& all = *static_cast<Reading*>(data);
    all.moves_back = all.moves_back || time < all.now;
    all.now = time;
    const std::string text(reinterpret_cast<const char*>(digits));
    Vcd::Value value;
    if (text.size() <= 64 && text.find_first_not_of("01") == text.npos) {
      value = std::stoull(text, nullptr, 2);
    }
    for (Vcd::Variable* variable : all.variables.at(handle)) {
      auto& changes = variable->changes;
      if (changes.back().time == time) changes.pop_back();
      if (!changes.empty() && changes.back().value == value) continue;
      changes.push_back({time, value});
    }
  };
  fstReaderIterBlocks(reader.get(), take, &reading, nullptr);
  if (reading.moves_back) throw std::runtime_error("FST: time does not move forward: " + path);
  return vcd;
}

}  // namespace systole::test
