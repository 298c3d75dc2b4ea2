#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>

#include "base/atomic_file.h"
#include "hw/machine/machine.h"

namespace systole::testbench {

[[nodiscard]] std::string base64(std::string_view bytes);

/// The HTML file of --report: one file that needs no other and no network. It holds the documents
/// that the command writes as JSON, and the timeline, compressed; a script in it draws them. See
/// docs/report.md.
class ReportPage {
 public:
  /// Opens the file before the work. Without a path there is none, and nothing below does anything.
  /// Throws InputError if it cannot be written.
  explicit ReportPage(const std::string& path);
  ~ReportPage();

  [[nodiscard]] bool wanted() const { return file_ != nullptr; }

  /// Takes the events of a timeline (EventWriter). Only if the page is wanted.
  [[nodiscard]] std::ostream& timeline();

  /// Puts the page of a run in place. `statistics` is the document of --json; `explanation` that of
  /// `systole explain --json`, null if there is none.
  void write(const hw::Machine& machine, const nlohmann::ordered_json& statistics,
             const nlohmann::ordered_json& explanation = nullptr);

  /// Puts the page of a comparison in place; `comparison` is the document of `systole compare
  /// --json`.
  void write_comparison(const nlohmann::ordered_json& comparison);

  /// Puts the page of `systole reproduce` in place: its documents, each with "pictures", an array
  /// of objects with `name` and `png` in base64().
  void write_reproductions(const nlohmann::ordered_json& reproductions);

 private:
  class Compressor;
  void put(const nlohmann::ordered_json& data);

  std::unique_ptr<hw::AtomicFile> file_;
  std::unique_ptr<Compressor> compressor_;  ///< of the timeline; null: none
};

}  // namespace systole::testbench
